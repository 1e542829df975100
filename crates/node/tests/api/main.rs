//! The HTTP API over real sockets.

mod cluster;
mod dashboard;
mod golden;
mod holds;
mod hostile;
mod http;
mod page;
mod quotas;
mod requests;
mod sessions;
mod silent;
mod socket;
mod tcp;
mod ui;
mod views;
