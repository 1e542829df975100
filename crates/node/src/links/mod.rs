//! Links between nodes: frames of bytes, each once and in order, over connections that may break at any time.

pub mod frame;
pub mod window;
