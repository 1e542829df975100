//! Configuration of a node: a TOML file, or a [`Config`] that a program constructs.
//!
//! Every node needs its `data` folder on a disk that survives restarts: it records its cluster and
//! epoch in `data/cluster`. A keeper also stores the keepers' log there.
//!
//! ```
//! use soloist_node::config::Config;
//!
//! let text = r#"
//! name = "d"                          # this node
//! address = "10.0.0.4:7401"           # where others dial it; keepers have it in [keepers]
//! listen = "0.0.0.0:7401"             # where it waits for the others, if not at that address
//! data = "data"                       # folder for persistent state; this is the default
//! lease = "3s"                        # a node that fails is evicted after this; 500ms to 1h
//! drift = 5                           # how far clock rates may differ, in percent; 1 to 50
//! io_threads = 1                      # threads of `soloist node` for all connections
//!
//! [keepers]                           # 3 or 5 nodes that replicate the membership (1 in a
//! a = "10.0.0.1:7401"                 # small cluster); other nodes join and leave freely
//! b = "10.0.0.2:7401"
//! c = "10.0.0.3:7401"
//!
//! [tls]                               # or: insecure = true at the top, if all addresses are loopback
//! ca = "ca.pem"                       # paths are relative to this file
//! certificate = "node.pem"
//! key = "node.key"
//!
//! [locks]
//! algorithm = "raymond"               # for all locks; this is the default
//! variant = ""                        # variants, separated by commas
//! shape = ""                          # as in `soloist lab run --shape`; empty: the algorithm's own
//! max_local_turns = 4                 # waiters of its own that a node serves before it passes on
//! ttl_default = "10s"                 # how long a hold lasts if it is not renewed
//! ttl_max = "1h"                      # a client may not ask for more
//!
//! [[lock]]                            # as many as you like; the first that matches counts
//! pattern = "billing/*"               # '*' within one part of the path, '**' over parts
//! algorithm = "fair"                  # variant, shape and max_local_turns may stand here too
//!
//! [api]
//! socket = "soloist.sock"             # Unix socket; this is the default
//! listen = "127.0.0.1:7400"           # TCP, if wanted; beyond loopback only with [api.tls]
//! token_file = "token"                # and a token in a file, or client_ca in [api.tls]
//!
//! [limits]                            # more is refused with status 429; these are the defaults
//! holds = 400000                      # on this node, with the waiters that may become holds
//! waiters = 100000
//! name_bytes = 134217728              # in the names of held and awaited locks
//! client_holds = 100000               # per client: a Unix user, the token, or the name in
//! client_waiters = 10000              # a certificate
//! client_name_bytes = 33554432
//!
//! [metrics]
//! lock_names = false                  # lock names as labels
//! "#;
//! let config = Config::parse(text, "soloist.toml".as_ref()).unwrap();
//! assert_eq!(config.members.keepers.len(), 3);
//! assert_eq!(config.address().to_string(), "10.0.0.4:7401");
//! assert_eq!(config.rules.rule("nightly").choice().name, "raymond");
//! assert_eq!(config.limits, soloist_core::limits::Limits::default());
//! ```

mod error;
mod file;
mod limits;
mod members;
mod nodes;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use soloist_transport::identity::{Identity, IdentityError};
use soloist_transport::sha256;

// The parts of a configuration, for programs that construct one.
pub use soloist_api::{Address, NodeName};
pub use soloist_core::epochs::lease::Lease;
pub use soloist_core::limits::{Limits, Quota};
pub use soloist_core::rules::{RuleSettings, Rules};

pub use error::{ConfigError, Problem};
pub use members::{KeepersError, Members};
pub use nodes::{Nodes, NodesError};

/// Version of the protocol between nodes. It is part of what they must agree on.
pub const PROTOCOL_VERSION: u32 = 1;

/// The configuration of a node. [`load`](Self::load) checks that it is consistent; a program that
/// constructs one is responsible for that itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of this node.
    pub name: NodeName,
    /// The keepers, and how this node joins them.
    pub members: Members,
    /// Address on which this node listens, if it differs from the one that others dial: behind NAT,
    /// or when it listens on all addresses of its machine.
    pub listen: Option<Address>,
    /// How links are protected.
    pub security: Security,
    /// The algorithm of each lock.
    pub rules: Rules,
    /// Time to live of holds.
    pub ttl: Ttl,
    /// Addresses of the API.
    pub api: Api,
    /// Quotas for clients.
    pub limits: Limits,
    /// Settings of metrics.
    pub metrics: Metrics,
    /// Number of threads that `soloist node` runs on. A node inside a program runs on the program's
    /// own runtime.
    pub io_threads: usize,
}

/// How links are protected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Security {
    /// Unprotected; only between loopback addresses.
    Insecure,
    /// TLS with certificates on both sides.
    Tls(TlsFiles),
}

/// A node's certificate, key and CA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The cluster's CA.
    pub ca: PathBuf,
    /// The node's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How long a hold lasts without being renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ttl {
    /// Used if the client does not set one.
    pub default: Duration,
    /// The maximum that a client may set.
    pub max: Duration,
}

impl Ttl {
    /// The minimum of both settings.
    pub const LEAST: Duration = Duration::from_millis(1);
    /// The maximum of both settings: a year.
    pub const MOST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
}

impl Default for Ttl {
    fn default() -> Self {
        Ttl {
            default: Duration::from_secs(10),
            max: Duration::from_secs(60 * 60),
        }
    }
}

/// Addresses of the API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Api {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The users that may connect to the Unix socket.
    pub access: SocketAccess,
    /// The TCP address, if any.
    pub tcp: Option<ApiTcp>,
    /// Whether the dashboard's page is served at `/ui`.
    pub ui: bool,
}

/// The users that may connect to the Unix socket, as permissions of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketAccess {
    /// The mode.
    pub mode: u32,
    /// The group, by name or number. `None` for that of the node's process.
    pub group: Option<String>,
}

impl SocketAccess {
    /// Default of [`mode`](Self::mode): only the node's user.
    pub const USER_ONLY: u32 = 0o600;
    /// Default of [`mode`](Self::mode) if a group is given.
    pub const WITH_GROUP: u32 = 0o660;
}

impl Default for SocketAccess {
    fn default() -> Self {
        SocketAccess {
            mode: Self::USER_ONLY,
            group: None,
        }
    }
}

impl Api {
    /// Default of [`socket`](Self::socket).
    pub const SOCKET: &'static str = "soloist.sock";

    /// The API on this socket only, for this process's user only.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Api {
            socket: socket.into(),
            access: SocketAccess::default(),
            tcp: None,
            ui: false,
        }
    }
}

/// The API over TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiTcp {
    /// The address.
    pub listen: Address,
    /// File with the token that clients must send.
    pub token_file: Option<PathBuf>,
    /// The API's certificate, if it uses TLS.
    pub tls: Option<ApiTls>,
}

impl ApiTcp {
    /// Returns which settings are missing if other machines could use the API without
    /// authentication. A token needs TLS, because an eavesdropper could use it.
    pub fn unprotected(&self) -> Option<&'static str> {
        if self.listen.is_loopback() {
            return None;
        }
        match &self.tls {
            None => Some("[api.tls] is"),
            Some(tls) if tls.client_ca.is_none() && self.token_file.is_none() => {
                Some("token_file and client_ca are")
            }
            Some(_) => None,
        }
    }
}

/// The API's certificate, and the CA of its clients' certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiTls {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// If set, clients must present a certificate issued by this CA.
    pub client_ca: Option<PathBuf>,
}

/// Settings of metrics.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Whether lock names are labels. There may be a million of them.
    pub lock_names: bool,
}

/// Maximum length of a configuration in bytes. Real ones are much shorter.
const LONGEST: u64 = 4 << 20;

impl Config {
    /// The default of `io_threads`. Locks need little computation, and a message between threads
    /// costs more than handling it.
    pub const IO_THREADS: usize = 1;

    /// The largest `io_threads`.
    pub const IO_THREADS_MOST: usize = 1024;

    /// Reads a configuration file. Paths in it are relative to its folder.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let unreadable = |source| ConfigError::Unreadable {
            file: name.clone(),
            source,
        };
        let mut bytes = Vec::new();
        let open = File::open(file).map_err(unreadable)?;
        let length = open.take(LONGEST + 1).read_to_end(&mut bytes);
        if length.map_err(unreadable)? as u64 > LONGEST {
            return Err(ConfigError::TooLong {
                file: name,
                limit: LONGEST,
            });
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        Self::parse(&text, file)
    }

    /// Parses a configuration from the text of this file.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let folder = file.parent().unwrap_or(Path::new(""));
        file::parse(text, &file.display().to_string(), folder)
    }

    /// Returns the text of this configuration for another node: with this name and address, and
    /// otherwise unchanged.
    pub fn text_for(
        text: &str,
        file: &Path,
        name: &NodeName,
        address: &Address,
    ) -> Result<String, ConfigError> {
        file::text_for(text, &file.display().to_string(), name, address)
    }

    /// Returns the address at which other nodes reach this one.
    pub fn address(&self) -> &Address {
        &self.members.address
    }

    /// Returns the address on which this node listens.
    pub fn listens_on(&self) -> &Address {
        self.listen.as_ref().unwrap_or_else(|| self.address())
    }

    /// Returns what all nodes must agree on, as text, so that a person can find a difference.
    pub fn agreement(&self) -> String {
        let mut text = format!("soloist protocol {PROTOCOL_VERSION}\n");
        self.members.agree(&mut text);
        text + self.rules.agreement()
    }

    /// Returns the SHA-256 of the [agreement](Self::agreement). Nodes compare it before they talk.
    pub fn fingerprint(&self) -> [u8; 32] {
        sha256(self.agreement().as_bytes())
    }

    /// Loads this node's certificate and key. Returns `None` if links are not protected.
    pub fn identity(&self) -> Result<Option<Identity>, IdentityError> {
        let Security::Tls(files) = &self.security else {
            return Ok(None);
        };
        let identity = Identity::load(&files.ca, &files.certificate, &files.key)?;
        if identity.name() != self.name.as_str() {
            return Err(IdentityError::OtherNode {
                file: files.certificate.display().to_string(),
                found: identity.name().to_owned(),
                wanted: self.name.clone(),
            });
        }
        Ok(Some(identity))
    }
}
