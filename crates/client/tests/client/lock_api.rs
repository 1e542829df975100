//! The lock API: the same tests for a node in this process and for a client of a node.
//!
//! Each function of [`rules`] is a test, generic over [`Subject`]. The macro `both` runs it twice.

mod rules;

use soloist_client::{AcquireError, Client, Guard, Lock, Locks};
use soloist_node::Node;

use crate::{Nodes, soon, until};

/// How a test gets at locks.
trait Subject: Locks {
    /// Locks by way of this node.
    async fn of(nodes: &Nodes, node: usize) -> Self;

    /// Waits until nothing happens in the background any more.
    async fn settle(&self);
}

impl Subject for Node {
    async fn of(nodes: &Nodes, node: usize) -> Self {
        nodes.cluster.nodes[node].clone()
    }

    async fn settle(&self) {}
}

impl Subject for Client {
    async fn of(nodes: &Nodes, node: usize) -> Self {
        nodes.client(node).await
    }

    async fn settle(&self) {
        Client::settle(self, crate::TIMEOUT).await;
    }
}

/// A lock of two nodes, and a client that looks on.
struct Two<L> {
    nodes: Nodes,
    one: Lock<L>,
    two: Lock<L>,
    observer: Client,
}

/// The lock in question.
const NAME: &str = "a/b";

impl<L: Subject> Two<L> {
    async fn start() -> Self {
        Self::on(Nodes::start_steady(2).await).await
    }

    async fn on(nodes: Nodes) -> Self {
        Two {
            one: L::of(&nodes, 0).await.lock(NAME).unwrap(),
            two: L::of(&nodes, 1).await.lock(NAME).unwrap(),
            observer: nodes.client(0).await,
            nodes,
        }
    }

    async fn waiting(&self, count: u64) {
        let is_so = async || crate::waiting(&self.observer, NAME).await == count;
        until(&format!("{count} are waiting"), is_so).await;
    }

    async fn stop(self) {
        self.nodes.0.stop().await;
    }
}

/// Acquires the lock, which must be granted.
async fn granted<L: Locks>(lock: &Lock<L>) -> L::Guard {
    soon("the lock is granted", lock.acquire()).await.unwrap()
}

/// Tries to acquire a lock of which everything is known.
async fn tried<L: Locks>(lock: &Lock<L>) -> Option<L::Guard> {
    loop {
        match soon("it does not wait", lock.try_acquire()).await {
            // A busy machine may take too long to tell.
            Err(AcquireError::Unknown { .. }) => {}
            tried => return tried.unwrap(),
        }
    }
}

/// Asserts that nobody was granted the lock between this guard and the next one.
async fn next_is_next<L: Locks>(before: L::Guard, lock: &Lock<L>) -> L::Guard {
    let fence = before.fence();
    before.release().await.unwrap();
    let guard = granted(lock).await;
    assert_eq!(Some(guard.fence()), fence.next());
    guard
}

/// Defines a test for a node in this process and one for a client, of each rule.
macro_rules! both {
    ($($rule:ident,)*) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $rule() {
                    super::rules::$rule::<super::Node>().await;
                }
            )*
        }

        mod client {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $rule() {
                    super::rules::$rule::<super::Client>().await;
                }
            )*
        }
    };
}

both! {
    fences_rise_from_holder_to_holder,
    try_acquire_never_waits_behind_others,
    acquire_within_leaves_nothing_behind_when_it_times_out,
    a_dropped_request_leaves_no_waiter_and_no_hold,
    requests_that_are_dropped_at_any_time_leave_no_hold,
    a_dropped_guard_releases_the_lock,
    random_use_agrees_with_a_model,
    the_owner_is_shown_and_checked,
    with_returns_what_the_work_returned_and_releases,
    with_does_not_begin_the_work_without_the_lock,
    dropping_with_drops_the_work_and_releases,
    with_drops_the_work_when_the_lock_is_lost,
    a_loss_is_told_once_and_for_all,
    a_stopping_node_admits_nobody,
}
