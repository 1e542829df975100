//! What arrives, and what follows from it: messages, frames, and commands that are applied.

use soloist_api::Moment;
use soloist_core::Term;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::member::{MemberEffects, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Applied, Command, Roster};

use super::{Elected, Renewal, State};
use crate::breadth_first::Shared;
use crate::epochs::describe;
use crate::epochs::setup::{index_of, index_of_incarnation};
use crate::epochs::under_way::{Parcel, Way};
use crate::epochs::witness::Violation;

impl State {
    /// Delivers the next message of a channel.
    ///
    /// # Panics
    /// If there is none.
    pub fn deliver(&mut self, way: Way) -> Result<(), Violation> {
        let parcel = self.under_way.take(way).expect("the queue is not empty");
        self.arrive(way, Parcel::clone(&parcel))
    }

    fn arrive(&mut self, way: Way, parcel: Parcel) -> Result<(), Violation> {
        match (way, parcel) {
            (Way::Link { to: index, .. }, Parcel::Frame { from, to, bytes }) => {
                if !self.is_alive(&to) {
                    return Ok(());
                }
                self.with(index, |participant, now, out| {
                    let received = participant.receive(now, from.incarnation, &bytes, out);
                    received.map_err(|error| error.to_string())
                })
            }
            (Way::ToLeader { term, .. }, Parcel::ToKeepers(from, message)) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.receive(now, roster, &from, message, out);
                })
            }
            (Way::ToMember { to: index, .. }, Parcel::ToMember(to, message)) => {
                if !self.is_alive(&to) {
                    return Ok(());
                }
                self.with(index, |participant, now, out| {
                    participant.receive_from_leader(now, message, out);
                    Ok(())
                })
            }
            (Way::Commit { term }, Parcel::Commit(command)) => self.commit(term, command),
            (Way::Commit { term }, Parcel::Applied) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.applied(now, roster, out);
                })
            }
            (Way::Confirm { term }, Parcel::Confirm) => {
                if term != self.term {
                    return self.depose(term);
                }
                self.put(way, Parcel::Confirmed);
                Ok(())
            }
            (Way::Confirm { term }, Parcel::Confirmed) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.confirmed(now, roster, out);
                })
            }
            (way, parcel) => unreachable!("{parcel:?} on {way:?}"),
        }
    }

    fn put(&mut self, way: Way, parcel: Parcel) {
        if self.leads_nowhere(way) {
            return;
        }
        self.under_way.put(way, parcel);
        if let Way::Link { from, to } = way
            && let Some(since) = self.faults.links.get_mut(&(from, to))
        {
            *since = since.or(Some(self.now));
        }
    }

    pub(super) fn drop_what_leads_nowhere(&mut self) {
        let ways = self.under_way.ways();
        let nowhere: Vec<_> = ways.filter(|way| self.leads_nowhere(*way)).collect();
        for way in nowhere {
            self.under_way.drop_all(way);
        }
    }

    /// Whether the channel's receiver is gone.
    fn leads_nowhere(&self, way: Way) -> bool {
        match way {
            Way::Link { to, .. } => self.nodes[to].is_none(),
            Way::ToMember { term, to } => self.nodes[to].is_none() || self.connected_to[to] != term,
            Way::ToLeader { term, .. } | Way::Commit { term } | Way::Confirm { term } => {
                !self.leaders.contains_key(&term)
            }
        }
    }

    /// Applies a command. The leader is told later.
    fn commit(&mut self, term: Term, command: Command) -> Result<(), Violation> {
        if term != self.term {
            return self.depose(term);
        }
        let applied = self.roster.change(|roster| roster.apply(command.clone()));
        if applied == Applied::Refused {
            return Err(format!(
                "the roster refuses the leader's command: {command:?}"
            ));
        }
        let line = || format!("the keepers commit: {}", describe::command(&command));
        self.journal.note(self.now, line);
        self.put(Way::Commit { term }, Parcel::Applied);
        Ok(())
    }

    /// Lets a node handle an event, and carries out the effects.
    pub(super) fn with(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let now = self.now;
        let Some(participant) = &mut self.nodes[index] else {
            return Ok(());
        };
        let (before, was) = (participant.me().clone(), participant.member_state());
        let mut out = MemberEffects::default();
        participant.change(|participant| event(participant, now, &mut out))?;
        let me = participant.me().clone();
        let name = &self.fixed.plan.names[index];
        self.journal
            .note_effects(now, name, was, participant, &out, false);
        if let Some(change) = out.links.take() {
            self.members[index] = Shared::new(change.members);
            self.drop_frames_to_former_members(index);
        }
        if out.lapsed && !self.faults.links.is_empty() {
            self.members[index] = Shared::new(Vec::new());
            self.drop_frames_to_former_members(index);
        }
        for (to, bytes) in out.locks.sends() {
            let members = self.members[index].iter();
            let to = members.clone().find(|member| member.incarnation == to);
            let to = to.expect("a message goes to a linked member").clone();
            let link = Way::Link {
                from: index,
                to: index_of(&to),
            };
            let frame = Parcel::Frame {
                from: before.clone(),
                to,
                bytes: bytes.to_vec(),
            };
            self.note_sent(link, &frame, "");
            self.put(link, frame);
        }
        for event in &out.locks.events {
            let has_lease = self.has_lease(index);
            let name = &self.fixed.plan.names[index];
            self.witness.sees(index, event, has_lease, now, name)?;
            self.note_promise(index);
            self.look()?;
        }
        self.note_promise(index);
        for message in out.keepers {
            let is_renewal = matches!(
                message,
                ToKeepers::Renew { .. }
                    | ToKeepers::Unreached { .. }
                    | ToKeepers::Join
                    | ToKeepers::Probed { .. }
            );
            let renewal = is_renewal.then_some(Renewal::Asked);
            let way = Way::ToLeader {
                from: index,
                term: self.connected_to[index],
            };
            self.send(index, way, Parcel::ToKeepers(me.clone(), message), renewal)?;
        }
        Ok(())
    }

    /// Records the current promise to the client of a node, which knows it at any time.
    fn note_promise(&mut self, index: usize) {
        let (hold, participant) = (self.witness.hold(index), &self.nodes[index]);
        if let (Some(hold), Some(participant)) = (hold, participant)
            && let Ok(Some(until)) = participant.promise(hold)
        {
            self.witness.promise(index, until);
        }
    }

    pub(super) fn with_leader(
        &mut self,
        term: Term,
        event: impl FnOnce(&mut Leader, &Roster, Moment, &mut LeaderEffects),
    ) -> Result<(), Violation> {
        let now = self.now;
        let Some(known) = self.leaders.get_mut(&term) else {
            return Ok(());
        };
        let mut out = LeaderEffects::default();
        let roster = &self.roster;
        known.change(|Elected { leader, last }| {
            event(leader, last.as_ref().unwrap_or(roster), now, &mut out);
        });
        let name = || describe::leader(term);
        for notice in &out.notices {
            let line = || format!("{} {}", name(), describe::notice(notice));
            self.journal.note(now, line);
        }
        if let Some(command) = out.propose {
            let line = || format!("{} proposes: {}", name(), describe::command(&command));
            self.journal.note(now, line);
            self.put(Way::Commit { term }, Parcel::Commit(command));
        }
        for (to, message) in out.sends {
            let is_renewal = matches!(message, ToMember::Granted { .. } | ToMember::Probe { .. });
            let renewal = is_renewal.then_some(Renewal::Granted);
            let node = index_of(&to);
            let way = Way::ToMember { term, to: node };
            self.send(node, way, Parcel::ToMember(to, message), renewal)?;
        }
        if out.confirm {
            // A leader that has no rival, and will have none, is confirmed immediately.
            let is_alone = self.leaders.len() == 1 && self.budget.elections == 0;
            let is_current = term == self.term && !self.plan().confirmations_wait;
            if is_alone || is_current {
                return self.arrive(Way::Confirm { term }, Parcel::Confirmed);
            }
            let line = || format!("{} asks the other keepers whether it still leads", name());
            self.journal.note(now, line);
            self.put(Way::Confirm { term }, Parcel::Confirm);
        }
        Ok(())
    }

    /// Sends a message between a node and the keepers. It is lost, arrives immediately, or arrives
    /// at any time.
    fn send(
        &mut self,
        node: usize,
        way: Way,
        parcel: Parcel,
        renewal: Option<Renewal>,
    ) -> Result<(), Violation> {
        if self.faults.cut.contains(&node) {
            self.note_sent(way, &parcel, ", which is lost");
            return Ok(());
        }
        match renewal {
            Some(renewal) if self.faults.slow == Some((node, renewal)) => {
                self.faults.slow = None;
                self.note_sent(way, &parcel, ", which is slow");
            }
            Some(_) if !self.faults.paused.contains(&node) => {
                // That leases are renewed all the time is no news.
                let is_news = !matches!(
                    parcel,
                    Parcel::ToKeepers(_, ToKeepers::Renew { .. })
                        | Parcel::ToMember(_, ToMember::Granted { .. })
                );
                if is_news {
                    self.note_sent(way, &parcel, "");
                }
                return self.arrive(way, parcel);
            }
            _ => self.note_sent(way, &parcel, ""),
        }
        self.put(way, parcel);
        Ok(())
    }

    fn note_sent(&mut self, way: Way, parcel: &Parcel, and_then: &str) {
        let State { journal, fixed, .. } = self;
        let plan = &fixed.plan;
        let name = |node: usize| plan.names[node].to_string();
        journal.note(self.now, || {
            let (from, to) = match way {
                Way::Link { from, to } => (name(from), name(to)),
                Way::ToLeader { from, term } => (name(from), describe::leader(term)),
                Way::ToMember { term, to } => (describe::leader(term), name(to)),
                Way::Commit { term } | Way::Confirm { term } => {
                    (describe::leader(term), "the keepers".to_owned())
                }
            };
            let text = match parcel {
                Parcel::Frame { bytes, .. } => describe::frame(plan.choice, bytes),
                Parcel::ToKeepers(_, message) => describe::to_keepers(message, |incarnation| {
                    name(index_of_incarnation(incarnation))
                }),
                Parcel::ToMember(_, message) => describe::to_member(message),
                Parcel::Commit(_) | Parcel::Applied | Parcel::Confirm | Parcel::Confirmed => {
                    unreachable!("these are recorded elsewhere")
                }
            };
            format!("{from} -> {to} {text}{and_then}")
        });
    }
}
