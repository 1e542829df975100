//! A node that is the only keeper of its cluster.

use std::path::Path;

use soloist_api::{Address, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_node::FIRST_START;
use soloist_node::config::{Members, Nodes};

/// Membership settings with which this node bootstraps a cluster of its own. Its store is in
/// `data`.
pub fn alone(name: &NodeName, address: &Address, data: &Path) -> Members {
    std::fs::create_dir_all(data).unwrap();
    std::fs::write(data.join(FIRST_START), "").unwrap();
    Members {
        address: address.clone(),
        keepers: Nodes::new([(name.clone(), address.clone())]).unwrap(),
        data: data.to_owned(),
        lease: Lease::default(),
    }
}
