//! The part of the list of locks that a client has in view. It is sent when it has changed.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::{ListQuery, Listed, ROWS_MAX};
use soloist_api::{LockInfo, LockList};
use tokio::sync::Mutex;
use tokio::task::JoinError;
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
    looking: Option<AbortOnDropHandle<Result<Arc<Found>, JoinError>>>,
    looks: Looks,
}

impl Listing {
    /// Begins to list what the query asks for, instead of what was listed before. Returns `None` if
    /// that is nothing.
    pub(crate) fn begin(node: &Node, query: ListQuery, before: Option<Self>) -> Option<Self> {
        if query.rows == 0 {
            return None;
        }
        let prefix = query.prefix.unwrap_or_default();
        let looks = before.as_ref().map(|before| before.looks.clone());
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
            looks: looks.unwrap_or_default(),
        })
    }

    /// Waits until there is something to send: at most once for each look. Cancel safe.
    pub(crate) async fn next(&mut self) -> Listed {
        loop {
            if let Some(listed) = self.news() {
                return listed;
            }
            // A task, so that a client that reads slowly does not keep others waiting.
            let looking = self.looking.get_or_insert_with(|| {
                let every = self.found.as_ref().map_or(PREFIX_EVERY, |_| EVERY);
                let (node, prefix) = (self.node.clone(), self.prefix.clone());
                let look = async move { node.longest_waits(&prefix).await };
                AbortOnDropHandle::new(tokio::spawn(self.looks.clone().next(every, look)))
            });
            let Ok(Ok(found)) = looking.await else {
                // The node has stopped.
                return std::future::pending().await;
            };
            self.looking = None;
            self.found = Some(found);
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
            total: found.total,
            silent: silent.clone(),
            reason: reason.clone(),
        }
    }
}

/// The looks of one client: one at a time, and not too often, however often it asks for another
/// list.
#[derive(Clone, Default)]
struct Looks {
    /// When the last one began. Locked while it is under way.
    began: Arc<Mutex<Option<Instant>>>,
}

impl Looks {
    /// Runs `look` when the last one is over, and began at least `every` ago. If the caller is
    /// aborted, a look that has begun is finished all the same, because other nodes work for it
    /// already.
    async fn next<T: Send + 'static>(
        self,
        every: Duration,
        look: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let mut began = self.began.lock_owned().await;
        if let Some(last) = *began {
            sleep_until(last + every).await;
        }
        *began = Some(Instant::now());
        let looking = tokio::spawn(async move {
            let found = look.await;
            drop(began);
            found
        });
        looking.await
    }
}

/// Returns whether nothing but the time has passed.
fn is_same(sent: &Listed, now: &Listed, passed_ms: u64) -> bool {
    let about = |listed: &Listed| {
        let Listed {
            rows,
            total,
            silent,
            reason,
            ..
        } = listed;
        (*rows, *total, silent.clone(), reason.clone())
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_client_that_asks_again_and_again_has_one_look_at_a_time() {
        let looks = Looks::default();
        let (begun, answers) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let ask = || {
            let (begun, answers) = (Arc::clone(&begun), Arc::clone(&answers));
            let look = async move {
                begun.fetch_add(1, Ordering::Relaxed);
                answers.acquire().await.unwrap().forget();
            };
            AbortOnDropHandle::new(tokio::spawn(looks.clone().next(Duration::ZERO, look)))
        };
        for _ in 0..100 {
            let given_up = ask();
            for _ in 0..10 {
                yield_now().await;
            }
            drop(given_up);
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        let last = ask();
        answers.add_permits(2);
        last.await.unwrap().unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn looks_begin_no_sooner_than_wanted() {
        let looks = Looks::default();
        let every = Duration::from_millis(30);
        let look = || async { Instant::now() };
        let first = looks.clone().next(every, look()).await.unwrap();
        let second = looks.clone().next(every, look()).await.unwrap();
        assert!(second - first >= every);
    }
}
