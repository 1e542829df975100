//! The HTTP API over real sockets.

mod cluster;
mod holds;
mod http;
