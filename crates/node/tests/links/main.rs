//! Links between nodes: the bytes, the windows, and real sockets.

mod breaking;
mod buffers;
mod certificates;
mod echo;
mod frame;
mod hostile;
mod life;
mod net;
#[path = "../common/proxy.rs"]
mod proxy;
mod refusals;
mod window;
