//! Compares the state machines of `soloist-algorithms` with the models in `proofs/`.
//!
//! Coq extracts the handlers of each model to OCaml. The program in `model/` visits every reachable
//! state of a small cluster and prints each distinct call of a handler: node, state, event, next
//! state, messages. [`compare`] visits the same cluster with the Rust handlers and looks up each of
//! its calls. If all are found, and the numbers of calls, states and steps are equal, both machines
//! are the same on that cluster: they start in the same states, and no step leads them apart.

mod explore;
mod model;
mod text;

pub use explore::{Case, Difference, Totals, compare};
pub use model::{Model, is_missing};
