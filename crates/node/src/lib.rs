//! A node of Soloist: named locks, agreed upon with its peers over TLS links.

pub mod config;
pub mod identity;
pub mod links;
