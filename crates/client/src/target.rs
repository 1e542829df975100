//! Which node to connect to, and how to authenticate.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hyper::http::Uri;

/// Socket of the node that the system runs.
const SYSTEM_SOCKET: &str = "/run/soloist/soloist.sock";

/// Socket of a node in the working folder: the default in a node's configuration.
const LOCAL_SOCKET: &str = "soloist.sock";

/// Name of the cluster of `soloist up` as a target.
const UP: &str = "up";

/// Maximum length of a token, far above what is used in practice.
const TOKEN_BYTES_MAX: u64 = 4096;

/// A node to connect to, or several nodes of a cluster: addresses, and how to authenticate.
///
/// ```
/// use soloist_client::Target;
///
/// assert!(Target::parse("unix:/run/soloist/soloist.sock").is_ok());
/// assert!(Target::parse("./soloist.sock").is_ok());
/// assert!(Target::parse("https://10.0.0.1:7400").is_ok());
/// let error = Target::parse("https://10.0.0.1").unwrap_err();
/// assert!(error.to_string().contains("port"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Addresses, tried in this order.
    pub(crate) addresses: Vec<ApiAddress>,
    pub(crate) token: Option<Token>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
}

/// Address of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ApiAddress {
    Unix { socket: PathBuf, origin: Origin },
    Tcp { host: String, port: u16, tls: bool },
}

/// Why a socket is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The user named it.
    Named,
    /// It belongs to the node that the system runs.
    System,
    /// It belongs to a node in the working folder.
    Folder,
    /// It belongs to the cluster of `soloist up`, which is for experiments: the last resort.
    Up,
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiAddress::Unix { socket, .. } => write!(f, "unix:{}", socket.display()),
            ApiAddress::Tcp { host, port, tls } => {
                let scheme = if *tls { "https" } else { "http" };
                if host.contains(':') {
                    write!(f, "{scheme}://[{host}]:{port}")
                } else {
                    write!(f, "{scheme}://{host}:{port}")
                }
            }
        }
    }
}

/// A secret token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The target is neither a socket nor a URL.
    #[error(
        "invalid target {text:?}: {problem}; \
         use unix:/path/to.sock, /path/to.sock, https://host:port or up, or several with commas"
    )]
    Form {
        /// The target, truncated.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An environment variable is not UTF-8.
    #[error("the environment variable {0} is not valid UTF-8")]
    NotUtf8(&'static str),
    /// The token contains characters that cannot be sent, or its length is wrong.
    #[error(
        "invalid token in {0}: use one line of 1 to {TOKEN_BYTES_MAX} visible ASCII characters"
    )]
    Token(String),
    /// The token would be sent over the network unencrypted.
    #[error("the token for {0} would be sent unencrypted: use https, or do not set a token")]
    TokenInTheClear(String),
    /// No CA was given to verify the node's certificate.
    #[error(
        "no CA to verify {0}: set SOLOIST_CA to the file of the cluster's CA, made by `soloist init`"
    )]
    NoCa(String),
    /// Only one of certificate and key was given.
    #[error(
        "a client certificate needs its key: set both SOLOIST_CERTIFICATE and SOLOIST_KEY, or neither"
    )]
    HalfCertificate,
    /// A file cannot be read.
    #[error("cannot read {what} from {}: {source}", .file.display())]
    File {
        /// Expected content.
        what: &'static str,
        /// Path of the file.
        file: PathBuf,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The CA, the certificate and its key, or the host name cannot be used for TLS.
    #[error("cannot use TLS with {address}: {problem}")]
    Tls {
        /// Address of the node.
        address: String,
        /// Description of the problem.
        problem: String,
    },
}

/// The node that the system runs, or the one in the working folder (`soloist.sock`). If both
/// answer, connecting fails. The cluster of `soloist up` is used only if neither of them has a
/// socket.
impl Default for Target {
    fn default() -> Self {
        let unix = |socket, origin| ApiAddress::Unix { socket, origin };
        Target::at(vec![
            unix(SYSTEM_SOCKET.into(), Origin::System),
            unix(LOCAL_SOCKET.into(), Origin::Folder),
            unix(Target::announced(), Origin::Up),
        ])
    }
}

impl Target {
    fn at(addresses: Vec<ApiAddress>) -> Self {
        Target {
            addresses,
            token: None,
            ca: None,
            certificate: None,
        }
    }

    /// Path of the socket by which this user's processes find the cluster of `soloist up`.
    pub fn announced() -> PathBuf {
        let folder = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
        let folder = folder.unwrap_or_else(|| OsString::from("/tmp"));
        let user = rustix::process::getuid().as_raw();
        Path::new(&folder).join(format!("soloist-{user}/up.sock"))
    }

    /// Parses `unix:/path`, a path that contains a `/`, `http://host:port`, `https://host:port`, or
    /// `up` for the cluster of `soloist up`. Several nodes are separated by commas: if one stops or
    /// dies, the client continues on the next.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if !text.contains(',') {
            return Self::parse_one(text);
        }
        let targets = text.split(',').map(|text| Self::parse_one(text.trim()));
        let targets: Result<Vec<Target>, TargetError> = targets.collect();
        Ok(Self::any_of(targets?))
    }

    /// Several nodes of a cluster, which all accept the credentials of the first: if one stops or
    /// dies, the client continues on the next.
    pub fn any_of(targets: impl IntoIterator<Item = Target>) -> Self {
        let mut targets = targets.into_iter();
        let mut first = targets.next().unwrap_or_default();
        first
            .addresses
            .extend(targets.flat_map(|target| target.addresses));
        first
    }

    /// The nodes that this names, each as a target of its own. A target that names no node is
    /// returned as it is.
    pub fn nodes(&self) -> Vec<Target> {
        if !self.is_list() {
            return vec![self.clone()];
        }
        let alone = |address: &ApiAddress| Target {
            addresses: vec![address.clone()],
            ..self.clone()
        };
        self.addresses.iter().map(alone).collect()
    }

    /// Whether this names several nodes, as opposed to addresses where a node may be.
    pub(crate) fn is_list(&self) -> bool {
        self.addresses.len() > 1 && self.addresses.iter().all(ApiAddress::is_named)
    }

    fn parse_one(text: &str) -> Result<Self, TargetError> {
        let wrong = |problem| TargetError::Form {
            text: text.chars().take(200).collect(),
            problem,
        };
        if text == UP {
            return Ok(Target::socket(Target::announced()));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(wrong("no path"));
            }
            return Ok(Target::socket(path));
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return if text.contains('/') {
                Ok(Target::socket(text))
            } else {
                Err(wrong(
                    "neither a scheme nor a path (put ./ before a socket in this folder)",
                ))
            };
        };
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("unknown scheme")),
        };
        let uri: Uri = text.parse().map_err(|_| wrong("not a URL"))?;
        let extra = uri
            .path_and_query()
            .is_some_and(|path| path.as_str() != "/");
        let user = uri
            .authority()
            .is_some_and(|all| all.as_str().contains('@'));
        if extra || user {
            return Err(wrong("more than a host and a port"));
        }
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().filter(|port| *port != 0);
        match port {
            _ if host.is_empty() => Err(wrong("no host")),
            None => Err(wrong("missing or invalid port (1 to 65535)")),
            Some(port) => Ok(Target::at(vec![ApiAddress::Tcp {
                host: host.to_owned(),
                port,
                tls,
            }])),
        }
    }

    /// A node's Unix socket.
    pub fn socket(path: impl Into<PathBuf>) -> Self {
        Target::at(vec![ApiAddress::Unix {
            socket: path.into(),
            origin: Origin::Named,
        }])
    }

    /// Reads the target from the environment.
    ///
    /// | variable | meaning |
    /// |---|---|
    /// | `SOLOIST_API` | the target, see [`parse`](Target::parse); default: [`Target::default`] |
    /// | `SOLOIST_TOKEN` | the token |
    /// | `SOLOIST_TOKEN_FILE` | file with the token, if `SOLOIST_TOKEN` is not set |
    /// | `SOLOIST_CA` | file with the CA of the node's certificate |
    /// | `SOLOIST_CERTIFICATE`, `SOLOIST_KEY` | files with the client's certificate and its key |
    pub fn from_env() -> Result<Self, TargetError> {
        match variable("SOLOIST_API")? {
            Some(text) => Target::parse(&text)?.with_env(),
            None => Target::default().with_env(),
        }
    }

    /// Adds token and certificates from the environment, see [`from_env`](Target::from_env).
    pub fn with_env(mut self) -> Result<Self, TargetError> {
        if let Some(token) = variable("SOLOIST_TOKEN")? {
            self = self.with_token(&token)?;
        } else if let Some(file) = env::var_os("SOLOIST_TOKEN_FILE") {
            self = self.with_token_file(Path::new(&file))?;
        }
        if let Some(ca) = env::var_os("SOLOIST_CA") {
            self = self.with_ca(ca);
        }
        let certificate = env::var_os("SOLOIST_CERTIFICATE");
        match (certificate, env::var_os("SOLOIST_KEY")) {
            (Some(certificate), Some(key)) => Ok(self.with_certificate(certificate, key)),
            (None, None) => Ok(self),
            _ => Err(TargetError::HalfCertificate),
        }
    }

    /// Authenticates with this token.
    pub fn with_token(self, token: &str) -> Result<Self, TargetError> {
        self.with_token_from(token, "SOLOIST_TOKEN")
    }

    /// Authenticates with the token in this file.
    pub fn with_token_file(self, file: &Path) -> Result<Self, TargetError> {
        let unreadable = |source: io::Error| TargetError::File {
            what: "a token",
            file: file.to_owned(),
            source: source.into(),
        };
        let mut text = String::new();
        let mut open = fs::File::open(file)
            .map(|open| io::Read::take(open, TOKEN_BYTES_MAX + 2))
            .map_err(unreadable)?;
        io::Read::read_to_string(&mut open, &mut text).map_err(unreadable)?;
        self.with_token_from(text.trim_end(), &file.display().to_string())
    }

    fn with_token_from(mut self, token: &str, source: &str) -> Result<Self, TargetError> {
        let fits = (1..=TOKEN_BYTES_MAX).contains(&(token.len() as u64));
        if !fits || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Token(source.to_owned()));
        }
        self.token = Some(Token(token.to_owned()));
        Ok(self)
    }

    /// Accepts nodes whose certificate was issued by the CA in this file.
    pub fn with_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Authenticates with the certificate and key in these files.
    pub fn with_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }
}

impl ApiAddress {
    /// Returns why the socket must not be used, if another user may have created it.
    pub(crate) fn planted(&self) -> Option<&'static str> {
        // Only root can create a socket in the system's folder.
        let ApiAddress::Unix {
            socket,
            origin: Origin::Folder | Origin::Up,
        } = self
        else {
            return None;
        };
        let me = rustix::process::getuid().as_raw();
        let metadata = fs::symlink_metadata(socket).ok()?;
        let mine = metadata.uid() == me || metadata.uid() == 0;
        (!mine).then_some("belongs to another user; name it in SOLOIST_API to use it anyway")
    }

    /// Returns whether the user named it.
    fn is_named(&self) -> bool {
        !matches!(self, ApiAddress::Unix { origin, .. } if *origin != Origin::Named)
    }

    /// Returns whether this is the cluster of `soloist up`, tried as the last resort.
    pub(crate) fn is_up(&self) -> bool {
        let ApiAddress::Unix { origin, .. } = self else {
            return false;
        };
        *origin == Origin::Up
    }

    /// Returns whether the socket exists, even if no node listens on it. Always true for TCP.
    pub(crate) fn exists(&self) -> bool {
        match self {
            ApiAddress::Unix { socket, .. } => fs::symlink_metadata(socket).is_ok(),
            ApiAddress::Tcp { .. } => true,
        }
    }

    /// Returns whether both are the same socket, even under different paths.
    pub(crate) fn is_same(&self, other: &ApiAddress) -> bool {
        let (ApiAddress::Unix { socket, .. }, ApiAddress::Unix { socket: other, .. }) =
            (self, other)
        else {
            return self == other;
        };
        let same = |one: &Path| fs::metadata(one).map(|found| (found.dev(), found.ino()));
        matches!((same(socket), same(other)), (Ok(one), Ok(other)) if one == other)
    }

    /// Returns whether traffic to this address stays on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            ApiAddress::Unix { .. } => true,
            ApiAddress::Tcp { host, .. } => {
                let address: Result<IpAddr, _> = host.parse();
                host == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

fn variable(name: &'static str) -> Result<Option<String>, TargetError> {
    match env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(TargetError::NotUtf8(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> String {
        Target::parse(text).unwrap().addresses[0].to_string()
    }

    #[test]
    fn targets_are_parsed() {
        assert_eq!(address("unix:/a/b.sock"), "unix:/a/b.sock");
        assert_eq!(address("unix:///a/b.sock"), "unix:/a/b.sock");
        assert_eq!(address("unix:b.sock"), "unix:b.sock");
        assert_eq!(address("./b.sock"), "unix:./b.sock");
        assert_eq!(address("https://host:7400/"), "https://host:7400");
        assert_eq!(address("http://[::1]:7400"), "http://[::1]:7400");
    }

    #[test]
    fn several_nodes_are_separated_by_commas() {
        let target = Target::parse("unix:/a.sock, https://host:7400,./b.sock").unwrap();
        let addresses: Vec<String> = target.addresses.iter().map(ApiAddress::to_string).collect();
        assert_eq!(
            addresses,
            ["unix:/a.sock", "https://host:7400", "unix:./b.sock"]
        );
        assert!(target.is_list());
        let nodes = target.nodes();
        assert_eq!((nodes.len(), nodes[1].addresses.len()), (3, 1));
        assert_eq!(nodes[1].addresses[0].to_string(), "https://host:7400");
        assert_eq!(Target::default().nodes(), [Target::default()]);
        assert!(!Target::parse("./b.sock").unwrap().is_list());
        assert!(!Target::default().is_list());
        let error = Target::parse("./b.sock,").unwrap_err().to_string();
        assert!(error.contains("invalid target"), "{error}");
    }

    #[test]
    fn an_invalid_target_is_refused_with_the_reason() {
        for (text, word) in [
            ("", "scheme"),
            ("unix:", "path"),
            ("host:7400", "scheme"),
            ("ftp://host:1", "unknown scheme"),
            ("https://host", "port"),
            ("https://host:0", "port"),
            ("https://host:99999", "port"),
            ("https://:7400", "host"),
            ("https://host:1/v1", "more"),
            ("https://me:secret@host:1", "more"),
        ] {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
            assert!(error.contains("use unix:"), "{text}: {error}");
        }
    }

    #[test]
    fn a_token_is_checked_and_never_shown() {
        let target = Target::socket("/a").with_token("secret").unwrap();
        assert!(!format!("{target:?}").contains("secret"));
        for wrong in ["", "a b", "a\nb", "ä"] {
            assert!(Target::socket("/a").with_token(wrong).is_err(), "{wrong:?}");
        }
    }
}
