//! Distributed mutual exclusion algorithms as pure state machines.
//!
//! Each [`Algorithm`] is one node's state machine for one lock: events in, effects out, with no
//! clock, socket, thread or randomness. The simulator, the checker and the network node all run the
//! same code.
//!
//! There is one file per algorithm. [`Kind`] lists all algorithms, [`shape`] has the topologies
//! they need, and [`machine`] wraps any of them as bytes in, bytes out.

#![warn(clippy::iter_over_hash_type)]

mod algorithm;
mod fields;
mod id;
mod info;
pub mod kind;
pub mod machine;
mod mutant;
mod node_set;
mod outbox;
pub mod shape;
mod violation;

pub mod carvalho_roucairol;
pub mod central;
pub mod chaudhuri_karaata;
pub mod lamport;
pub mod le_lann;
pub mod lodha_kshemkalyani;
pub mod maekawa;
pub mod naimi_trehel;
pub mod neamatollahi;
pub mod neilsen_mizuno;
pub mod raymond;
pub mod ricart_agrawala;
pub mod suzuki_kasami;

pub use algorithm::{Algorithm, Config, Message, Phase, Place, Snapshot, Start};
pub use fields::{Field, FieldKind, Fields, PHASE, Role, Shown, Value};
pub use id::{NodeId, RequestId};
pub use info::{Channels, Info, Preset, Variant, VariantSet};
pub use kind::{Choice, Kind, NameError};
pub use machine::{ByteOutbox, Cluster, Machine};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use node_set::NodeSet;
pub use outbox::{Effect, Outbox};
pub use shape::{Shape, ShapeError};
pub use violation::Violation;
