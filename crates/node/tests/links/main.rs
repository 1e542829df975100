//! Links between nodes: the bytes, the windows, and real sockets.

mod frame;
mod window;
