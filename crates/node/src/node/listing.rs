//! The part of the list of locks that a client has in view. It is sent when it has changed.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::{ListQuery, Listed, ROWS_MAX};
use soloist_api::{LockInfo, LockList};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::event::milliseconds;
use super::longest::Found;
use crate::{Moment, Node};

/// Pause between looks.
const EVERY: Duration = Duration::from_secs(1);

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
}

impl Listing {
    /// Begins to list what the query asks for, instead of what was listed before. Returns `None` if
    /// that is nothing.
    pub(crate) fn begin(node: &Node, query: ListQuery, before: Option<Self>) -> Option<Self> {
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
                let pause = self.found.as_ref().map_or(Duration::ZERO, |_| EVERY);
                let (node, prefix) = (self.node.clone(), self.prefix.clone());
                AbortOnDropHandle::new(tokio::spawn(async move {
                    sleep(pause).await;
                    node.longest_waits(&prefix).await
                }))
            });
            let Ok(found) = looking.await else {
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
