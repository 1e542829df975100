//! The HTTP API over real sockets.

mod cluster;
mod holds;
mod hostile;
mod http;
mod socket;
mod tcp;
mod views;
