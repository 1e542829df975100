//! The part of the list of locks that a client has in view. It is sent when it has changed.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::{ListQuery, Listed, ROWS_MAX};
use soloist_api::{LockInfo, LockList};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::event::milliseconds;
use super::longest::Found;
use crate::{Moment, Node};

/// Time from one look to the next.
const EVERY: Duration = Duration::from_secs(1);

/// The same if the next look is for another prefix, which a client waits for while it types.
const PREFIX_EVERY: Duration = Duration::from_millis(200);

/// Times of two looks that differ by less belong to the same hold or wait, in milliseconds: answers
/// take a while to arrive.
const SAME_MS: u64 = 500;

/// A part of the list of locks, and what was sent of it.
pub(crate) struct Listing {
    node: Node,
    prefix: String,
    first: usize,
    rows: usize,
    /// The list of the last look.
    found: Option<Arc<Found>>,
    /// What was sent last, and when.
    sent: Option<(Listed, Moment)>,
    /// The look that is under way. It is kept while others of the client's messages are handled.
    looking: Option<AbortOnDropHandle<Arc<Found>>>,
    looks: Looks,
}

impl Listing {
    /// Begins to list what the query asks for, instead of what was listed before. Returns `None` if
    /// that is nothing. `looks` are those of the connection.
    pub(crate) fn begin(
        node: &Node,
        query: ListQuery,
        before: Option<Self>,
        looks: &Looks,
    ) -> Option<Self> {
        if query.rows == 0 {
            return None;
        }
        let prefix = query.prefix.unwrap_or_default();
        // Another part of the same list is there already.
        let before = before.filter(|before| before.prefix == prefix);
        let (found, looking) = match before {
            Some(before) => (before.found, before.looking),
            None => (None, None),
        };
        Some(Listing {
            node: node.clone(),
            prefix,
            first: query.first,
            rows: query.rows.min(ROWS_MAX),
            found,
            sent: None,
            looking,
            looks: looks.clone(),
        })
    }

    /// Waits until there is something to send: at most once for each look. Cancel safe.
    pub(crate) async fn next(&mut self) -> Listed {
        loop {
            if let Some(listed) = self.news() {
                return listed;
            }
            let looking = self.looking.get_or_insert_with(|| {
                let every = self.found.as_ref().map_or(PREFIX_EVERY, |_| EVERY);
                self.looks.look(&self.node, self.prefix.clone(), every)
            });
            let found = looking.await;
            self.looking = None;
            match found {
                Ok(found) => self.found = Some(found),
                // The next look may find something.
                Err(error) if error.is_panic() && !self.node.shared.fault.has_happened() => {}
                // The node has stopped or failed.
                Err(_) => return std::future::pending().await,
            }
        }
    }

    /// What to send of the last look, if it differs from what was sent.
    fn news(&mut self) -> Option<Listed> {
        let now = Moment::now();
        let listed = self.part(self.found.as_ref()?, now);
        if let Some((sent, at)) = &self.sent
            && is_same(sent, &listed, milliseconds(now.since(*at)))
        {
            return None;
        }
        self.sent = Some((listed.clone(), now));
        Some(listed)
    }

    /// The part of a list, with its times as of now.
    fn part(&self, found: &Found, now: Moment) -> Listed {
        let LockList {
            locks,
            silent,
            reason,
            ..
        } = &found.page;
        let passed_ms = milliseconds(now.since(found.at));
        let part = locks.iter().skip(self.first).take(self.rows);
        let part = part.map(|lock| {
            let mut lock = lock.clone();
            for waiter in &mut lock.waiters {
                waiter.waited_for_ms += passed_ms;
            }
            if let Some(holder) = &mut lock.holder {
                holder.held_for_ms += passed_ms;
            }
            lock
        });
        Listed {
            prefix: self.prefix.clone(),
            first: self.first,
            locks: part.collect(),
            rows: locks.len(),
            is_cut: found.is_cut,
            total: found.total,
            silent: silent.clone(),
            reason: reason.clone(),
        }
    }
}

/// The looks of one connection at the list of locks: one at a time, and not too often, however
/// often the client asks for another list or for none.
#[derive(Clone, Default)]
pub(crate) struct Looks {
    /// When the last one began. Locked while it is under way.
    began: Arc<Mutex<Option<Instant>>>,
}

/// The right to look, until it is dropped.
pub(crate) type Turn = OwnedMutexGuard<Option<Instant>>;

impl Looks {
    /// Looks at the locks with this prefix when it is this look's turn. In a task, so that a client
    /// that reads slowly does not keep others waiting.
    pub(crate) fn look(
        &self,
        node: &Node,
        prefix: String,
        every: Duration,
    ) -> AbortOnDropHandle<Arc<Found>> {
        let (looks, node) = (self.clone(), node.clone());
        AbortOnDropHandle::new(tokio::spawn(async move {
            let turn = looks.turn(every).await;
            node.longest_waits(&prefix, turn).await
        }))
    }

    /// Waits until the last look is over, and began at least `every` ago.
    async fn turn(self, every: Duration) -> Turn {
        let mut began = self.began.lock_owned().await;
        if let Some(last) = *began {
            sleep_until(last + every).await;
        }
        *began = Some(Instant::now());
        began
    }
}

/// Returns whether nothing but the time has passed.
fn is_same(sent: &Listed, now: &Listed, passed_ms: u64) -> bool {
    let about = |listed: &Listed| {
        let Listed {
            rows,
            is_cut,
            total,
            silent,
            reason,
            ..
        } = listed;
        (*rows, *is_cut, *total, silent.clone(), reason.clone())
    };
    about(sent) == about(now)
        && sent.locks.len() == now.locks.len()
        && sent
            .locks
            .iter()
            .zip(&now.locks)
            .all(|(sent, now)| is_same_lock(sent, now, passed_ms))
}

fn is_same_lock(sent: &LockInfo, now: &LockInfo, passed_ms: u64) -> bool {
    let is_near = |sent_ms: u64, now_ms: u64| (sent_ms + passed_ms).abs_diff(now_ms) < SAME_MS;
    let holder = match (&sent.holder, &now.holder) {
        (Some(one), Some(other)) => {
            (&one.owner, &one.node, one.fence) == (&other.owner, &other.node, other.fence)
        }
        (one, other) => one.is_none() && other.is_none(),
    };
    let mut waiters = sent.waiters.iter().zip(&now.waiters);
    holder
        && (&sent.name, sent.state, sent.waiting) == (&now.name, now.state, now.waiting)
        && sent.waiters.len() == now.waiters.len()
        && waiters.all(|(one, other)| {
            (&one.owner, &one.node) == (&other.owner, &other.node)
                && is_near(one.waited_for_ms, other.waited_for_ms)
        })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::Handle;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;
    use crate::local::{LocalCluster, LocalSettings};

    #[tokio::test]
    async fn a_client_has_one_look_at_a_time_and_none_too_soon() {
        let every = Duration::from_millis(30);
        let looks = Looks::default();
        let turn = looks.clone().turn(every).await;
        let first = turn.expect("it has begun");
        for _ in 0..100 {
            assert!(looks.clone().turn(every).now_or_never().is_none());
        }
        drop(turn);
        let second = looks.turn(every).await.expect("it has begun");
        assert!(second - first >= every);
    }

    #[tokio::test]
    async fn looks_that_wait_leave_nothing_behind_and_keep_nobody_else_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LocalSettings::new(1, folder.path());
        let cluster = LocalCluster::start(settings).await.unwrap();
        let node = &cluster.nodes[0];
        let occupied = node.shared.longest_found.occupy().await;
        let list = |prefix: usize, looks: &Looks| {
            let query = ListQuery {
                prefix: Some(prefix.to_string()),
                rows: 1,
                ..ListQuery::default()
            };
            Listing::begin(node, query, None, looks).expect("a row is in view")
        };
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for prefix in 0..100 {
            // Each as of a client of its own, so that only the places are missing.
            let mut given_up = list(prefix, &Looks::default());
            for _ in 0..10 {
                assert!(given_up.next().now_or_never().is_none());
                yield_now().await;
            }
            drop(given_up);
            yield_now().await;
        }
        let after = tasks();
        assert!(after < before + 10, "{before} tasks, then {after}");
        // The overview has places of its own.
        let look = timeout(Duration::from_secs(10), node.look()).await;
        assert_eq!(look.expect("an overview").overview.members.len(), 1);
        drop(occupied);
        let listed = list(1, &Looks::default()).next().await;
        assert_eq!((listed.rows, listed.is_cut), (0, false));
        cluster.stop().await;
    }
}
