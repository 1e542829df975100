//! What can be wrong with a configuration.

use std::io;
use std::time::Duration;

use super::{KeepersError, Kept, NodesError};
use soloist_api::{Address, AddressError, DurationError, NodeName, NodeNameError};
use soloist_core::rules::RuleProblem;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{file} is longer than {limit} bytes: it is no configuration; check the path")]
    TooLong {
        /// The file.
        file: String,
        /// How long it may be.
        limit: u64,
    },
    /// It is no TOML, has a key that means nothing, or a value of the wrong kind.
    #[error("{file}:{line}: {message}, in `{text}`")]
    Form {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
        /// The line's text.
        text: String,
    },
    /// A value cannot be.
    #[error("{file}:{line}: {key}: {problem}")]
    Value {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The setting.
        key: String,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
}

/// What is wrong with a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// A node's name.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// An address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The nodes together.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// A time.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A lock's rule.
    #[error(transparent)]
    Rule(#[from] RuleProblem),
    /// A fixed cluster, as earlier versions had it.
    #[error(
        "[nodes] (a cluster that never changes) is not supported any more, since its fences could fall: \
         list one of these nodes in [keepers] instead, as NAME = \"HOST:PORT\" and the same on every node \
         (three nodes, to survive the loss of one), and give the others address = \"HOST:PORT\"; \
         `soloist init --nodes a=HOST:PORT,b=HOST:PORT` writes such files for you"
    )]
    FixedNodes,
    /// No `[keepers]`.
    #[error(
        "[keepers] is missing: list the nodes that agree on who takes part, as NAME = \"HOST:PORT\" \
         (three; one is enough for a small cluster, which then stops if that node fails)"
    )]
    NoKeepers,
    /// So many keepers do not make sense.
    #[error(transparent)]
    Keepers(#[from] KeepersError),
    /// It is not known where others reach this node.
    #[error(
        "{0:?} is not in [keepers]: say where other nodes reach it, with address = \"HOST:PORT\" at the top"
    )]
    NoAddress(NodeName),
    /// A keeper with two addresses.
    #[error(
        "{address} is not {keeper}, which [keepers] says of this node: make them the same, or take this one away"
    )]
    TwoAddresses {
        /// At the top.
        address: Address,
        /// In `[keepers]`.
        keeper: Address,
    },
    /// Clocks that run too well, or too badly.
    #[error(
        "{0} percent: use a whole number from {least} to {most}",
        least = Kept::DRIFT_LEAST,
        most = Kept::DRIFT_MOST
    )]
    Drift(i64),
    /// Neither `[tls]` nor `insecure`.
    #[error(
        "links need [tls] with ca, certificate and key (`soloist init` makes them); \
         if all nodes are on this machine, insecure = true will do"
    )]
    NoSecurity,
    /// Both of them.
    #[error("insecure = true contradicts [tls]: take one of them away")]
    BothSecurities,
    /// `insecure` between machines.
    #[error(
        "insecure = true is only for nodes on loopback addresses, and {name:?} is at {address}: \
         use [tls] (`soloist init` makes what it needs)"
    )]
    Insecure {
        /// A node elsewhere.
        name: NodeName,
        /// Its address.
        address: Address,
    },
    /// `insecure` where other machines can connect.
    #[error(
        "insecure = true is only for nodes on loopback addresses, and {0} can be reached from other \
         machines: listen on 127.0.0.1, or use [tls] (`soloist init` makes what it needs)"
    )]
    InsecureListen(Address),
    /// Listening on port 0.
    #[error(
        "the address {0} has port 0: what others dial must lead to a port that is known, from 1 to 65535"
    )]
    NoListenPort(Address),
    /// A time out of its range.
    #[error("{given:?} is out of range: use {least:?} to {most:?}")]
    Time {
        /// What was given.
        given: Duration,
        /// The shortest that is allowed.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// A limit that cannot be.
    #[error("{given} cannot be a limit: use a whole number from 1 to {most}")]
    Limit {
        /// The number.
        given: i64,
        /// The greatest that is allowed.
        most: usize,
    },
    /// A path that is empty.
    #[error("the path is empty: give a file, or take the key away")]
    EmptyPath,
    /// A socket's path that the system does not take.
    #[error(
        "the socket's path {path:?} has {bytes} bytes: at most {most} are possible; use a shorter one"
    )]
    SocketPath {
        /// The whole path.
        path: String,
        /// Its length.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// The API's port 0.
    #[error("the address {0} has port 0: clients must know the port, from 1 to 65535")]
    NoApiPort(Address),
    /// The API open to other machines without protection.
    #[error(
        "{address} can be reached from other machines: that needs [api.tls] with certificate and key, \
         and token_file or client_ca ({missing} missing); or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: Address,
        /// What is not there.
        missing: &'static str,
    },
    /// Protection for a TCP address that there is not.
    #[error("it protects api.listen, which is not set: set it, or take this away")]
    NothingToProtect,
}
