//! Epochs: whole clusters of participants with a keepers' leader. They run the state machines of
//! [`soloist_core`] that run in a node.
//!
//! - [`run`]: random runs in a [`world`] with [`clients`] and a [`referee`]: simulated time,
//!   crashes, pauses, partitions and clocks that drift.
//! - [`check`]: a search of every interleaving of a small cluster within a [`budget`]. Its
//!   [`state`]s include the messages that are [`under_way`] and a [`witness`].
//! - [`text`]: runs of such a small cluster as text. A search prints what it finds as such a text.
//! - [`fault`]: the kinds of faults. [`describe`] and [`journal`]: lines about what happens.
//!   [`setup`]: building blocks.

pub mod budget;
pub mod check;
pub mod clients;
pub mod describe;
pub mod fault;
pub mod journal;
pub mod referee;
pub mod run;
pub mod setup;
pub mod state;
pub mod text;
pub mod under_way;
pub mod witness;
pub mod world;
