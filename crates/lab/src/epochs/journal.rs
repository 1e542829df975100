//! Lines about what happens in a cluster, each with its time.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use soloist_api::{Moment, NodeName};
use soloist_core::epochs::member::{MemberEffects, MemberState, Participant};

use super::describe::{self, list, seconds};

/// The lines of a run, or nothing while nobody reads them. It is no part of a state's identity.
#[derive(Clone, Default, Debug)]
pub struct Journal(Option<Lines>);

#[derive(Clone, Debug)]
struct Lines {
    origin: Moment,
    lines: Vec<String>,
    /// The leases that the reader knows of.
    known: BTreeMap<NodeName, Moment>,
    /// Leases that were renewed since the last line, and when. Of several renewals in a row, only
    /// the last is worth a line.
    renewed: BTreeMap<NodeName, (Moment, Moment)>,
}

impl Journal {
    /// An empty journal. Times are counted from `origin`.
    pub fn since(origin: Moment) -> Self {
        Journal(Some(Lines {
            origin,
            lines: Vec::new(),
            known: BTreeMap::new(),
            renewed: BTreeMap::new(),
        }))
    }

    /// Whether somebody reads the lines.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a line, which is only made if somebody reads it.
    pub fn note(&mut self, now: Moment, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.flush();
            lines.add(now, &line());
        }
    }

    /// Notes how an event changed a node, and what its clients observe. `names_locks` is whether
    /// there are several locks.
    pub fn note_effects(
        &mut self,
        now: Moment,
        node: &NodeName,
        was: MemberState,
        participant: &Participant,
        out: &MemberEffects,
        names_locks: bool,
    ) {
        if !self.is_on() {
            return;
        }
        let is = participant.member_state();
        let change = match (was, is) {
            _ if out.lapsed => Some("is no longer a member: it has no valid lease".to_owned()),
            (MemberState::Member(epoch), MemberState::Changing(_)) => {
                Some(format!("freezes epoch {epoch}"))
            }
            (MemberState::Member(before), MemberState::Member(epoch)) if before == epoch => None,
            (_, MemberState::Member(epoch)) => Some(format!("is a member of epoch {epoch}")),
            _ => None,
        };
        let has_left = is == MemberState::Outside && was != is && !out.lapsed;
        let left = has_left.then(|| "leaves the cluster".to_owned());
        let events = out.locks.events.iter();
        let events = events.map(|event| describe::lock_event(event, names_locks));
        let notices = out.notices.iter().map(describe::notice);
        for line in change.into_iter().chain(events).chain(notices).chain(left) {
            self.note(now, || format!("{node} {line}"));
        }
    }

    /// Takes a node's lease.
    pub fn note_lease(&mut self, now: Moment, node: &NodeName, until: Option<Moment>) {
        let Some(lines) = &mut self.0 else { return };
        let known = lines.known.get(node);
        match until {
            Some(until) if known < Some(&until) => {
                lines.known.insert(node.clone(), until);
                lines.renewed.insert(node.clone(), (now, until));
            }
            Some(_) => {}
            None => {
                lines.known.remove(node);
                lines.renewed.remove(node);
            }
        }
    }

    /// A moment as the reader counts.
    pub fn time(&self, at: Moment) -> String {
        let origin = self.0.as_ref().map(|lines| lines.origin);
        seconds(at.since(origin.unwrap_or_default()))
    }

    /// Removes and returns all lines.
    pub fn take(&mut self) -> Vec<String> {
        let Some(lines) = &mut self.0 else {
            return Vec::new();
        };
        lines.flush();
        std::mem::take(&mut lines.lines)
    }
}

impl Lines {
    fn add(&mut self, now: Moment, line: &str) {
        let time = seconds(now.since(self.origin));
        self.lines.push(format!("{time} {line}"));
    }

    /// Adds a line for all nodes whose leases were renewed at the same time.
    fn flush(&mut self) {
        let mut groups: BTreeMap<(Moment, Moment), Vec<NodeName>> = BTreeMap::new();
        for (node, renewal) in std::mem::take(&mut self.renewed) {
            groups.entry(renewal).or_default().push(node);
        }
        for ((now, until), nodes) in groups {
            let until = seconds(until.since(self.origin));
            let line = format!("{}: lease until {until}", list(nodes, "nobody"));
            self.add(now, &line);
        }
    }
}

impl Hash for Journal {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
