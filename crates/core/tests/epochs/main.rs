//! Epochs: `leader` and `member`, each of the two state machines alone. Whole clusters are in the
//! tests of the lab.

mod leader;
mod member;
mod setup;
