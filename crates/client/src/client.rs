//! A node, as its clients see it.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::de::DeserializeOwned;
use soloist_api::{self as api, Cluster, ErrorKind, Hold, LockInfo, Locks, RenewRequest};
use tokio::runtime::Handle;

use crate::background::Background;
use crate::connection::{Answer, Call, Connections};
use crate::error::ClientError;
use crate::keeper::Young;
use crate::path::escaped;
use crate::tls::Tls;
use crate::{Acquire, Events, Target, TargetError};

/// How long a node may take for what it can answer at once. It asks other nodes for some of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to change keepers: a new one learns everything first.
const CHANGE_PATIENCE: Duration = Duration::from_secs(30);

/// A node's client. Cheap to clone; clones share connections. It belongs to the runtime in which it was connected: holds
/// are renewed there, and only while that runs.
#[derive(Clone)]
pub struct Client {
    pub(crate) node: Arc<Connections>,
    pub(crate) young: Arc<Young>,
    pub(crate) background: Arc<Background>,
    /// Where holds are kept, and released when their guards are dropped, on whatever thread.
    pub(crate) runtime: Handle,
}

impl Client {
    /// Connects to a node: the first of the target's places where one answers.
    pub async fn connect(target: Target) -> Result<Client, ClientError> {
        let mut tried = Vec::new();
        for place in &target.places {
            if let Some(problem) = place.planted() {
                tried.push(crate::Attempt {
                    place: place.to_string(),
                    problem: problem.to_owned(),
                });
                continue;
            }
            let tls = Tls::new(&target, place)?;
            if target.token.is_some() && tls.is_none() && !place.is_local() {
                return Err(TargetError::TokenInTheClear(place.to_string()).into());
            }
            let node = Connections::new(place.clone(), tls, target.token.clone());
            match node.open().await {
                Ok(line) => {
                    node.keep(line);
                    return Ok(Client {
                        node: node.into(),
                        young: Arc::default(),
                        background: Arc::default(),
                        runtime: Handle::current(),
                    });
                }
                Err(ClientError::Unreachable(attempts)) => tried.extend(attempts),
                Err(other) => return Err(other),
            }
        }
        Err(ClientError::Unreachable(tried))
    }

    /// Where the node is.
    pub fn place(&self) -> String {
        self.node.place.to_string()
    }

    /// Asks for a lock; `.await` it.
    pub fn acquire(&self, name: &str) -> Acquire {
        Acquire::new(self.clone(), name)
    }

    /// Who holds a lock and who waits for it.
    pub async fn lock_info(&self, name: &str) -> Result<LockInfo, ClientError> {
        self.get(&lock_path(name)?).await
    }

    /// All locks that somebody holds or waits for.
    pub async fn locks(&self) -> Result<Locks, ClientError> {
        let mut all: Locks = self.get("/v1/locks").await?;
        while let Some(after) = all.next.take() {
            let path = format!("/v1/locks?after={}", escaped(&after));
            let page: Locks = self.get(&path).await?;
            // A page that does not lead on would be asked for without end.
            if page.next.as_ref().is_some_and(|next| *next <= after) {
                return Err(self.garbled("its pages of locks do not come to an end"));
            }
            all.locks.extend(page.locks);
            all.silent.extend(page.silent);
            all.next = page.next;
        }
        all.silent.sort();
        all.silent.dedup();
        Ok(all)
    }

    /// The nodes and how they are.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get("/v1/cluster").await
    }

    /// Makes a member a keeper, and returns when it is one.
    pub async fn promote(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("/v1/cluster/keepers/{}", escaped(node));
        self.order(Method::PUT, &path, CHANGE_PATIENCE).await
    }

    /// Makes a keeper an ordinary node.
    pub async fn demote(&self, node: &str) -> Result<(), ClientError> {
        let path = format!("/v1/cluster/keepers/{}", escaped(node));
        self.order(Method::DELETE, &path, CHANGE_PATIENCE).await
    }

    /// What happens on this node from now on.
    pub async fn events(&self) -> Result<Events, ClientError> {
        Events::open(&self.node).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None, Some(PATIENCE)).await
    }

    /// Renews a hold, as long as at first.
    pub(crate) async fn renew(&self, hold: &str, patience: Duration) -> Result<Hold, ClientError> {
        let path = format!("/v1/holds/{}/renew", escaped(hold));
        let body = json(&RenewRequest::default());
        self.ask(Method::POST, &path, Some(body), Some(patience))
            .await
    }

    /// Asks whether a hold is still there, and is answered when it is not, or after `wait`.
    pub(crate) async fn watch(&self, hold: &str, wait: Duration) -> Result<Hold, ClientError> {
        let path = format!("/v1/holds/{}?wait_ms={}", escaped(hold), wait.as_millis());
        self.ask(Method::GET, &path, None, Some(wait + PATIENCE))
            .await
    }

    /// Releases a hold.
    pub(crate) async fn release(&self, hold: &str) -> Result<(), ClientError> {
        let path = format!("/v1/holds/{}", escaped(hold));
        self.order(Method::DELETE, &path, PATIENCE).await
    }

    /// Cancels a request for a lock.
    pub(crate) async fn cancel(&self, request: &str) -> Result<(), ClientError> {
        let path = format!("/v1/requests/{request}");
        self.order(Method::DELETE, &path, PATIENCE).await
    }

    /// Asks for something that is answered with nothing but that it was done.
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
        let answer = self.node.exchange(call, Some(patience)).await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(self.refused(&answer)),
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
        let answer = self.node.exchange(call, patience).await?;
        self.understand(&answer)
    }

    /// What a node answered, if it is what was asked for.
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
            Err(_) => self.garbled(&format!("status {} without a reason", answer.status)),
        }
    }

    fn garbled(&self, what: &str) -> ClientError {
        ClientError::Garbled {
            place: self.place(),
            what: what.to_owned(),
        }
    }
}

pub(crate) fn lock_path(name: &str) -> Result<String, ClientError> {
    // An empty segment would make another path of it, whose error says nothing about names.
    if name.is_empty() {
        return Err(ClientError::Refused {
            status: 400,
            kind: ErrorKind::BadRequest,
            detail: "a lock's name is empty: use 1 to 256 bytes".to_owned(),
            reason: None,
            ended_ago: None,
        });
    }
    Ok(format!("/v1/locks/{}", escaped(name)))
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("requests are plain values")
}
