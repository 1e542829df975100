//! The keepers: the store by itself, and several keepers over real sockets.

mod changes;
mod cluster;
mod disk;
mod far_terms;
mod faults;
mod former;
mod golden;
mod handover;
mod hostile;
mod migration;
mod net;
mod recovery;
mod relay;
mod store;
mod terms;
