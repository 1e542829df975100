//! Links between nodes: encodings, windows, and real sockets.

mod breaking;
mod buffers;
mod certificates;
mod echo;
mod frame;
mod hello;
mod hostile;
mod later;
mod life_cycle;
mod net;
mod peers;
mod random;
mod refusals;
mod services;
mod window;
