//! What nodes and leaders do with an event, and what follows.

use rand::RngExt;
use soloist_api::Moment;
use soloist_core::Term;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::member::{MemberEffects, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::Roster;
use soloist_core::locks::LockEvent;

use super::{Event, World, moment};
use crate::epochs::describe;
use crate::epochs::referee::Entry;
use crate::epochs::setup::{index_of, index_of_incarnation};

impl World {
    /// Lets a node handle an event, and carries out the effects.
    pub fn with<T>(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> T,
    ) -> Option<T> {
        let now = self.local(index);
        let mut out = MemberEffects::default();
        let participant = self.nodes[index].participant.as_mut()?;
        let (before, was) = (participant.me().clone(), participant.member_state());
        let result = event(participant, now, &mut out);
        let name = &self.names[index];
        let world_now = moment(self.now);
        self.journal
            .note_effects(world_now, name, was, participant, &out, true);
        if out.lapsed {
            self.nodes[index].members.clear();
            self.forget_who_is_gone(index);
        }
        if let Some(change) = out.links.take() {
            self.nodes[index].members = change.members;
            self.forget_who_is_gone(index);
        }
        let sends: Vec<_> = out
            .locks
            .sends()
            .map(|(to, bytes)| (to, bytes.to_vec()))
            .collect();
        for (to, bytes) in sends {
            let mut members = self.nodes[index].members.iter();
            let to = members.find(|member| member.incarnation == to);
            let to = to.expect("a message goes to a linked member").clone();
            let link = (index, index_of(&to));
            let from = before.clone();
            let (choice, held_back) = (self.choice, self.cuts.contains(&link));
            self.note(|| {
                let wait = if held_back { ", which waits" } else { "" };
                let text = describe::named_frame(choice, &bytes);
                format!("{} -> {} {text}{wait}", from.name, to.name)
            });
            self.schedule_frame(link, Event::Frame { from, to, bytes });
        }
        for event in std::mem::take(&mut out.locks.events) {
            self.observe(index, &event);
            self.nodes[index].clients.note(&event);
        }
        for message in out.keepers {
            let is_lost = self.nodes[index].to_keepers_cut || self.rng.random_bool(self.loss);
            self.note_to_keepers(index, &message, is_lost);
            if message == ToKeepers::Leave {
                self.left.insert(before.incarnation);
            }
            if !is_lost {
                let from = self.nodes[index].participant.as_ref()?.me().clone();
                let delay = self.some_delay() + self.nodes[index].away;
                self.schedule(self.now + delay, Event::ToKeepers { from, message });
            }
        }
        let participant = self.nodes[index].participant.as_ref()?;
        let until = participant.valid_until();
        let until = until.map(|until| self.nodes[index].clock.shows(until));
        self.journal
            .note_lease(world_now, &self.names[index], until);
        self.referee
            .extend(index, |hold| participant.promise(hold).ok().flatten());
        if participant.has_left() {
            self.crash(index);
            return Some(result);
        }
        let next = participant.next_deadline();
        if let Some(next) = next {
            let left = next.since(self.local(index));
            self.wake(index, self.now + left.as_micros() as u64 * 21 / 20 + 1000);
        }
        Some(result)
    }

    pub(super) fn wake(&mut self, index: usize, at: u64) {
        if self.nodes[index].wakes_at.is_none_or(|known| at < known) {
            self.nodes[index].wakes_at = Some(at);
            self.schedule(at, Event::Wake(index));
        }
    }

    pub(super) fn schedule_frame(&mut self, link: (usize, usize), event: Event) {
        let mut held_back = self.held_back.iter();
        if self.cuts.contains(&link) || held_back.any(|(other, ..)| *other == link) {
            self.held_back.push((link, self.now, event));
            return;
        }
        let delay = self.some_delay();
        let last = self.arrivals.entry(link).or_default();
        *last = (self.now + delay).max(*last + 1);
        let at = *last;
        self.schedule(at, event);
    }

    fn note_to_keepers(&mut self, index: usize, message: &ToKeepers, is_lost: bool) {
        // That leases are renewed all the time is no news.
        if matches!(message, ToKeepers::Renew { .. }) && !is_lost {
            return;
        }
        let World { journal, names, .. } = self;
        journal.note(moment(self.now), || {
            let name = |incarnation| names[index_of_incarnation(incarnation)].to_string();
            let text = describe::to_keepers(message, name);
            let lost = if is_lost { ", which is lost" } else { "" };
            format!("{} -> the leader {text}{lost}", names[index])
        });
    }

    /// Lets the referee check what a client observes.
    fn observe(&mut self, index: usize, event: &LockEvent) {
        match event {
            LockEvent::Granted { grant, waited, .. } => {
                self.referee.note_wait(*waited);
                let (nodes, now) = (&self.nodes, self.now);
                let participant = nodes[index].participant.as_ref();
                let promise = participant.and_then(|one| one.promise(grant.hold).ok()?);
                let entry = Entry {
                    node: index,
                    hold: grant.hold,
                    promised: promise.unwrap_or_default(),
                    has_expired: false,
                };
                let is_valid = |entry: &Entry| entry.promised > nodes[entry.node].clock.at(now);
                let strict = self.clocks_keep_the_margin;
                let entered = self
                    .referee
                    .enter(&grant.lock, grant.fence, entry, is_valid, strict);
                if let Err(reason) = entered {
                    self.fail(reason);
                }
            }
            // A client whose hold was lost may not have heard of it.
            LockEvent::Ended {
                hold, lock, end, ..
            } => self.referee.end(lock, *hold, *end),
            LockEvent::Waiting { .. } | LockEvent::Denied { .. } | LockEvent::Cancelled { .. } => {}
        }
    }

    pub(super) fn with_leader(
        &mut self,
        term: Term,
        event: impl FnOnce(&mut Leader, &Roster, Moment, &mut LeaderEffects),
    ) {
        let Some((leader, clock, wakes_at)) = self.leaders.get_mut(&term) else {
            return;
        };
        let mut out = LeaderEffects::default();
        let now = clock.at(self.now);
        let isolated = self.isolated.as_ref().filter(|one| one.term == term);
        let roster = isolated.map_or(&self.roster, |one| &one.roster);
        event(leader, roster, now, &mut out);
        let (name, world_now) = (|| describe::leader(term), moment(self.now));
        for notice in &out.notices {
            let line = || format!("{} {}", name(), describe::notice(notice));
            self.journal.note(world_now, line);
        }
        if let Some(next) = leader.next_deadline(now) {
            let left = next.since(now).as_micros() as u64 * 21 / 20 + 1;
            let at = self.now + left;
            if *wakes_at <= self.now || at < *wakes_at {
                *wakes_at = at;
                self.schedule(at, Event::WakeLeader(term));
            }
        }
        for (to, message) in out.sends {
            let node = &self.nodes[index_of(&to)];
            let (cut, away) = (node.from_keepers_cut, node.away);
            let is_lost = cut || self.rng.random_bool(self.loss);
            if is_lost || !matches!(message, ToMember::Granted { .. }) {
                self.note(|| {
                    let lost = if is_lost { ", which is lost" } else { "" };
                    let text = describe::to_member(&message);
                    format!("{} -> {} {text}{lost}", name(), to.name)
                });
            }
            if !is_lost {
                let delay = self.some_delay() + away;
                self.schedule(self.now + delay, Event::ToMember { to, message });
            }
        }
        if let Some(command) = out.propose {
            self.note(|| format!("{} proposes: {}", name(), describe::command(&command)));
            let delay = self.some_delay();
            self.schedule(self.now + delay, Event::Commit { term, command });
        }
        if out.confirm {
            let delay = self.some_delay();
            self.schedule(self.now + delay, Event::Confirm { term });
        }
    }
}
