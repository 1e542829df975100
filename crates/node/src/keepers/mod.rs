//! Keepers: a few nodes that agree on the [roster](soloist_core::epochs::roster) with Raft and
//! persist it.
//!
//! A keeper is identified by its Raft id, which is random and fresh for each promotion of a node,
//! and by its node's name, which is in its certificate. An id that was demoted is never a keeper
//! again.
//!
//! - `keeper`: the interface for the rest of the node. `view`: its observable state. `settings`,
//!   `error`: its settings and errors.
//! - `store`: the log and a snapshot in a file. `types`: the types that Raft is instantiated with.
//! - `known`: what a keeper knows of the others. `successor`: a later generation of the cluster.
//! - `pre_vote`: when to hold an election. `handover`: how a leader gives up leadership.
//! - `rpc`: the wire format, and which requests are refused. `network`, `peer`: the client side,
//!   with one connection to each other keeper. `serve`: the server side. `gate`: which
//!   requests it passes to Raft.
//!
//! Which nodes may have a store, and which keepers are answered, is decided by
//! [`soloist_core::keepers`].
//!
//! Invariants: nothing is acknowledged before it is on disk. A peer speaks only in its own name.
//! Nothing here listens on a port: connections are handed over by the caller.

mod error;
mod gate;
mod handover;
mod keeper;
mod known;
mod network;
mod peer;
mod pre_vote;
pub mod rpc;
mod serve;
mod settings;
pub mod store;
mod successor;
mod types;
mod view;

pub use error::KeeperError;
pub use keeper::Keeper;
pub use serve::ServeEnd;
pub use settings::Settings;
pub use store::{AppliedMembership, Known, Recovery, Store, StoreError, StoreIdentity};
pub use types::{KeeperNode, Membership, Proposal, Raft, Types, id_of};
pub use view::View;
