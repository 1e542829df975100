//! The locks that clients have waited for longest, in the whole cluster.
//!
//! Each node lists its own longest waits by name, and the locks at the head of all these lists are
//! then asked for. So it takes two questions per node, however many locks there are.
//!
//! The waits are exact: a lock's longest wait is on some node, and if fewer than [`LOCKS_MAX`]
//! locks are waited for longer in the cluster, then no more are on that node, which lists it. The
//! same holds for locks that nobody waits for, which follow by the age of their holds.

use std::collections::HashMap;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::StreamExt;
use serde::{Deserialize, Serialize};
use soloist_api::{LockInfo, LockList, LockName};
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use super::gather::{BYTES_MAX, Gathered, LOCKS_MAX, ask_all, before, merge, weight};
use super::inquiry::{ANSWER_BYTES_MAX, NodeAnswer, NodeQuestion, PIECE_LOOKS};
use super::listing::Turn;
use super::shared::Shared;
use crate::{Moment, Node};
use soloist_core::locks::WaitView;

/// Locks examined while the table is locked and everything else waits for it, and the number of
/// such pieces. More than for other answers, because little is done for each lock.
const PIECE: usize = 1024;
const PIECES: usize = 32;

/// Dashboards that ask for the same within this time get the same answer.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// Maximum number of looks at a time. Each needs memory for the answers of all nodes.
const LOOKS_MAX: usize = 4;

/// Maximum number of prefixes whose answers are shared.
const PREFIXES_MAX: usize = 16;

/// The longest waits on a node.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Longest {
    /// The longest wait first, then the longest hold.
    pub locks: Vec<LockWait>,
    /// Number of locks with the prefix that are held on the node.
    pub held: u64,
    /// Whether the node may have further locks with the prefix that are held or waited for.
    pub is_cut: bool,
}

/// For how long clients on a node have waited for a lock, and held it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct LockWait {
    pub name: String,
    pub waited_for: Option<Duration>,
    pub held_for: Option<Duration>,
}

/// What a node found lately, by prefix.
pub(crate) struct LongestFound {
    cells: Mutex<Vec<(String, Cell)>>,
    /// Limits the number of looks at a time. These are not the places of other questions to all
    /// nodes, so that lists do not keep the overview waiting.
    looking: Arc<Semaphore>,
}

impl Default for LongestFound {
    fn default() -> Self {
        LongestFound {
            cells: Mutex::default(),
            looking: Arc::new(Semaphore::new(LOOKS_MAX)),
        }
    }
}

type Cell = Arc<tokio::sync::Mutex<Option<Arc<Found>>>>;

/// The longest waits in the cluster.
pub(crate) struct Found {
    /// When all nodes had answered.
    pub at: Moment,
    pub page: LockList,
    /// Number of locks with the prefix that are held or waited for.
    pub total: u64,
    /// Whether further locks with the prefix may be held or waited for.
    pub is_cut: bool,
}

impl LongestFound {
    /// Takes all places of looks.
    #[cfg(test)]
    pub(super) async fn occupy(&self) -> tokio::sync::OwnedSemaphorePermit {
        let places = Arc::clone(&self.looking).acquire_many_owned(LOOKS_MAX as u32);
        places.await.expect("it is never closed")
    }

    /// The place for what is found with this prefix. It is locked while a caller looks for it.
    fn cell(&self, prefix: &str) -> Cell {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = cells.iter().find(|(of, _)| of == prefix) {
            return Arc::clone(cell);
        }
        if cells.len() == PREFIXES_MAX {
            cells.remove(0);
        }
        let cell = Cell::default();
        cells.push((prefix.to_owned(), Arc::clone(&cell)));
        cell
    }
}

/// The locks to list, of those that were added. Bounded, however many are added.
#[derive(Default)]
struct Top {
    locks: Vec<WaitView>,
    /// Whether any were dropped.
    is_cut: bool,
}

impl Top {
    fn add(&mut self, waits: impl IntoIterator<Item = WaitView>) {
        self.locks.extend(waits);
        if self.locks.len() > 4 * LOCKS_MAX {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.locks.sort_by(|a, b| a.name.cmp(&b.name));
        self.locks.dedup_by(|a, b| a.name == b.name);
        self.locks
            .sort_by_key(|wait| rank(wait.waited_for, wait.held_for));
        self.is_cut |= self.locks.len() > LOCKS_MAX;
        self.locks.truncate(LOCKS_MAX);
    }

    /// The list. `held` is the number of locks that are held.
    fn into_longest(mut self, held: usize) -> Longest {
        self.shorten();
        let waits = self.locks.into_iter().map(|wait| LockWait {
            name: wait.name.to_string(),
            waited_for: wait.waited_for,
            held_for: wait.held_for,
        });
        Longest {
            locks: waits.collect(),
            held: held as u64,
            is_cut: self.is_cut,
        }
    }
}

/// Sorts the longest wait first, and then the longest hold.
fn rank<T: Ord>(waited_for: Option<T>, held_for: Option<T>) -> impl Ord {
    std::cmp::Reverse((waited_for, held_for))
}

impl Shared {
    /// Returns the longest waits on this node, and counts its holds. At most [`PIECES`] pieces of
    /// the table are examined by age, and as many by name. With more locks than that, holds of
    /// locks that nobody waits for may be missing.
    pub(super) fn longest(&self, prefix: &str) -> Option<Longest> {
        let mut top = Top::default();
        let mut after = None;
        for _ in 0..PIECES {
            let (waits, next) = {
                let mut core = self.living()?;
                core.look(self);
                core.table().waits_by_age(Moment::now(), after, PIECE)
            };
            let is_wanted = |wait: &WaitView| wait.name.as_str().starts_with(prefix);
            top.add(waits.into_iter().filter(is_wanted));
            after = next;
            // They come in the order of the list, so these are the first ones.
            if after.is_none() || top.locks.len() >= LOCKS_MAX {
                break;
            }
            std::thread::yield_now();
        }
        let has_all_waits = after.is_none();
        let mut held = 0;
        let mut after = before(prefix);
        let mut has_more = true;
        for _ in 0..PIECES {
            let (waits, next) = {
                let mut core = self.living()?;
                core.look(self);
                let table = core.table();
                table.waits_by_name(Moment::now(), after.as_deref(), PIECE)
            };
            let is_past = |name: &str| name > prefix && !name.starts_with(prefix);
            let is_wanted = |wait: &WaitView| wait.name.as_str().starts_with(prefix);
            let waits: Vec<WaitView> = waits.into_iter().filter(is_wanted).collect();
            held += waits.iter().filter(|wait| wait.held_for.is_some()).count();
            top.add(waits);
            after = next.map(|name| name.to_string());
            has_more = !after.as_deref().is_none_or(is_past);
            if !has_more {
                break;
            }
            std::thread::yield_now();
        }
        if prefix.is_empty() {
            let all = self.living()?.table().holds();
            // The other locks are idle.
            has_more &= !has_all_waits || held < all;
            held = all;
        }
        top.is_cut |= has_more;
        Some(top.into_longest(held))
    }

    /// Returns these locks as this node sees them, as many as fit.
    pub(super) fn views(&self, names: &[String]) -> Option<NodeAnswer> {
        let mut locks = Vec::new();
        let mut examined = 0;
        let mut bytes = 0;
        for piece in names[..names.len().min(LOCKS_MAX)].chunks(PIECE_LOOKS) {
            let mut core = self.living()?;
            core.look(self);
            for name in piece {
                if bytes > ANSWER_BYTES_MAX {
                    break;
                }
                examined += 1;
                let name = LockName::new(name).ok();
                let view = name.and_then(|name| core.table().view(Moment::now(), &name));
                bytes += view.as_ref().map_or(0, |view| view.bytes());
                locks.extend(view);
            }
            drop(core);
            std::thread::yield_now();
        }
        Some(NodeAnswer::Views { locks, examined })
    }
}

impl Node {
    /// Asks all nodes for the locks with this prefix that clients have waited for longest. Returns
    /// them with the longest first, as many as fit into an answer. The answer may be as old as
    /// [`SHARED_FOR`].
    ///
    /// If the caller gives up before the nodes were asked, nothing is left of the question.
    /// Otherwise the answers are awaited all the same, because the nodes work for them already.
    /// `turn` is dropped when they are there.
    pub(crate) async fn longest_waits(&self, prefix: &str, turn: Turn) -> Arc<Found> {
        let cell = self.shared.longest_found.cell(prefix);
        let mut found = cell.lock_owned().await;
        let now = Moment::now();
        if let Some(found) = &*found
            && now.since(found.at) < SHARED_FOR
        {
            return Arc::clone(found);
        }
        let permits = Arc::clone(&self.shared.longest_found.looking);
        let one_of_few = permits.acquire_owned().await;
        let (node, prefix) = (self.clone(), prefix.to_owned());
        let looking = tokio::spawn(async move {
            let fresh = Arc::new(node.find_longest_waits(&prefix).await);
            *found = Some(Arc::clone(&fresh));
            drop((one_of_few, turn));
            fresh
        });
        match looking.await.map_err(JoinError::try_into_panic) {
            Ok(fresh) => fresh,
            Err(Ok(panic)) => resume_unwind(panic),
            // It ends with its runtime.
            Err(Err(_)) => pending().await,
        }
    }

    async fn find_longest_waits(&self, prefix: &str) -> Found {
        let mut seen = Gathered::nothing();
        let mut ranks: HashMap<String, (Option<Duration>, Option<Duration>)> = HashMap::new();
        let mut held = 0_u64;
        let mut is_cut = false;
        let mut answers = ask_all(self, |_| NodeQuestion::Longest(prefix.to_owned()));
        while let Some((node, answer)) = answers.next().await {
            let Some(NodeAnswer::Longest(longest)) = answer else {
                seen.silent.push(node.to_string());
                continue;
            };
            held = held.saturating_add(longest.held);
            is_cut |= longest.is_cut;
            for lock in longest.locks {
                let rank = ranks.entry(lock.name).or_default();
                rank.0 = rank.0.max(lock.waited_for);
                rank.1 = rank.1.max(lock.held_for);
            }
        }
        drop(answers);
        let mut ranks: Vec<_> = ranks.into_iter().collect();
        ranks.sort_by(|(a_name, a), (b_name, b)| {
            rank(a.0, a.1)
                .cmp(&rank(b.0, b.1))
                .then_with(|| a_name.cmp(b_name))
        });
        is_cut |= ranks.len() > LOCKS_MAX;
        ranks.truncate(LOCKS_MAX);
        let names: Vec<String> = ranks.into_iter().map(|(name, _)| name).collect();
        if !names.is_empty() {
            seen.look(self, NodeQuestion::Views(names.clone())).await;
        }
        seen.conclude(self);
        let (locks, is_full) = self.seen_locks(&mut seen, &names);
        is_cut |= is_full || seen.examined < names.len();
        // Those that pass from one holder to the next right now are not among the holds.
        let passing = locks.iter().filter(|lock| lock.holder.is_none()).count();
        let total = held.saturating_add(passing as u64).max(locks.len() as u64);
        let page = LockList {
            locks,
            next: None,
            silent: seen.silent,
            reason: seen.reason,
        };
        Found {
            at: Moment::now(),
            page,
            total,
            is_cut,
        }
    }

    /// Merges what the nodes reported about these locks, as far as it fits into an answer. Returns
    /// the locks, and whether some did not fit.
    fn seen_locks(&self, seen: &mut Gathered, names: &[String]) -> (Vec<LockInfo>, bool) {
        let mut locks = Vec::new();
        let mut bytes = 0;
        let mut is_full = false;
        for name in names.iter().take(seen.examined) {
            // It may have become free meanwhile.
            let Some(sights) = seen.locks.remove(name) else {
                continue;
            };
            let algorithm = self.shared.algorithm(name);
            let lock = merge(name, algorithm, sights, seen.silent.clone(), seen.nobody);
            bytes += weight(&lock);
            is_full = bytes > BYTES_MAX;
            if is_full {
                break;
            }
            locks.push(lock);
        }
        locks.sort_by_cached_key(|lock| {
            let waited = lock.waiters.first().map(|waiter| waiter.waited_for_ms);
            let held = lock.holder.as_ref().map(|holder| holder.held_for_ms);
            rank(waited, held)
        });
        (locks, is_full)
    }
}
