//! The client of one node, or of several nodes of a cluster.

mod builder;

pub use builder::ClientBuilder;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use hyper::Method;
use serde::de::DeserializeOwned;
use soloist_api::dashboard::Overview;
use soloist_api::{self as api, Cluster, ErrorKind, LockInfo, LockList, compiled_here};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::dial::Dialer;
use crate::error::ClientError;
use crate::http::{Answer, Call, Http};
use crate::path::escaped;
use crate::session::{RawSession, Session, SessionKey, Settings};
use crate::target::ApiAddress;
use crate::tls::Tls;
use crate::{Events, Target, TargetError};

/// Timeout of requests that the node answers without waiting, though it may ask other nodes first.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of changes of the keepers: a new keeper must first receive the whole state.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Client of a node, or of several nodes of a cluster. Cheap to clone; clones share connections.
///
/// All locks of a client are held in one [session](soloist_api::session) on one of the nodes, over
/// one connection. If that node stops, dies or is cut off, requests that wait move to the next
/// node, and so do later ones; see [the crate's documentation](crate#what-happens-when).
///
/// A client belongs to the runtime in which [`connect`](Client::connect) was called: holds are
/// renewed there, and only while that runtime runs.
// Acquiring is in `acquire.rs`.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// All nodes of the target.
    pub(crate) nodes: Vec<Arc<Http>>,
    current: Mutex<Current>,
    /// Keeps the sessions.
    pub(crate) runtime: Handle,
    settings: Settings,
}

/// The node that is used, and the session there.
struct Current {
    node: usize,
    session: Arc<Session>,
    /// The sessions on other nodes that were left, as far as something keeps them.
    left: Vec<Weak<Session>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.current().session.close();
    }
}

impl Inner {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that is used.
    fn node(&self) -> &Arc<Http> {
        &self.nodes[self.current().node]
    }

    /// The nodes, beginning with the one that is used.
    fn in_order(&self) -> impl Iterator<Item = &Arc<Http>> {
        let first = self.current().node;
        let (before, after) = self.nodes.split_at(first);
        after.iter().chain(before)
    }
}

impl Client {
    /// Returns the settings of a client, all of them defaults.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use soloist_client::{Client, Target};
    ///
    /// let client = Client::builder().ttl(Duration::from_secs(10));
    /// let client = client.connect(Target::from_env()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Connects to a node, with the default settings.
    ///
    /// If the target names several nodes, this connects to the first one that answers.
    ///
    /// If the target does not name a node, this connects to the node that the system runs or to the
    /// one in the working folder. If both answer, this fails with [`ClientError::Ambiguous`]. The
    /// cluster of `soloist up` is used only if neither of them has a socket. A socket in the
    /// working folder or of `soloist up` is ignored if it belongs to another user, except root.
    pub async fn connect(target: Target) -> Result<Client, ClientError> {
        Self::builder().connect(target).await
    }

    /// Finds the nodes of a target, and the first one that answers.
    async fn find(target: &Target) -> Result<(Vec<Arc<Http>>, usize), ClientError> {
        if !target.is_list() {
            return Ok((vec![Self::find_one(target).await?.into()], 0));
        }
        let nodes = target
            .addresses
            .iter()
            .map(|address| dialer(target, address));
        let nodes: Result<Vec<Dialer>, TargetError> = nodes.collect();
        let nodes: Vec<_> = nodes?
            .into_iter()
            .map(|node| Arc::new(Http::new(node)))
            .collect();
        let mut tried = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            match node.open().await {
                Ok(()) => return Ok((nodes, number)),
                Err(ClientError::Unreachable(attempts)) => tried.extend(attempts),
                Err(other) => return Err(other),
            }
        }
        Err(ClientError::Unreachable(tried))
    }

    async fn find_one(target: &Target) -> Result<Http, ClientError> {
        let (mut tried, mut silent) = (Vec::new(), None);
        let mut found: Option<Http> = None;
        for address in &target.addresses {
            if let Some(problem) = address.planted() {
                tried.push(crate::Attempt {
                    address: address.to_string(),
                    problem: problem.to_owned(),
                });
                continue;
            }
            match &found {
                Some(found) if address.is_up() || address.is_same(&found.dialer.address) => {
                    continue;
                }
                _ => {}
            }
            let node = Http::new(dialer(target, address)?);
            match node.open().await {
                Ok(()) => {}
                Err(ClientError::Unreachable(attempts)) => {
                    silent = silent.or(address.exists().then_some(address));
                    tried.extend(attempts);
                    continue;
                }
                Err(other) => return Err(other),
            }
            let other = match &found {
                Some(found) => Some(found.dialer.address.to_string()),
                None if address.is_up() => {
                    silent.map(|silent| format!("{silent} (does not answer)"))
                }
                None => None,
            };
            if let Some(other) = other {
                let address = address.to_string();
                return Err(ClientError::Ambiguous { address, other });
            }
            found = Some(node);
        }
        found.ok_or(ClientError::Unreachable(tried))
    }

    /// Returns whether this client is connected to the cluster of `soloist up` because the target
    /// did not name a node and no other node was found.
    pub fn is_last_resort(&self) -> bool {
        self.inner.node().dialer.address.is_up()
    }

    /// Address of the node that is used, as text.
    pub fn address(&self) -> String {
        self.inner.node().dialer.address.to_string()
    }

    pub(crate) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.inner.current().session)
    }

    /// Waits until the client has a session with another key than `known`, and returns its key. The
    /// client opens a session for its first request, and another one if it moves to another node or
    /// its session expires.
    pub async fn session_key(&self, known: Option<&SessionKey>) -> SessionKey {
        loop {
            let session = self.session();
            session.rekeyed(known).await;
            match session.key() {
                Some(key) if Some(&key) != known => return key,
                // The client has moved to another node.
                _ => tokio::task::yield_now().await,
            }
        }
    }

    /// Opens a connection for a session that the caller keeps itself. It has nothing to do with the
    /// client's own session, and is not moved to another node.
    pub async fn raw_session(&self) -> Result<RawSession, ClientError> {
        let node = Arc::clone(self.inner.node());
        let opened = timeout(TIMEOUT, RawSession::open(Arc::clone(&node))).await;
        opened.unwrap_or_else(|_| {
            Err(ClientError::Silent {
                address: node.dialer.address.to_string(),
                after: TIMEOUT,
            })
        })
    }

    /// Continues on the next node, unless another task has moved the client already. A node that
    /// `answers` answers the requests that wait there itself. Otherwise, the next node makes it end
    /// what was left there.
    pub(crate) fn move_on(&self, from: &Arc<Session>, error: ClientError, answers: bool) {
        let mut current = self.inner.current();
        if !Arc::ptr_eq(&current.session, from) {
            return;
        }
        let left = if answers {
            from.retire(error);
            None
        } else {
            from.leave(error)
        };
        current.node = (current.node + 1) % self.inner.nodes.len();
        let node = Arc::clone(&self.inner.nodes[current.node]);
        current.session = Session::new(node, &self.inner.settings, left);
        current.left.retain(|session| session.strong_count() > 0);
        current.left.push(Arc::downgrade(from));
    }

    /// Number of answers of the current node that came while a caller was spinning, see
    /// [`ClientBuilder::spin`].
    pub fn spin_hits(&self) -> u64 {
        self.session().spin_hits()
    }

    /// Waits until the node has answered all cancellations of dropped requests and all releases of
    /// dropped guards, but not longer than `within`. Call this before the program exits: if the
    /// node does not receive these messages, other clients wait until the session expires.
    ///
    /// Nodes that the client has left must answer, too, as far as the next node does not end there
    /// what was left.
    pub async fn settle(&self, within: Duration) {
        let sessions: Vec<Arc<Session>> = {
            let current = self.inner.current();
            let left = current.left.iter().filter_map(Weak::upgrade);
            left.chain([Arc::clone(&current.session)]).collect()
        };
        let settled = sessions.iter().map(|session| session.settled());
        let _ = timeout(within, join_all(settled)).await;
    }

    /// Returns the holder of a lock and its waiters.
    pub async fn lock_info(&self, name: &str) -> Result<LockInfo, ClientError> {
        self.get(&lock_path(name)?).await
    }

    /// Returns all locks that have a holder or waiters.
    pub async fn locks(&self) -> Result<LockList, ClientError> {
        let mut all: LockList = self.get("/v1/locks").await?;
        while let Some(after) = all.next.take() {
            let path = format!("/v1/locks?after={}", escaped(&after));
            let page: LockList = self.get(&path).await?;
            // A page that does not advance would be requested forever.
            if page.next.as_ref().is_some_and(|next| *next <= after) {
                return Err(self.garbled("the pages of the list of locks do not advance"));
            }
            all.locks.extend(page.locks);
            all.silent.extend(page.silent);
            all.next = page.next;
        }
        all.silent.sort();
        all.silent.dedup();
        Ok(all)
    }

    /// Returns the state of the cluster and of its nodes.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get("/v1/cluster").await
    }

    /// Makes a member a keeper. Returns when it is one.
    pub async fn promote(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("/v1/cluster/keepers/{}", escaped(node));
        self.order(Method::PUT, &path, CHANGE_TIMEOUT).await
    }

    /// Makes a keeper an ordinary node.
    pub async fn demote(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("/v1/cluster/keepers/{}", escaped(node));
        self.order(Method::DELETE, &path, CHANGE_TIMEOUT).await
    }

    /// Returns what is wrong with the cluster and what is well, as the node sees it.
    pub async fn overview(&self) -> Result<Overview, ClientError> {
        self.get("/v1/overview").await
    }

    /// Subscribes to the events on this node from now on.
    pub fn events(&self) -> impl Future<Output = Result<Events, ClientError>> + Send {
        self.events_at("/v1/events".to_owned())
    }

    /// Subscribes to the events of all members, of locks whose names start with `prefix`: from now
    /// on, or after the [`cursor`](api::Event::cursor) of an event, as far as members still have
    /// later ones.
    pub fn all_events(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Future<Output = Result<Events, ClientError>> + Send {
        let mut path = format!("/v1/events?all=true&prefix={}", escaped(prefix));
        if let Some(cursor) = after {
            path += &format!("&after={}", escaped(cursor));
        }
        self.events_at(path)
    }

    fn events_at(&self, path: String) -> impl Future<Output = Result<Events, ClientError>> + Send {
        compiled_here(async move {
            let mut result = Err(ClientError::Unreachable(Vec::new()));
            for node in self.inner.in_order() {
                result = Events::open(node, &path).await;
                if !matches!(result, Err(ClientError::Unreachable(_))) {
                    break;
                }
            }
            result
        })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let answer = self.ask(Method::GET, path, TIMEOUT).await?;
        self.understand(&answer)
    }

    /// Sends a request whose successful response has no body.
    async fn order(&self, method: Method, path: &str, limit: Duration) -> Result<(), ClientError> {
        let answer = self.ask(method, path, limit).await?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(self.refused(&answer))
        }
    }

    /// Asks the nodes in order, until one can be reached.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        limit: Duration,
    ) -> Result<Answer, ClientError> {
        let mut tried = Vec::new();
        for node in self.inner.in_order() {
            let method = method.clone();
            match node.exchange(Call { method, path }, limit).await {
                Err(ClientError::Unreachable(attempts)) => tried.extend(attempts),
                answer => return answer,
            }
        }
        Err(ClientError::Unreachable(tried))
    }

    /// Decodes a response, or returns the error that it describes.
    fn understand<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, ClientError> {
        if !answer.status.is_success() {
            return Err(self.refused(answer));
        }
        serde_json::from_slice(&answer.body).map_err(|error| self.garbled(&error.to_string()))
    }

    fn refused(&self, answer: &Answer) -> ClientError {
        match serde_json::from_slice::<api::Error>(&answer.body) {
            Ok(error) => ClientError::Refused {
                status: answer.status.as_u16(),
                kind: error.error,
                detail: error.detail,
                reason: error.reason,
                ended_ago: error.ended_ago_ms.map(Duration::from_millis),
            },
            Err(_) => self.garbled(&format!(
                "status {} without an error description",
                answer.status
            )),
        }
    }

    fn garbled(&self, what: &str) -> ClientError {
        self.inner.node().dialer.garbled(what)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("node", &self.address())
            .finish_non_exhaustive()
    }
}

/// How to connect to one of the target's addresses.
pub(crate) fn dialer(target: &Target, address: &ApiAddress) -> Result<Dialer, TargetError> {
    let tls = Tls::new(target, address)?;
    if target.token.is_some() && tls.is_none() && !address.is_local() {
        return Err(TargetError::TokenInTheClear(address.to_string()));
    }
    Ok(Dialer {
        address: address.clone(),
        tls,
        token: target.token.clone(),
    })
}

fn lock_path(name: &str) -> Result<String, ClientError> {
    // An empty segment would result in a different path, and the node's error would not mention the
    // name.
    if name.is_empty() {
        let detail = "the lock name is empty: use 1 to 256 bytes".to_owned();
        return Err(ClientError::refused(400, ErrorKind::BadRequest, detail));
    }
    Ok(format!("/v1/locks/{}", escaped(name)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::net::UnixListener;

    use super::*;
    use crate::target::Origin;

    /// A target like the default one, but with its sockets in `folder`.
    fn target(folder: &Path) -> Target {
        let address = |name: &str, origin| ApiAddress::Unix {
            socket: folder.join(name),
            origin,
        };
        Target {
            addresses: vec![
                address("system", Origin::System),
                address("folder", Origin::Folder),
                address("up", Origin::Up),
            ],
            ..Target::socket("unused")
        }
    }

    #[tokio::test]
    async fn the_system_node_comes_first_and_two_nodes_are_ambiguous() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let listen = |name: &str| UnixListener::bind(at(name)).unwrap();
        let connect = || Client::connect(target(folder.path()));
        let _up = listen("up");
        let client = connect().await.unwrap();
        assert!(client.is_last_resort(), "{}", client.address());
        let system = listen("system");
        let client = connect().await.unwrap();
        assert!(client.address().ends_with("system"), "{}", client.address());
        assert!(!client.is_last_resort());
        // The same socket under another path is not a second node.
        std::os::unix::fs::symlink(at("system"), at("folder")).unwrap();
        assert!(connect().await.is_ok());
        std::fs::remove_file(at("folder")).unwrap();
        let _other = listen("folder");
        let error = connect().await.expect_err("two nodes answer").to_string();
        for word in ["/system", "/folder", "--api", "SOLOIST_API"] {
            assert!(error.contains(word), "{error}");
        }
        std::fs::remove_file(at("folder")).unwrap();
        // The cluster of `soloist up` does not replace a node that is down.
        drop(system);
        let error = connect()
            .await
            .expect_err("the node is ambiguous")
            .to_string();
        for word in ["/system (does not answer)", "/up"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
