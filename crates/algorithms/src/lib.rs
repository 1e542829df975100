//! Distributed mutual exclusion algorithms as pure state machines.
//!
//! Each [`Algorithm`] is one node's part for one lock: events in, effects out, no clock, no socket,
//! no thread, no randomness. A simulator, a checker and a network node drive the same code.
//!
//! One file an algorithm; [`Kind`] lists them all; [`shape`] has the arrangements of nodes they need;
//! [`machine`] turns any of them into bytes in, bytes out.

mod algorithm;
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
