//! What earlier looks have learned, so that each look asks only for what is new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use soloist_api::dashboard::{Change, ChangeKind, History};
use soloist_core::record::{
    Departures, JOURNAL_MAX, Noted, SECONDS_KEPT, Second, Seconds, merged_changes, settled,
};

use super::facts::Answers;
use crate::node::kept::Kept;

/// A second is complete this long after it began: nodes may answer a moment later, and their clocks
/// may differ a little. What a node tells later is added when it does.
const COMPLETE_AFTER_S: u64 = 2;

/// Maximum number of notes about the membership that are kept, of all nodes, and of notes about
/// losses and links.
const NOTES_MAX: usize = 4 * JOURNAL_MAX;

/// A member that dies is evicted this long after its lease at most, if nothing else fails. What it
/// told before that is too old.
const EVICTED_WITHIN_S: u64 = 5;

/// A note's node and number.
type NoteKey = (String, u64);

/// What earlier looks have learned.
#[derive(Default)]
pub(super) struct Known {
    /// What each node has told.
    nodes: BTreeMap<String, Heard>,
    membership: BTreeMap<NoteKey, Noted>,
    /// Notes about losses and links.
    local: BTreeMap<NoteKey, Noted>,
    /// Of older notes about the membership.
    departures: Departures<NoteKey>,
    /// What happened in the whole cluster.
    pub(super) seconds: Seconds,
    /// By second: holds of members that died, which did not tell their end.
    died: BTreeMap<u64, u64>,
    /// The last second that is complete.
    complete: Option<u64>,
    /// Seconds of which nothing is known, because this node had no lease.
    unknown: BTreeSet<u64>,
    /// The first second of which something is known.
    since_s: Option<u64>,
    /// Whether a node's clock was set back, so that some of its seconds would count twice.
    is_stale: bool,
    pub(super) history: Arc<History>,
    pub(super) changes: Arc<Vec<Change>>,
}

/// What a node has told.
#[derive(Default)]
struct Heard {
    /// When it answered last, by the clock of the node that asks.
    at_s: u64,
    /// The first second that is not counted yet.
    seconds_from: u64,
    /// Number of the last note that is final.
    notes_after: u64,
    /// Its last report.
    told: Told,
    /// The last report before it was restarted.
    told_before: Told,
}

/// What a node has told of its holds.
#[derive(Clone, Copy, Default)]
struct Told {
    /// When, by the clock of the node that asks.
    at_s: u64,
    /// When the node was started.
    since_s: u64,
    holds: u64,
}

impl Heard {
    fn note_holds(&mut self, kept: &Kept, now_s: u64) {
        let told = Told {
            at_s: now_s,
            since_s: kept.since_s,
            holds: kept.report.holds,
        };
        if told.since_s != self.told.since_s {
            self.told_before = self.told;
        }
        self.told = told;
    }

    /// Whether the node ran on when it was evicted at this second, so that it tells itself which
    /// holds it lost.
    fn outlived(&self, at_s: u64, lease_s: u64) -> bool {
        self.told.at_s > at_s && self.told.since_s + lease_s <= at_s
    }

    /// The holds that it told of last before it was evicted at this second.
    fn holds_before(&self, at_s: u64, lease_s: u64) -> Option<u64> {
        let in_time = |told: &Told| {
            let range = at_s.saturating_sub(lease_s + EVICTED_WITHIN_S)..=at_s;
            range.contains(&told.at_s)
        };
        let mut told = [self.told, self.told_before].into_iter();
        told.find(in_time).map(|told| told.holds)
    }
}

impl Known {
    /// Begins a look. If a clock was set back, all seconds are asked for again: members have kept
    /// them.
    pub(super) fn begin(&mut self, now_s: u64) {
        let is_back = self.complete.is_some_and(|last| complete_at(now_s) < last);
        if is_back || self.is_stale {
            self.is_stale = false;
            self.seconds = Seconds::default();
            self.complete = None;
            self.unknown.clear();
            for heard in self.nodes.values_mut() {
                heard.at_s = now_s;
                heard.seconds_from = 0;
            }
        }
    }

    /// The first second to ask a node for.
    pub(super) fn seconds_from(&self, name: &str, now_s: u64) -> u64 {
        let heard = self.nodes.get(name);
        let oldest = now_s.saturating_sub(SECONDS_KEPT - 1);
        heard.map_or(oldest, |heard| heard.seconds_from.max(oldest))
    }

    /// The number of the note after which to ask a node for notes.
    pub(super) fn notes_after(&self, name: &str) -> u64 {
        self.nodes.get(name).map_or(0, |heard| heard.notes_after)
    }

    /// Adds what the nodes have told.
    pub(super) fn learn(
        &mut self,
        answers: &mut Answers,
        now_s: u64,
        is_member: bool,
        lease: Duration,
    ) {
        let complete = complete_at(now_s);
        let oldest = complete.saturating_sub(SECONDS_KEPT - 1);
        let mut has_more = self.complete != Some(complete);
        for (name, answer) in &mut answers.kept {
            let Some((kept, _)) = answer else {
                continue;
            };
            has_more |= self.add_seconds(name, kept, now_s);
            let heard = self.nodes.entry(name.clone()).or_default();
            heard.note_holds(kept, now_s);
            self.add_notes(name, kept);
        }
        self.nodes
            .retain(|_, heard| heard.at_s + SECONDS_KEPT >= now_s);
        self.merge_notes();
        has_more |= self.count_dead(lease.as_millis().div_ceil(1000) as u64);

        if !is_member {
            let from = self.complete.map_or(oldest, |last| last + 1);
            self.unknown.extend(from..=complete);
        } else if answers.kept.values().all(Option::is_some) {
            // All members have told what happened meanwhile.
            has_more |= !self.unknown.is_empty();
            self.unknown.clear();
        }
        self.complete = Some(complete);
        self.seconds.forget_before(oldest);
        self.unknown = self.unknown.split_off(&oldest);
        if has_more {
            self.history = Arc::new(self.points(oldest, complete));
        }
    }

    /// Adds each second of a node once, when it is complete by the clocks of both. Returns whether
    /// there were any.
    fn add_seconds(&mut self, name: &str, kept: &Kept, now_s: u64) -> bool {
        let end = complete_at(now_s) + 1;
        let heard = self.nodes.entry(name.to_owned()).or_default();
        heard.at_s = now_s;
        let from = heard.seconds_from.max(end.saturating_sub(SECONDS_KEPT));
        self.is_stale |= kept.now_s < heard.seconds_from;
        let to = kept.now_s.min(end).max(heard.seconds_from);
        heard.seconds_from = to;
        let mut has_any = false;
        for (at, second) in &kept.seconds {
            if (from..to).contains(at) {
                self.seconds.add(*at, second);
                has_any = true;
            }
        }
        let earliest = self
            .since_s
            .unwrap_or(u64::MAX)
            .min(kept.since_s.min(kept.now_s));
        has_any |= self.since_s != Some(earliest);
        self.since_s = Some(earliest);
        has_any
    }

    fn add_notes(&mut self, name: &str, kept: &mut Kept) {
        let heard = self.nodes.entry(name.to_owned()).or_default();
        heard.notes_after = settled(&kept.notes).unwrap_or(heard.notes_after);
        for (number, noted) in kept.notes.drain(..) {
            let notes = match noted.note.is_local() {
                true => &mut self.local,
                false => &mut self.membership,
            };
            notes.insert((name.to_owned(), number), noted);
        }
    }

    /// Merges the notes of all nodes into changes.
    fn merge_notes(&mut self) {
        drop_oldest(&mut self.local);
        let mut dropped = drop_oldest(&mut self.membership);
        dropped.sort_by_key(|(_, noted)| noted.note.epoch());
        for (key, noted) in dropped {
            self.departures.retire(key, noted);
        }
        let notes = self.departures.iter().chain(&self.membership);
        let notes = notes.chain(&self.local);
        let notes = notes.map(|((name, number), noted)| (name.as_str(), *number, noted));
        let changes = merged_changes(notes);
        if changes != *self.changes {
            self.changes = Arc::new(changes);
        }
    }

    /// Counts the holds of members that died. Nobody tells their end: the leader knows how many
    /// there were when the member renewed its lease last, and if it was the leader that died, this
    /// node may have asked it shortly before. Returns whether anything is new.
    fn count_dead(&mut self, lease_s: u64) -> bool {
        let mut died: BTreeMap<u64, u64> = BTreeMap::new();
        let evicted = |change: &&Change| change.kind == ChangeKind::Evicted;
        for change in self.changes.iter().filter(evicted) {
            let at_s = change.at_ms / 1000;
            let node = change.node.as_ref();
            let heard = node.and_then(|node| self.nodes.get(node));
            if heard.is_some_and(|heard| heard.outlived(at_s, lease_s)) {
                continue;
            }
            let holds = change.holds.map(u64::from);
            let holds = holds.or_else(|| heard?.holds_before(at_s, lease_s));
            *died.entry(at_s).or_default() += holds.unwrap_or_default();
        }
        died.retain(|_, holds| *holds > 0);
        let is_new = died != self.died;
        self.died = died;
        is_new
    }

    fn points(&self, oldest: u64, complete: u64) -> History {
        let since_s = self.since_s.unwrap_or(complete + 1);
        let points = (oldest..=complete).map(|second| {
            let is_known = second >= since_s && !self.unknown.contains(&second);
            let point = || {
                let counted = self.seconds.get(second);
                let mut point = counted.map(Second::point).unwrap_or_default();
                point.lost += self.died.get(&second).copied().unwrap_or_default();
                point
            };
            is_known.then(point)
        });
        History {
            from_s: oldest,
            points: points.collect(),
        }
    }
}

/// The last second that is complete at this one.
fn complete_at(now_s: u64) -> u64 {
    now_s.saturating_sub(COMPLETE_AFTER_S)
}

/// Drops the oldest notes if there are too many, and returns them.
fn drop_oldest(notes: &mut BTreeMap<NoteKey, Noted>) -> Vec<(NoteKey, Noted)> {
    let too_many = notes.len().saturating_sub(NOTES_MAX);
    if too_many == 0 {
        return Vec::new();
    }
    let times = notes.iter().map(|(key, noted)| (noted.at_ms, key.clone()));
    let mut oldest: Vec<(u64, NoteKey)> = times.collect();
    oldest.sort_unstable();
    oldest.truncate(too_many);
    let dropped = oldest
        .into_iter()
        .filter_map(|(_, key)| notes.remove_entry(&key));
    dropped.collect()
}

#[cfg(test)]
mod tests;
