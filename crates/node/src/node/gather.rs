//! Asks all nodes at once and merges their answers.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{FuturesUnordered, StreamExt};
use soloist_api::{Event, Holder, LockInfo, LockList, LockState, Waiter};

use super::event::{milliseconds, unix_ms};
use super::inquiry::{NodeAnswer, NodeQuestion};
use super::kept::RECENT_MAX;
use crate::{Moment, Node};
use soloist_api::{LockName, NodeName};
use soloist_core::Incarnation;
use soloist_core::epochs::member::MemberState;
use soloist_core::locks::LockView;
use soloist_transport::links::LinkStatus;

/// Maximum number of locks in one answer.
pub(super) const LOCKS_MAX: usize = 1000;

/// Approximate maximum size of one answer in bytes. A slow reader keeps it in memory.
pub(super) const BYTES_MAX: usize = 512 << 10;

/// Asks all nodes, except those known to be unreachable: a question to them would only wait in the
/// link's buffer. `question` returns the question for a node.
pub(crate) fn ask_all<Q: Fn(&str) -> NodeQuestion>(
    node: &Node,
    question: Q,
) -> FuturesUnordered<impl Future<Output = (NodeName, Option<NodeAnswer>)> + use<'_, Q>> {
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
        let question = question(name.as_str());
        async move {
            if reachable {
                (name, shared.ask(incarnation, &question).await)
            } else {
                (name, None)
            }
        }
    });
    asked.collect()
}

/// Returns whether the link to a peer was tried and failed. A link that was never used is not down:
/// its first frame opens it.
pub(super) fn is_down(link: &LinkStatus) -> bool {
    let is_used = link.frames_sent > 0 || link.buffered_frames > 0;
    is_used && !link.out_up && link.last_error.is_some()
}

impl Node {
    /// Asks all nodes about a lock.
    pub(crate) async fn lock_info(&self, name: &LockName) -> LockInfo {
        let _one_of_few = self.shared.looking.acquire().await;
        self.seen_lock(name).await
    }

    /// As [`lock_info`](Node::lock_info), for a caller that has a place among the few already.
    pub(crate) async fn seen_lock(&self, name: &LockName) -> LockInfo {
        let seen = look(self, NodeQuestion::Lock(name.to_string())).await;
        seen.lock(name.as_str(), self.shared.algorithm(name.as_str()))
    }

    /// Asks all nodes for the last events of a lock. Returns them oldest first.
    pub(crate) async fn recent_events_of(&self, name: &LockName) -> Vec<Event> {
        let _one_of_few = self.shared.looking.acquire().await;
        let mut events = Vec::new();
        let mut answers = ask_all(self, |_| NodeQuestion::Recent(name.to_string()));
        while let Some((node, answer)) = answers.next().await {
            if let Some(NodeAnswer::Recent(rows)) = answer {
                let rows = rows.into_iter();
                events.extend(rows.map(|row| row.into_event(node.as_str())));
            }
        }
        // In the same millisecond, a release comes before the next grant: fences rise.
        events.sort_by_key(|event| (event.at_unix_ms, event.fence));
        events.drain(..events.len().saturating_sub(RECENT_MAX));
        events
    }

    /// Asks all nodes about the locks after this one, as many as fit into an answer.
    pub(crate) async fn lock_list(&self, after: Option<String>) -> LockList {
        let shared = &self.shared;
        let _one_of_few = shared.looking.acquire().await;
        let seen = look(self, NodeQuestion::Locks(after)).await;
        seen.page(|name| shared.algorithm(name).to_owned())
    }

    /// Asks all nodes about the locks with this prefix after this one, as many as fit into an
    /// answer.
    pub(crate) async fn lock_list_with(&self, prefix: &str, after: Option<String>) -> LockList {
        let mut page = self.lock_list(after.max(before(prefix))).await;
        // Locks are sorted by name, so those with the prefix follow each other.
        let is_past = |name: &str| !name.starts_with(prefix) && name > prefix;
        if page.next.as_deref().is_some_and(is_past) {
            page.next = None;
        }
        page.locks.retain(|lock| lock.name.starts_with(prefix));
        page
    }
}

/// Returns a text before all names with this prefix, and after nearly all other names before them.
pub(super) fn before(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    let last = text.pop()?;
    let previous = char::from_u32(u32::from(last).checked_sub(1)?);
    // Between U+D7FF and U+E000 there are no characters.
    text.push(previous.unwrap_or('\u{d7ff}'));
    text.push(char::MAX);
    Some(text)
}

/// What the nodes reported about locks, and which nodes did not answer.
pub(super) struct Gathered {
    /// State of a lock for which no holder was reported.
    pub nobody: LockState,
    /// Why something may be missing.
    pub reason: Option<String>,
    /// By lock: the nodes that reported it, and what they reported.
    pub locks: BTreeMap<String, Vec<Sight>>,
    /// Sorted, once all have answered.
    pub silent: Vec<String>,
    /// Last name up to which the lists of all nodes are complete, or `None` if they are complete to
    /// the end.
    complete_to: Option<String>,
    /// Number of the locks that were asked for by name which all nodes have examined.
    pub examined: usize,
}

/// A lock as one node sees it.
pub(super) struct Sight {
    node: String,
    view: LockView,
    /// When the answer arrived. The time until all answers are merged is added to its durations.
    at: Moment,
}

/// Asks all nodes about one lock, about some or about all.
async fn look(node: &Node, question: NodeQuestion) -> Gathered {
    let mut seen = Gathered::nothing();
    seen.look(node, question).await;
    seen.conclude(node);
    seen
}

impl Gathered {
    /// Before anybody was asked.
    pub(super) fn nothing() -> Self {
        Gathered {
            nobody: LockState::Free,
            reason: None,
            locks: BTreeMap::new(),
            silent: Vec::new(),
            complete_to: None,
            examined: usize::MAX,
        }
    }

    /// Asks all nodes, and takes their answers.
    pub(super) async fn look(&mut self, node: &Node, question: NodeQuestion) {
        let after = match &question {
            NodeQuestion::Locks(after) => after.as_deref(),
            _ => None,
        };
        let mut answers = ask_all(node, |_| question.clone());
        while let Some((name, answer)) = answers.next().await {
            self.take(name.as_str(), answer, after);
        }
    }

    /// Concludes what it means that some nodes did not answer.
    pub(super) fn conclude(&mut self, node: &Node) {
        self.silent.sort_unstable();
        self.silent.dedup();
        let silence = || format!("no answer from {}", self.silent.join(", "));
        let is_silent = !self.silent.is_empty();
        let shared = &node.shared;
        self.reason = shared.why_unknown().or_else(|| is_silent.then(silence));
        self.nobody = match shared.living().map(|core| core.member_state()) {
            Some(MemberState::Member(_)) if !is_silent => LockState::Free,
            Some(MemberState::Member(_) | MemberState::Outside) | None => LockState::Unknown,
            Some(MemberState::Changing(_)) => LockState::Changing,
        };
    }

    /// Takes a node's answer to a question about locks after this name.
    fn take(&mut self, node: &str, answer: Option<NodeAnswer>, after: Option<&str>) {
        // A list whose `next` does not advance would be requested forever.
        let leads_on = |next: &Option<String>| next.is_none() || next.as_deref() > after;
        let (views, next) = match answer {
            Some(NodeAnswer::Lock(view)) => (view.into_iter().collect(), None),
            Some(NodeAnswer::Locks { locks, next }) if leads_on(&next) => (locks, next),
            Some(NodeAnswer::Views { locks, examined }) => {
                self.examined = self.examined.min(examined as usize);
                (locks, None)
            }
            _ => {
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
pub(super) fn weight(lock: &LockInfo) -> usize {
    let owners = lock.waiters.iter().map(|waiter| waiter.owner.len() + 80);
    let silent = lock.silent.iter().map(|node| node.len() + 3);
    lock.name.len() + 400 + owners.sum::<usize>() + silent.sum::<usize>()
}

pub(super) fn merge(
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
        expires_in_ms: holder.expires_in.map(milliseconds),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_after_what_comes_before_it() {
        for prefix in ["a", "a/", "a/b", "\u{e000}", "!"] {
            let before = before(prefix).unwrap();
            assert!(before.as_str() < prefix, "{before:?} {prefix:?}");
        }
        assert!(before("b").unwrap().as_str() > "azzz");
        assert_eq!(before(""), None);
    }
}
