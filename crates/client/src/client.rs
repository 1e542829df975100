//! The client of one node.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::de::DeserializeOwned;
use soloist_api::{
    self as api, Cluster, ErrorKind, Hold, LockInfo, LockList, RenewRequest, compiled_here,
};
use tokio::runtime::Handle;

use crate::background::Background;
use crate::connection::{Answer, Call, Connections};
use crate::error::ClientError;
use crate::keeper::Young;
use crate::path::escaped;
use crate::target::Place;
use crate::tls::Tls;
use crate::{Events, Target, TargetError};

/// Timeout of requests that the node answers without waiting, though it may ask other nodes first.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of changes of the keepers: a new keeper must first receive the whole state.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Client of one node. Cheap to clone; clones share connections.
///
/// A client belongs to the runtime in which [`connect`](Client::connect) was called: holds are
/// renewed there, and only while that runtime runs.
// Methods: acquiring in `acquire.rs`, requests in the background in `background.rs`.
#[derive(Clone)]
pub struct Client {
    pub(crate) node: Arc<Connections>,
    pub(crate) young: Arc<Young>,
    pub(crate) background: Arc<Background>,
    /// Renews holds, and releases them when their guards are dropped, on whatever thread that is.
    pub(crate) runtime: Handle,
    /// Time to live of holds, or `None` for the node's setting.
    pub(crate) ttl: Option<Duration>,
}

/// Settings of a client, see [`Client::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing happens until `connect` is called"]
pub struct ClientBuilder {
    ttl: Option<Duration>,
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
    /// If the target does not name a node, this connects to the node that the system runs or to the
    /// one in the working folder. If both answer, this fails with [`ClientError::Ambiguous`]. The
    /// cluster of `soloist up` is used only if neither of them has a socket. A socket in the
    /// working folder or of `soloist up` is ignored if it belongs to another user, except root.
    pub async fn connect(target: Target) -> Result<Client, ClientError> {
        Self::builder().connect(target).await
    }

    async fn find(target: &Target) -> Result<Connections, ClientError> {
        let (mut tried, mut silent) = (Vec::new(), None);
        let mut found: Option<Connections> = None;
        for place in &target.places {
            if let Some(problem) = place.planted() {
                tried.push(crate::Attempt {
                    place: place.to_string(),
                    problem: problem.to_owned(),
                });
                continue;
            }
            match &found {
                Some(found) if place.is_up() || place.is_same(&found.place) => continue,
                _ => {}
            }
            let node = match Self::open(target, place).await {
                Ok(node) => node,
                Err(ClientError::Unreachable(attempts)) => {
                    silent = silent.or(place.exists().then_some(place));
                    tried.extend(attempts);
                    continue;
                }
                Err(other) => return Err(other),
            };
            let other = match &found {
                Some(found) => Some(found.place.to_string()),
                None if place.is_up() => silent.map(|silent| format!("{silent} (does not answer)")),
                None => None,
            };
            if let Some(other) = other {
                let place = place.to_string();
                return Err(ClientError::Ambiguous { place, other });
            }
            found = Some(node);
        }
        found.ok_or(ClientError::Unreachable(tried))
    }

    async fn open(target: &Target, place: &Place) -> Result<Connections, ClientError> {
        let tls = Tls::new(target, place)?;
        if target.token.is_some() && tls.is_none() && !place.is_local() {
            return Err(TargetError::TokenInTheClear(place.to_string()).into());
        }
        let node = Connections::new(place.clone(), tls, target.token.clone());
        let line = node.open().await?;
        node.keep(line);
        Ok(node)
    }

    /// Returns whether this client is connected to the cluster of `soloist up` because the target
    /// did not name a node and no other node was found.
    pub fn is_last_resort(&self) -> bool {
        self.node.place.is_up()
    }

    /// Address of the node, as text.
    pub fn place(&self) -> String {
        self.node.place.to_string()
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

    /// Subscribes to the events on this node from now on.
    pub fn events(&self) -> impl Future<Output = Result<Events, ClientError>> + Send {
        compiled_here(Events::open(&self.node))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None, Some(TIMEOUT)).await
    }

    /// Renews a hold for its original time to live.
    pub(crate) async fn renew(&self, hold: &str, patience: Duration) -> Result<Hold, ClientError> {
        let path = format!("/v1/holds/{}/renew", escaped(hold));
        let body = json(&RenewRequest::default());
        self.ask(Method::POST, &path, Some(body), Some(patience))
            .await
    }

    /// Long-polls a hold: returns when it ends or is about to end, or after `wait`.
    pub(crate) async fn watch(&self, hold: &str, wait: Duration) -> Result<Hold, ClientError> {
        let path = format!("/v1/holds/{}?wait_ms={}", escaped(hold), wait.as_millis());
        self.ask(Method::GET, &path, None, Some(wait + TIMEOUT))
            .await
    }

    /// Releases a hold.
    pub(crate) async fn release(&self, hold: &str) -> Result<(), ClientError> {
        let path = format!("/v1/holds/{}", escaped(hold));
        self.order(Method::DELETE, &path, TIMEOUT).await
    }

    /// Cancels a request for a lock.
    pub(crate) async fn cancel(&self, request: &str) -> Result<(), ClientError> {
        let path = format!("/v1/requests/{request}");
        self.order(Method::DELETE, &path, TIMEOUT).await
    }

    /// Sends a request whose successful response has no body.
    async fn order(
        &self,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<(), ClientError> {
        let call = || Call {
            method: method.clone(),
            path,
            body: None,
        };
        let answer = self.node.exchange(&call, Some(patience)).await?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(self.refused(&answer))
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        patience: Option<Duration>,
    ) -> Result<T, ClientError> {
        let call = || Call {
            method: method.clone(),
            path,
            body: body.clone(),
        };
        let answer = self.node.exchange(&call, patience).await?;
        self.understand(&answer)
    }

    /// Decodes a response, or returns the error that it describes.
    pub(crate) fn understand<T: DeserializeOwned>(
        &self,
        answer: &Answer,
    ) -> Result<T, ClientError> {
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
        ClientError::Garbled {
            place: self.place(),
            what: what.to_owned(),
        }
    }
}

impl ClientBuilder {
    /// Sets the time to live of the client's holds. Guards renew their holds by themselves; if the
    /// process dies, others wait this long for its locks. Defaults to the node's setting. Nodes
    /// refuse requests with a time to live that is longer than they allow.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Connects to a node, see [`Client::connect`].
    pub fn connect(
        self,
        target: Target,
    ) -> impl Future<Output = Result<Client, ClientError>> + Send {
        compiled_here(self.connect_to(target))
    }

    async fn connect_to(self, target: Target) -> Result<Client, ClientError> {
        let node = Client::find(&target).await?;
        Ok(Client {
            node: node.into(),
            young: Arc::default(),
            background: Arc::default(),
            runtime: Handle::current(),
            ttl: self.ttl,
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("node", &self.place())
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

pub(crate) fn lock_path(name: &str) -> Result<String, ClientError> {
    // An empty segment would result in a different path, and the node's error would not mention the
    // name.
    if name.is_empty() {
        return Err(ClientError::Refused {
            status: 400,
            kind: ErrorKind::BadRequest,
            detail: "the lock name is empty: use 1 to 256 bytes".to_owned(),
            reason: None,
            ended_ago: None,
        });
    }
    Ok(format!("/v1/locks/{}", escaped(name)))
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("requests serialize to JSON")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::net::UnixListener;

    use super::*;
    use crate::target::Origin;

    /// A target like the default one, but with its sockets in `folder`.
    fn target(folder: &Path) -> Target {
        let place = |name: &str, origin| Place::Unix {
            socket: folder.join(name),
            origin,
        };
        Target {
            places: vec![
                place("system", Origin::System),
                place("folder", Origin::Folder),
                place("up", Origin::Up),
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
        assert!(client.is_last_resort(), "{}", client.place());
        let system = listen("system");
        let client = connect().await.unwrap();
        assert!(client.place().ends_with("system"), "{}", client.place());
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
