//! Keepers: a few nodes that agree on the [roster](soloist_core::epochs::roster) with Raft, and remember it.
//!
//! A keeper is known by its id in Raft, which is random and fresh for each promotion of a node, and by
//! its node's name, which is in its certificate. An id that was demoted is never a keeper again.
//!
//! - `keeper`: what the rest of the node uses. `view`: what it sees. `settings`, `error`: what goes in, and what can go wrong.
//! - `store`: the log and a snapshot in a file. `types`: what Raft is told of all this.
//! - `appointment`: who may have a store. `known`: what a keeper knows of the others.
//! - `canvass`: when to hold an election. `handover`: how a leader gives up leadership.
//! - `rpc`: bytes on the wire, and what is refused. `network`, `peer`: the side that asks, over one connection to
//!   each other keeper. `serve`: the side that answers. `gate`: whom it answers.
//!
//! Invariants: nothing is acknowledged before it is on disk. A peer speaks for nobody but itself. Nothing here listens
//! on a port: whoever does, hands connections over.

mod appointment;
mod canvass;
mod error;
mod gate;
mod handover;
mod keeper;
mod known;
mod network;
mod peer;
pub mod rpc;
mod serve;
mod settings;
pub mod store;
mod successor;
mod types;
mod view;

pub use appointment::{Appointment, KnownKeepers, LeaderWord, StoreClaim};
pub use error::KeeperError;
pub use keeper::Keeper;
pub use serve::ServeEnd;
pub use settings::Settings;
pub use store::{AppliedMembership, Known, Recovery, Store, StoreError, StoreIdentity};
pub use types::{KeeperNode, Membership, Proposal, Raft, Types, id_of};
pub use view::View;
