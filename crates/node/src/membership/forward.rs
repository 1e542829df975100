//! Forwarding: a follower connects nodes that cannot reach the leader through to it.
//!
//! The node dials the follower as usual, with TLS. Inside that connection it has a TLS session of
//! its own with the leader, so the follower can neither read nor change what is sent: it copies
//! bytes. It connects to the leader that Raft names, never to an address that a node names.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;

use super::Membership;
use crate::files;
use crate::keepers::{Keeper, KeeperNode};
use soloist_api::NodeName;
use soloist_transport::{Arrival, Code, Io, Refusal};

/// Buffer size in each direction.
const BUFFER_BYTES: usize = 16 << 10;

/// The connections that a follower forwards.
pub(super) struct Forwards {
    places: Arc<Semaphore>,
    limit: usize,
    /// One connection per node: a new one replaces the previous one.
    nodes: Mutex<HashMap<NodeName, CancellationToken>>,
}

impl Default for Forwards {
    fn default() -> Self {
        let limit = files::forwards_max();
        Forwards {
            places: Arc::new(Semaphore::new(limit)),
            limit,
            nodes: Mutex::default(),
        }
    }
}

impl Forwards {
    /// Reserves a slot for a connection of this node, or returns `None` if all are taken.
    fn enter(&self, node: &NodeName) -> Option<Forward<'_>> {
        let replaced = CancellationToken::new();
        let before = self.nodes().insert(node.clone(), replaced.clone());
        if let Some(before) = before {
            before.cancel();
        }
        let mut forward = Forward {
            forwards: self,
            node: node.clone(),
            replaced,
            place: None,
        };
        forward.place = Some(Arc::clone(&self.places).try_acquire_owned().ok()?);
        Some(forward)
    }

    fn nodes(&self) -> std::sync::MutexGuard<'_, HashMap<NodeName, CancellationToken>> {
        self.nodes
            .lock()
            .expect("no thread panics while it has the mutex")
    }
}

/// The slot of one connection.
struct Forward<'f> {
    forwards: &'f Forwards,
    node: NodeName,
    replaced: CancellationToken,
    place: Option<OwnedSemaphorePermit>,
}

impl Drop for Forward<'_> {
    fn drop(&mut self) {
        let mut nodes = self.forwards.nodes();
        // The entry may belong to a later connection of this node.
        if !self.replaced.is_cancelled() {
            nodes.remove(&self.node);
        }
    }
}

impl Membership {
    /// Connects a node through to the leader, until one side closes, the connection is idle for too
    /// long, or another keeper leads.
    pub(crate) async fn forward(&self, arrival: Arrival) {
        let node = arrival.hello.from.clone();
        let refuse = |code, reason: String| {
            tracing::debug!(%node, reason, "cannot forward a node's connection to the leader");
            Refusal::new(code, reason)
        };
        let me = &self.me.name;
        let Some((keeper, leader)) = self.leader_to_forward_to() else {
            let reason = format!("node {me} knows of no other leader; try another keeper");
            return arrival.refuse(refuse(Code::NotServed, reason)).await;
        };
        let Some(forward) = self.forwards.enter(&node) else {
            let limit = self.forwards.limit;
            let reason = format!(
                "node {me} already forwards {limit} connections to the leader; try another keeper"
            );
            return arrival.refuse(refuse(Code::Later, reason)).await;
        };
        let address = leader.address.to_string();
        let connecting = self
            .endpoint
            .connect(&leader.name, &address, self.answer_timeout());
        let far = match connecting.await {
            Ok(far) => far,
            Err(error) => {
                let reason = format!("node {me} cannot reach the leader either: {error}");
                return arrival.refuse(refuse(Code::Later, reason)).await;
            }
        };
        let Ok(near) = arrival.welcome(&[]).await else {
            return;
        };
        tracing::info!(%node, %leader, "forwarding a node's connection to the leader");
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = forward.replaced.cancelled() => {}
            () = is_deposed(&keeper, &leader) => {}
            () = copy(near, far, self.lease.forward_idle_max()) => {}
        }
    }

    fn leader_to_forward_to(&self) -> Option<(Arc<Keeper>, KeeperNode)> {
        let keeper = self.keeper()?;
        let leader = keeper.view().leader;
        let leader = leader.filter(|leader| leader.name != self.me.name)?;
        Some((keeper, leader))
    }
}

/// Returns when the keeper no longer regards `leader` as the leader.
async fn is_deposed(keeper: &Keeper, leader: &KeeperNode) {
    let mut views = keeper.views();
    // This fails only if the keeper has ended.
    let _ = views
        .wait_for(|view| view.leader.as_ref() != Some(leader) || view.stopped.is_some())
        .await;
}

/// Copies both ways until one side closes, or there is no traffic for `idle`.
async fn copy(near: impl Io, far: impl Io, idle: Duration) {
    let bytes = AtomicU64::new(0);
    let count = |read: &[u8]| {
        bytes.fetch_add(read.len() as u64, Ordering::Relaxed);
    };
    let (reader, writer) = tokio::io::split(near);
    let mut near = tokio::io::join(InspectReader::new(reader, count), writer);
    let (reader, writer) = tokio::io::split(far);
    let mut far = tokio::io::join(InspectReader::new(reader, count), writer);
    let silence = async {
        loop {
            let before = bytes.load(Ordering::Relaxed);
            sleep(idle).await;
            if bytes.load(Ordering::Relaxed) == before {
                return;
            }
        }
    };
    let copying = copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER_BYTES, BUFFER_BYTES);
    tokio::select! {
        // However it ended, the node looks for the leader again.
        _ = copying => {}
        () = silence => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    fn name(text: &str) -> NodeName {
        NodeName::try_from(text.to_owned()).unwrap()
    }

    #[tokio::test]
    async fn bytes_flow_both_ways_until_the_idle_timeout() {
        let idle = Duration::from_millis(300);
        let (mut node, near) = duplex(64);
        let (mut leader, far) = duplex(64);
        let copying = tokio::spawn(copy(near, far, idle));
        for _ in 0..4 {
            sleep(idle / 3).await;
            node.write_all(b"renew").await.unwrap();
            let mut heard = [0; 5];
            leader.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"renew");
            leader.write_all(b"lease").await.unwrap();
            node.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"lease");
        }
        let silent = Instant::now();
        let limit = Duration::from_secs(30);
        timeout(limit, copying).await.expect("it ends").unwrap();
        let after = silent.elapsed();
        assert!(after > idle / 2, "{after:?}");
    }

    #[tokio::test]
    async fn a_leader_that_does_not_read_blocks_nobody() {
        let (mut node, near) = duplex(64);
        let (_leader, far) = duplex(64);
        let copying = tokio::spawn(copy(near, far, Duration::from_millis(100)));
        let flood = async {
            // More than all buffers hold.
            let _ = node.write_all(&vec![0; 4 * BUFFER_BYTES]).await;
        };
        let limit = Duration::from_secs(30);
        timeout(limit, flood).await.expect("it ends with the copy");
        copying.await.unwrap();
    }

    #[test]
    fn forwards_are_limited_to_one_per_node_and_in_total() {
        let forwards = Forwards {
            places: Arc::new(Semaphore::new(2)),
            limit: 2,
            nodes: Mutex::default(),
        };
        let first = forwards.enter(&name("a")).unwrap();
        let again = forwards.enter(&name("a")).unwrap();
        assert!(first.replaced.is_cancelled() && !again.replaced.is_cancelled());
        assert!(forwards.enter(&name("b")).is_none(), "both are taken");
        drop(first);
        assert!(forwards.nodes().contains_key(&name("a")), "it has another");
        let other = forwards.enter(&name("b")).unwrap();
        drop((again, other));
        assert!(forwards.nodes().is_empty());
        assert_eq!(forwards.places.available_permits(), 2);
    }
}
