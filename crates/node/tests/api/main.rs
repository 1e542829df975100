//! The HTTP API over real sockets.

#[path = "../common/alone.rs"]
mod alone;
mod cluster;
mod holds;
mod hostile;
mod http;
mod quotas;
mod requests;
mod silent;
mod socket;
mod tcp;
mod views;
