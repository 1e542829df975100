//! Simulates, measures and searches distributed mutual exclusion algorithms: the very state
//! machines of [`soloist_algorithms`] that also run on the network.

pub mod check;
pub mod network;
pub mod scenario;
pub mod world;
