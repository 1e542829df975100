//! Asks all nodes at once and merges their answers.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{FuturesUnordered, StreamExt};
use soloist_api::{Holder, LockInfo, LockList, LockState, Waiter};

use super::event::{milliseconds, unix_ms};
use super::inquiry::{Answer, Question};
use crate::{Moment, Node};
use soloist_api::{LockName, NodeName};
use soloist_core::Incarnation;
use soloist_core::epochs::member::MemberState;
use soloist_core::locks::LockView;
use soloist_transport::links::LinkStatus;

/// Maximum number of locks in one answer.
const LOCKS_MAX: usize = 1000;

/// Approximate maximum size of one answer in bytes. A slow reader keeps it in memory.
const BYTES_MAX: usize = 512 << 10;

/// Asks all nodes, except those known to be unreachable: a question to them would only wait in the
/// link's buffer.
pub(crate) fn ask_all<'a>(
    node: &'a Node,
    question: &'a Question,
) -> FuturesUnordered<impl Future<Output = (NodeName, Option<Answer>)> + 'a> {
    let shared = &node.shared;
    let Some((me, members)) = shared
        .living()
        .map(|core| (core.me().clone(), core.members()))
    else {
        return FuturesUnordered::new();
    };
    let links: HashMap<Incarnation, LinkStatus> = {
        let status = shared.links().status();
        let by_incarnation = status.into_iter().map(|link| (link.incarnation, link));
        by_incarnation.collect()
    };
    // A node that is not a member can still report what it knows itself.
    let alone = [me.clone()];
    let asked = if members.is_empty() {
        &alone[..]
    } else {
        &members[..]
    };
    let asked = asked.iter().map(|member| {
        let incarnation = member.incarnation;
        let is_down = links.get(&incarnation).is_some_and(is_down);
        let reachable = incarnation == me.incarnation || !is_down;
        let name = member.name.clone();
        async move {
            if reachable {
                (name, shared.ask(incarnation, question).await)
            } else {
                (name, None)
            }
        }
    });
    asked.collect()
}

/// Returns whether the link to a peer was tried and failed. A link that was never used is not down:
/// its first frame opens it.
fn is_down(link: &LinkStatus) -> bool {
    let is_used = link.frames_sent > 0 || link.buffered_frames > 0;
    is_used && !link.out_up && link.last_error.is_some()
}

impl Node {
    /// Asks all nodes about a lock.
    pub(crate) async fn lock_info(&self, name: &LockName) -> LockInfo {
        let shared = &self.shared;
        let _one_of_few = shared.looking.acquire().await;
        let seen = look(self, Question::Lock(name.to_string())).await;
        seen.lock(name.as_str(), shared.algorithm(name.as_str()))
    }

    /// Asks all nodes about the locks after this one, as many as fit into an answer.
    pub(crate) async fn lock_list(&self, after: Option<String>) -> LockList {
        let shared = &self.shared;
        let _one_of_few = shared.looking.acquire().await;
        let seen = look(self, Question::Locks(after)).await;
        seen.page(|name| shared.algorithm(name).to_owned())
    }
}

/// What the nodes reported about locks, and which nodes did not answer.
struct Seen {
    /// State of a lock for which no holder was reported.
    nobody: LockState,
    /// Why something may be missing.
    reason: Option<String>,
    /// By lock: the nodes that reported it, and what they reported.
    locks: BTreeMap<String, Vec<Sight>>,
    silent: Vec<String>,
    /// Last name up to which the lists of all nodes are complete, or `None` if they are complete to
    /// the end.
    complete_to: Option<String>,
}

/// A lock as one node sees it.
struct Sight {
    node: String,
    view: LockView,
    /// When the answer arrived. The time until all answers are merged is added to its durations.
    at: Moment,
}

/// Asks all nodes about one lock or about all locks.
async fn look(node: &Node, question: Question) -> Seen {
    let mut seen = Seen {
        nobody: LockState::Free,
        reason: None,
        locks: BTreeMap::new(),
        silent: Vec::new(),
        complete_to: None,
    };
    let after = match &question {
        Question::Locks(after) => after.as_deref(),
        Question::Lock(_) | Question::Health | Question::LeaveSession(_) => None,
    };
    let mut answers = ask_all(node, &question);
    while let Some((name, answer)) = answers.next().await {
        seen.take(name.as_str(), answer, after);
    }
    seen.silent.sort_unstable();
    let silence = || format!("no answer from {}", seen.silent.join(", "));
    let is_silent = !seen.silent.is_empty();
    seen.reason = node
        .shared
        .why_unknown()
        .or_else(|| is_silent.then(silence));
    seen.nobody = match node.shared.living().map(|core| core.member_state()) {
        Some(MemberState::Member(_)) if seen.silent.is_empty() => LockState::Free,
        Some(MemberState::Member(_) | MemberState::Outside) | None => LockState::Unknown,
        Some(MemberState::Changing(_)) => LockState::Changing,
    };
    seen
}

impl Seen {
    /// Takes a node's answer to a question about locks after this name.
    fn take(&mut self, node: &str, answer: Option<Answer>, after: Option<&str>) {
        // A list whose `next` does not advance would be requested forever.
        let leads_on = |next: &Option<String>| next.is_none() || next.as_deref() > after;
        let (views, next) = match answer {
            Some(Answer::Lock(view)) => (view.into_iter().collect(), None),
            Some(Answer::Locks { locks, next }) if leads_on(&next) => (locks, next),
            Some(Answer::Locks { .. } | Answer::Health(_) | Answer::Left(_)) | None => {
                self.silent.push(node.to_owned());
                return;
            }
        };
        if let Some(next) = next {
            let earlier = self.complete_to.as_ref().is_none_or(|to| next < *to);
            if earlier {
                self.complete_to = Some(next);
            }
        }
        let at = Moment::now();
        for view in views {
            let sights = self.locks.entry(view.name.clone()).or_default();
            let node = node.to_owned();
            sights.push(Sight { node, view, at });
        }
    }

    /// Returns one lock.
    fn lock(mut self, name: &str, algorithm: &str) -> LockInfo {
        let sights = self.locks.remove(name).unwrap_or_default();
        let mut lock = merge(name, algorithm, sights, self.silent, self.nobody);
        lock.reason = self.reason;
        lock
    }

    /// Returns as many locks as fit into an answer. `algorithm` returns the algorithm of a lock.
    fn page(self, algorithm: impl Fn(&str) -> String) -> LockList {
        let complete_to = self.complete_to;
        let is_complete = |name: &String| complete_to.as_ref().is_none_or(|to| name <= to);
        let mut page = LockList {
            locks: Vec::new(),
            next: None,
            silent: self.silent,
            reason: self.reason,
        };
        let mut bytes = 0;
        for (name, sights) in self.locks {
            if !is_complete(&name) {
                break;
            }
            if page.locks.len() == LOCKS_MAX || bytes > BYTES_MAX {
                page.next = page.locks.last().map(|lock| lock.name.clone());
                return page;
            }
            let silent = page.silent.clone();
            let lock = merge(&name, &algorithm(&name), sights, silent, self.nobody);
            bytes += weight(&lock);
            page.locks.push(lock);
        }
        page.next = complete_to;
        page
    }
}

/// Returns the approximate size of a lock in an answer, in bytes.
fn weight(lock: &LockInfo) -> usize {
    let owners = lock.waiters.iter().map(|waiter| waiter.owner.len() + 80);
    let silent = lock.silent.iter().map(|node| node.len() + 3);
    lock.name.len() + 400 + owners.sum::<usize>() + silent.sum::<usize>()
}

fn merge(
    name: &str,
    algorithm: &str,
    sights: Vec<Sight>,
    silent: Vec<String>,
    nobody: LockState,
) -> LockInfo {
    let now = Moment::now();
    let mut holders = Vec::new();
    let mut waiters = Vec::new();
    let mut waiting = 0u64;
    for Sight { node, view, at } in sights {
        waiting = waiting.saturating_add(view.waiting as u64);
        if let Some(mut holder) = view.holder {
            holder.held_for = holder.held_for.saturating_add(now.since(at));
            holders.push((node.clone(), holder));
        }
        for mut waiter in view.waiters {
            waiter.waited_for = waiter.waited_for.saturating_add(now.since(at));
            waiters.push((node.clone(), waiter));
        }
    }
    // Nodes answer at different times, so two may have reported a holder. The higher fencing token
    // is the later one.
    let holder = holders.into_iter().max_by_key(|(_, holder)| holder.fence);
    let holder = holder.map(|(node, holder)| Holder {
        owner: holder.owner,
        node,
        fence: holder.fence,
        held_for_ms: milliseconds(holder.held_for),
        since_unix_ms: unix_ms(holder.held_for),
        valid_for_ms: holder.valid_for.map(milliseconds),
    });
    let state = match &holder {
        Some(_) => LockState::Held,
        None => nobody,
    };
    waiters.sort_by_key(|(_, waiter)| std::cmp::Reverse(waiter.waited_for));
    let shown = waiters.into_iter().take(LockView::WAITERS_SHOWN);
    let waiters = shown.zip(1..).map(|((node, waiter), position)| Waiter {
        position,
        owner: waiter.owner,
        node,
        waited_for_ms: milliseconds(waiter.waited_for),
    });
    LockInfo {
        name: name.to_owned(),
        state,
        algorithm: algorithm.to_owned(),
        holder,
        waiters: waiters.collect(),
        waiting,
        silent,
        reason: None,
    }
}
