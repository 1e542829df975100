//! A node that is the only keeper of its cluster.

use std::path::Path;

use soloist_node::FIRST_START;
use soloist_node::config::{Address, Kept, NodeName, Nodes};
use soloist_node::epochs::lease::Lease;

/// Lets the node of this name found its cluster alone, with its store in `data`.
pub fn alone(name: &NodeName, address: &Address, data: &Path) -> Kept {
    std::fs::create_dir_all(data).unwrap();
    std::fs::write(data.join(FIRST_START), "").unwrap();
    Kept {
        address: address.clone(),
        keepers: Nodes::new([(name.clone(), address.clone())]).unwrap(),
        data: data.to_owned(),
        lease: Lease::default(),
    }
}
