//! The first message in each direction on every connection between nodes.
//!
//! The dialling node sends [`PREFACE`] and a [`Hello`]; the other answers with a [`Reply`]. Then
//! the protocol that the hello's [`Purpose`] names begins. Hello and reply are each a length (2
//! bytes, little endian, at most [`HELLO_BYTES_MAX`]) followed by that many bytes of postcard.
//!
//! Rules for changes in later releases:
//! - The versions come first in a hello and never move, so that a node can refuse a hello even if
//!   it can read nothing else of it. The layout of [`Reply::Refused`] never changes either.
//! - New fields of a hello, for any purpose, are appended after the last field of [`Hello`], as an
//!   `Option`; new fields of a reply likewise. Readers ignore bytes after the fields they know, and
//!   read missing ones as `None`. So a new field needs no new version.
//! - A change that an older node must not ignore, such as a new purpose or a new meaning of the
//!   messages that follow, raises the highest version. The lowest version is raised when support
//!   for the old one is removed. Both nodes use the lowest version that they have in common, so a
//!   cluster switches when its last node was upgraded.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::ClusterIdentity;

/// The first bytes of every connection between nodes.
pub const PREFACE: [u8; 8] = *b"SOLOIST\0";
/// The versions that this release supports. Versions 1 to 3 had other prefaces. Version 4 had names
/// of locks in changes of epoch, in the keepers' log and in their snapshots.
pub const VERSIONS: Versions = Versions {
    lowest: 5,
    highest: 5,
};
/// Maximum size of a hello or a reply in bytes, excluding its length.
pub const HELLO_BYTES_MAX: usize = 4 << 10;
/// Longer reasons are truncated.
const REASON_BYTES_MAX: usize = 1 << 10;

/// A range of versions, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest version.
    pub lowest: u16,
    /// The highest version.
    pub highest: u16,
}

impl Versions {
    /// Returns the lowest version in both ranges.
    pub fn common(self, other: Versions) -> Option<u16> {
        let lowest = self.lowest.max(other.lowest);
        (lowest <= self.highest.min(other.highest)).then_some(lowest)
    }

    /// Returns whether this version is in the range.
    pub fn contains(self, version: u16) -> bool {
        (self.lowest..=self.highest).contains(&version)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lowest == self.highest {
            write!(f, "version {}", self.lowest)
        } else {
            write!(f, "versions {} to {}", self.lowest, self.highest)
        }
    }
}

/// The first message of the dialling node: its name, the node it wants to reach, and the purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that the dialling node supports.
    pub versions: Versions,
    /// The dialling node.
    pub from: NodeName,
    /// The node that it wants to reach.
    pub to: NodeName,
    /// The dialling node's cluster, or `None` if it belongs to none yet.
    pub cluster: Option<ClusterIdentity>,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// The purpose of a connection, with what its protocol must know first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Frames from one member to another.
    Link {
        /// Hash of what all configurations must agree on.
        fingerprint: [u8; 32],
        /// The dialling node's incarnation. Frames are numbered within a pair of incarnations.
        incarnation: Incarnation,
        /// The incarnation to reach, or `None` for any.
        to_incarnation: Option<Incarnation>,
    },
    /// Connection of a node that looks for the keepers' leader.
    Member {
        /// Hash of what all configurations must agree on.
        fingerprint: [u8; 32],
    },
    /// Raft between keepers.
    Keeper {
        /// The dialling keeper's id.
        from_id: u64,
        /// The id of the keeper to reach.
        to_id: u64,
    },
    /// Connection of a node that cannot reach the keepers' leader and asks a follower to forward to
    /// it. After Welcome, the bytes are those of a connection to the leader, TLS included.
    Forward,
}

impl Purpose {
    /// Name of this kind of connection in log lines.
    pub fn name(&self) -> &'static str {
        match self {
            Purpose::Link { .. } => "link",
            Purpose::Member { .. } => "membership",
            Purpose::Keeper { .. } => "keeper",
            Purpose::Forward => "forward",
        }
    }
}

/// The answer to a hello.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The node accepts the connection, and the protocol begins.
    Welcome {
        /// The version that both nodes use.
        version: u16,
        /// The answering node's cluster, or `None` if it belongs to none yet.
        cluster: Option<ClusterIdentity>,
    },
    /// The node rejects the connection, which then closes.
    Refused(Refusal),
}

/// Why a connection was refused. The layout is the same in all versions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, for a program to read.
    pub code: Code,
    /// The reason, for a person to read: what was refused, and what to do.
    pub reason: String,
    /// The refusing node's cluster. The other node may learn from it that its cluster was replaced.
    pub cluster: Option<ClusterIdentity>,
}

impl Refusal {
    /// Returns whether the refusing node belongs to no cluster yet, as during the first start of a
    /// cluster, or asks to retry a little later.
    pub fn is_early(&self) -> bool {
        match self.code {
            Code::Later => true,
            Code::Cluster => self.cluster.is_none(),
            _ => false,
        }
    }

    /// Creates a refusal without a cluster.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Refusal {
            code,
            reason: reason.into(),
            cluster: None,
        }
    }
}

/// The kind of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub enum Code {
    /// The bytes are not a hello.
    Malformed,
    /// No common version.
    Version,
    /// A wrong name, certificate or role.
    Name,
    /// Another cluster, or another generation of it.
    Cluster,
    /// Another configuration.
    Configuration,
    /// A keeper id that is not, or no longer, what the other side takes it for.
    KeeperId,
    /// Not now; retry a little later.
    Later,
    /// This node does not serve that purpose.
    NotServed,
    /// A code from a later release.
    Other(u16),
}

const CODES: [Code; 8] = [
    Code::Malformed,
    Code::Version,
    Code::Name,
    Code::Cluster,
    Code::Configuration,
    Code::KeeperId,
    Code::Later,
    Code::NotServed,
];

impl From<u16> for Code {
    fn from(number: u16) -> Self {
        let known = CODES.get(usize::from(number));
        known.copied().unwrap_or(Code::Other(number))
    }
}

impl From<Code> for u16 {
    fn from(code: Code) -> u16 {
        match code {
            Code::Malformed => 0,
            Code::Version => 1,
            Code::Name => 2,
            Code::Cluster => 3,
            Code::Configuration => 4,
            Code::KeeperId => 5,
            Code::Later => 6,
            Code::NotServed => 7,
            Code::Other(number) => number,
        }
    }
}

/// Bytes that are not a hello, or not one that this release supports.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HelloError {
    /// The connection does not start with the preface of this release.
    #[error("{}", not_soloist(.0))]
    Preface(Vec<u8>),
    /// The length exceeds the limit.
    #[error("a {what} of {bytes} bytes (maximum: {HELLO_BYTES_MAX})")]
    TooLong {
        /// Hello or reply.
        what: &'static str,
        /// The length announced.
        bytes: usize,
    },
    /// The content cannot be decoded.
    #[error("a {what} that cannot be decoded ({problem}); run the same release on all nodes")]
    Unreadable {
        /// Hello or reply.
        what: &'static str,
        /// Description of the problem.
        problem: String,
    },
    /// No common version.
    #[error("it supports {theirs} of the protocol, and this node {VERSIONS}; {}", upgrade(*.theirs))]
    Version {
        /// The versions of the other node.
        theirs: Versions,
    },
}

fn not_soloist(preface: &[u8]) -> String {
    let begin = preface.escape_ascii();
    // Prefaces of members and keepers of earlier releases.
    match preface {
        b"SOLOMEMB" | b"SOLOKEEP" => format!(
            "a connection that begins with {begin}: it comes from an earlier release; run the \
             same release on all nodes"
        ),
        _ => format!("a connection that begins with {begin}: it does not come from a Soloist node"),
    }
}

fn upgrade(theirs: Versions) -> &'static str {
    if theirs.highest < VERSIONS.lowest {
        "upgrade the node that dialled"
    } else {
        "upgrade this node"
    }
}

/// Decodes the next value and advances past it. The bytes are untrusted.
fn take<T: DeserializeOwned>(what: &'static str, bytes: &mut &[u8]) -> Result<T, HelloError> {
    let unreadable = |error: postcard::Error| HelloError::Unreadable {
        what,
        problem: error.to_string(),
    };
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(unreadable)?;
    *bytes = rest;
    Ok(value)
}

fn with_length(out: &mut Vec<u8>, value: &impl Serialize) {
    let content = postcard::to_allocvec(value).expect("names and reasons are short");
    assert!(content.len() <= HELLO_BYTES_MAX, "a hello is short");
    out.extend_from_slice(&(content.len() as u16).to_le_bytes());
    out.extend_from_slice(&content);
}

impl Hello {
    /// Returns all bytes that the dialling node sends first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = PREFACE.to_vec();
        with_length(&mut bytes, self);
        bytes
    }

    /// Decodes what follows the length. Returns the hello and the version to use.
    pub fn decode(content: &[u8]) -> Result<(Hello, u16), HelloError> {
        let mut rest = content;
        let theirs: Versions = take("hello", &mut rest)?;
        if theirs.lowest > theirs.highest {
            return Err(HelloError::Unreadable {
                what: "hello",
                problem: format!("versions from {} to {}", theirs.lowest, theirs.highest),
            });
        }
        let version = VERSIONS.common(theirs);
        let version = version.ok_or(HelloError::Version { theirs })?;
        let hello = Hello {
            versions: theirs,
            from: take("hello", &mut rest)?,
            to: take("hello", &mut rest)?,
            cluster: take("hello", &mut rest)?,
            purpose: take("hello", &mut rest)?,
        };
        // Fields of a later release may follow.
        Ok((hello, version))
    }
}

impl Reply {
    /// Returns the encoded reply, with its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Reply::Refused(refusal) if refusal.reason.len() > REASON_BYTES_MAX => {
                let reason = cut(&refusal.reason).to_owned();
                let refusal = refusal.clone();
                with_length(&mut bytes, &Reply::Refused(Refusal { reason, ..refusal }));
            }
            reply => with_length(&mut bytes, reply),
        }
        bytes
    }

    /// Decodes what follows the length.
    pub fn decode(content: &[u8]) -> Result<Reply, HelloError> {
        take("reply", &mut &*content)
    }
}

fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

/// A node and the cluster it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party<'a> {
    /// Its name.
    pub name: &'a NodeName,
    /// Its cluster, or `None` if it belongs to none yet.
    pub cluster: Option<ClusterIdentity>,
}

impl fmt::Display for Party<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cluster {
            Some(cluster) => write!(f, "node {} belongs to cluster {cluster}", self.name),
            None => write!(f, "node {} belongs to no cluster yet", self.name),
        }
    }
}

/// Checks whether a node of one cluster may dial a node of another for this purpose. Both nodes
/// make this check with the same arguments.
///
/// - Links need equal identities. If only one node has an identity, the dialling node is told to
///   retry: the node without one is about to learn it.
/// - Keepers need equal identities. A keeper has none only while its store is from a release that
///   had none and the keepers' leader has not chosen one yet.
/// - A member, including one that is forwarded, may have no identity, the same one, or an earlier
///   generation of the same cluster, which it then replaces with the newer one.
pub fn check_cluster(purpose: &Purpose, from: Party<'_>, to: Party<'_>) -> Result<(), Refusal> {
    let (theirs, mine) = (from.cluster, to.cluster);
    let is_allowed = match purpose {
        Purpose::Link { .. } if theirs.is_none() != mine.is_none() => {
            let reason = format!("{from}, and {to}: try again when both have joined");
            return Err(refusal(Code::Later, reason, to));
        }
        Purpose::Link { .. } => theirs == mine,
        Purpose::Keeper { .. } => theirs.is_none() || mine.is_none() || theirs == mine,
        Purpose::Member { .. } | Purpose::Forward => match (theirs, mine) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(theirs), Some(mine)) => theirs == mine || mine.succeeds(&theirs),
        },
    };
    if is_allowed {
        return Ok(());
    }
    let advice = advice(from, to);
    Err(refusal(
        Code::Cluster,
        format!("{from}, and {to}; {advice}"),
        to,
    ))
}

fn refusal(code: Code, reason: String, to: Party<'_>) -> Refusal {
    let cluster = to.cluster;
    Refusal {
        code,
        reason,
        cluster,
    }
}

fn advice(from: Party<'_>, to: Party<'_>) -> String {
    let (Some(theirs), Some(mine)) = (from.cluster, to.cluster) else {
        return format!(
            "a node never changes its cluster by itself: to move {} to the cluster of {}, stop \
             it, remove data/cluster, and start it again",
            from.name, to.name
        );
    };
    if theirs.succeeds(&mine) || mine.succeeds(&theirs) {
        let old = if theirs.succeeds(&mine) { to } else { from };
        return format!(
            "the cluster was recovered, but node {} is still in the previous generation: stop it, \
             move its keeper's store away if it has one, and start it again",
            old.name
        );
    }
    format!(
        "check the addresses in [keepers]; to move {} to the cluster of {}, stop it, remove \
         data/cluster, and start it again",
        from.name, to.name
    )
}
