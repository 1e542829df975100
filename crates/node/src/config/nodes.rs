//! A list of nodes with their addresses.

use soloist_algorithms::NodeId;

use soloist_api::{Address, NodeName};

/// Nodes sorted by name. A node's index in that order is its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    sorted: Vec<(NodeName, Address)>,
}

/// Why a list of nodes is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodesError {
    /// It is empty.
    #[error("no nodes: list all of them, including this one, as NAME = \"HOST:PORT\"")]
    None,
    /// It has too many nodes.
    #[error("too many nodes: {count} (maximum: {})", Nodes::MOST)]
    TooMany {
        /// The number of nodes.
        count: usize,
    },
    /// Two nodes have the same name.
    #[error("two nodes have the name {name:?}: give each its own name")]
    SameName {
        /// The name.
        name: NodeName,
    },
    /// Two nodes have the same address.
    #[error(
        "{name:?} and {other:?} have the same address {address}: give each node its own address"
    )]
    SameAddress {
        /// One node.
        name: NodeName,
        /// The other node.
        other: NodeName,
        /// Their address.
        address: Address,
    },
    /// A node has port 0.
    #[error(
        "{name:?} has the address {address} with port 0: peers must know the port; use 1 to 65535"
    )]
    NoPort {
        /// The node.
        name: NodeName,
        /// Its address.
        address: Address,
    },
    /// A node has an address that cannot be dialled.
    #[error(
        "{name:?} has the address {address}, which means every address: use the one that peers dial"
    )]
    Unspecified {
        /// The node.
        name: NodeName,
        /// Its address.
        address: Address,
    },
}

impl NodesError {
    /// Returns the node that the error is about, if any.
    pub fn node(&self) -> Option<&NodeName> {
        match self {
            NodesError::None | NodesError::TooMany { .. } => None,
            NodesError::SameName { name }
            | NodesError::SameAddress { name, .. }
            | NodesError::NoPort { name, .. }
            | NodesError::Unspecified { name, .. } => Some(name),
        }
    }
}

impl Nodes {
    /// The maximum number of nodes in a cluster.
    pub const MOST: usize = 4096;

    /// Creates the list from nodes in any order.
    pub fn new(nodes: impl IntoIterator<Item = (NodeName, Address)>) -> Result<Self, NodesError> {
        let mut sorted: Vec<_> = nodes.into_iter().collect();
        sorted.sort();
        if sorted.is_empty() {
            return Err(NodesError::None);
        }
        if sorted.len() > Self::MOST {
            let count = sorted.len();
            return Err(NodesError::TooMany { count });
        }
        for pair in sorted.windows(2) {
            if pair[0].0 == pair[1].0 {
                let name = pair[0].0.clone();
                return Err(NodesError::SameName { name });
            }
        }
        check_addresses(&sorted)?;
        Ok(Nodes { sorted })
    }

    /// Returns the number of nodes, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Iterates over all nodes in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NodeId, &NodeName, &Address)> {
        let numbered = self.sorted.iter().enumerate();
        numbered.map(|(index, (name, address))| (number(index), name, address))
    }

    /// Returns the number of the node of this name.
    pub fn id(&self, name: &str) -> Option<NodeId> {
        let found = self
            .sorted
            .binary_search_by(|(other, _)| other.as_str().cmp(name));
        found.ok().map(number)
    }

    /// Returns the name of a node.
    pub fn name(&self, node: NodeId) -> Option<&NodeName> {
        self.sorted.get(node.index()).map(|(name, _)| name)
    }

    /// Returns the address of a node.
    pub fn address(&self, node: NodeId) -> Option<&Address> {
        self.sorted.get(node.index()).map(|(_, address)| address)
    }
}

fn number(index: usize) -> NodeId {
    NodeId::new(u32::try_from(index).expect("there are at most 4096 nodes"))
}

fn check_addresses(nodes: &[(NodeName, Address)]) -> Result<(), NodesError> {
    for (name, address) in nodes {
        let (name, address) = (name.clone(), address.clone());
        if address.port == 0 {
            return Err(NodesError::NoPort { name, address });
        }
        if address.is_unspecified() {
            return Err(NodesError::Unspecified { name, address });
        }
    }
    let mut by_address: Vec<_> = nodes.iter().map(|(name, at)| (at, name)).collect();
    by_address.sort();
    for pair in by_address.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Err(NodesError::SameAddress {
                name: pair[1].1.clone(),
                other: pair[0].1.clone(),
                address: pair[0].0.clone(),
            });
        }
    }
    Ok(())
}
