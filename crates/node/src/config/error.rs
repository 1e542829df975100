//! Errors in a configuration.

use std::io;
use std::time::Duration;

use super::{Config, KeepersError, Members, NodesError};
use soloist_api::{Address, AddressError, DurationError, NodeName, NodeNameError};
use soloist_core::limits::Limits;
use soloist_core::rules::RuleProblem;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{file} is longer than {limit} bytes, so it is not a configuration; check the path")]
    TooLong {
        /// The file.
        file: String,
        /// The maximum length.
        limit: u64,
    },
    /// The file is not TOML, or it has an unknown key or a value of the wrong type.
    #[error("{file}:{line}: {message}, in `{text}`")]
    Form {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The error.
        message: String,
        /// The line's text.
        text: String,
    },
    /// A value is invalid.
    #[error("{file}:{line}: {key}: {problem}")]
    Value {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The key.
        key: String,
        /// The error.
        problem: Box<Problem>,
    },
}

/// Why a value is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// Invalid node name.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// Invalid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Invalid list of nodes.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// Invalid duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// Invalid rule for locks.
    #[error(transparent)]
    Rule(#[from] RuleProblem),
    /// A fixed cluster, which earlier versions supported.
    #[error(
        "[nodes] (a cluster with fixed members) is no longer supported, because its fences could \
         decrease: list one of these nodes in [keepers] instead, as NAME = \"HOST:PORT\" and the \
         same on every node (three nodes, to tolerate the loss of one), and give the others \
         address = \"HOST:PORT\"; `soloist init --nodes a=HOST:PORT,b=HOST:PORT` writes such \
         files"
    )]
    FixedNodes,
    /// `[keepers]` is missing.
    #[error(
        "[keepers] is missing: list the nodes that store the list of members, as NAME = \
         \"HOST:PORT\" (three; one is enough for a small cluster, which then stops if that node \
         fails)"
    )]
    NoKeepers,
    /// Invalid number of keepers.
    #[error(transparent)]
    Keepers(#[from] KeepersError),
    /// The address at which others reach this node is missing.
    #[error(
        "{0:?} is not in [keepers]: set address = \"HOST:PORT\" at the top, where other nodes \
         reach it"
    )]
    NoAddress(NodeName),
    /// A keeper has two different addresses.
    #[error(
        "{address} differs from {keeper}, this node's address in [keepers]: make them the same, \
         or remove this one"
    )]
    TwoAddresses {
        /// The address at the top.
        address: Address,
        /// The address in `[keepers]`.
        keeper: Address,
    },
    /// The number of threads is out of range.
    #[error(
        "invalid number of threads {0}: use a whole number from 1 to {most}",
        most = Config::IO_THREADS_MOST
    )]
    IoThreads(i64),
    /// The clock drift is out of range.
    #[error(
        "invalid drift of {0} percent: use a whole number from {least} to {most}",
        least = Members::DRIFT_LEAST,
        most = Members::DRIFT_MOST
    )]
    Drift(i64),
    /// Neither `[tls]` nor `insecure` is set.
    #[error(
        "links need [tls] with ca, certificate and key (`soloist init` creates them); if all \
         nodes run on this machine, insecure = true is enough"
    )]
    NoSecurity,
    /// Both `[tls]` and `insecure` are set.
    #[error("insecure = true contradicts [tls]: remove one of them")]
    BothSecurities,
    /// `insecure` with a node on another machine.
    #[error(
        "insecure = true is only for nodes on loopback addresses, but {name:?} is at {address}: \
         use [tls] (`soloist init` creates the files)"
    )]
    Insecure {
        /// A node that is not on loopback.
        name: NodeName,
        /// Its address.
        address: Address,
    },
    /// `insecure` on an address to which other machines can connect.
    #[error(
        "insecure = true is only for nodes on loopback addresses, but {0} can be reached from \
         other machines: listen on 127.0.0.1, or use [tls] (`soloist init` creates the files)"
    )]
    InsecureListen(Address),
    /// Listening on port 0.
    #[error("the address {0} has port 0: other nodes must know the port; use 1 to 65535")]
    NoListenPort(Address),
    /// A duration is out of range.
    #[error("{given:?} is out of range: use {least:?} to {most:?}")]
    Time {
        /// The value given.
        given: Duration,
        /// The minimum.
        least: Duration,
        /// The maximum.
        most: Duration,
    },
    /// A limit is out of range.
    #[error("invalid limit {given}: use a whole number from 1 to {most}", most = Limits::MOST)]
    Limit {
        /// The value given.
        given: i64,
    },
    /// A path is empty.
    #[error("the path is empty: name a file, or remove the key")]
    EmptyPath,
    /// The socket's path is too long for the system.
    #[error("the socket's path {path:?} has {bytes} bytes (maximum: {most}); use a shorter one")]
    SocketPath {
        /// The full path.
        path: String,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        most: usize,
    },
    /// The socket's mode is not one that can be used.
    #[error(
        "invalid socket mode {0:?}: use three octal digits that let its owner read and write, \
         such as \"660\""
    )]
    SocketMode(String),
    /// The socket's group is empty.
    #[error("the group is empty: use its name or number, or remove the key")]
    EmptyGroup,
    /// The API has port 0.
    #[error("the address {0} has port 0: clients must know the port; use 1 to 65535")]
    NoApiPort(Address),
    /// Other machines could use the API without TLS or without authentication.
    #[error(
        "{address} can be reached from other machines: that needs [api.tls] with certificate and \
         key, and token_file or client_ca ({missing} missing); or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: Address,
        /// The missing settings.
        missing: &'static str,
    },
    /// Protection for a TCP address that is not set.
    #[error("it has no effect without api.listen: set that, or remove this")]
    NothingToProtect,
    /// The dashboard's page without a TCP address.
    #[error("a browser cannot use the Unix socket: set api.listen, or run `soloist ui` instead")]
    NoBrowser,
}
