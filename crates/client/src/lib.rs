//! Soloist's client, and the gate that keeps late holders away from a resource.

pub mod gate;
