//! The keepers: their store alone, and several of them over real sockets.

mod changes;
mod cluster;
mod disk;
mod faults;
mod hostile;
mod net;
mod recovery;
mod store;
mod terms;
