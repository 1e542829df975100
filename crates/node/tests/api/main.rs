//! The HTTP API over real sockets.

#[path = "../common/alone.rs"]
mod alone;
#[path = "../common/client_hello.rs"]
mod client_hello;
mod cluster;
mod holds;
mod hostile;
mod http;
mod numbers;
#[path = "../common/queue.rs"]
mod queue;
mod quotas;
mod requests;
mod silent;
mod socket;
mod tcp;
mod views;
