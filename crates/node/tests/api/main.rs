//! The HTTP API over real sockets.

mod cluster;
mod golden;
mod holds;
mod hostile;
mod http;
mod quotas;
mod requests;
mod sessions;
mod silent;
mod socket;
mod tcp;
mod views;
