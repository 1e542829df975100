//! Effects of actions: messages and frames in flight that arrive, and commands that are applied.

use soloist_api::Moment;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::member::{MemberEffects, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Applied, Command, Roster};

use super::{Membership, Renewal, State};
use crate::setup::index_of;
use crate::under_way::{Parcel, Shared, Way};
use crate::witness::Violation;

impl State {
    pub(super) fn arrive(&mut self, way: Way, parcel: Parcel) -> Result<(), Violation> {
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
                    participant.hear(now, message, out);
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
        if !self.leads_nowhere(way) {
            self.under_way.put(way, parcel);
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
            Way::ToMember { term, to } => self.nodes[to].is_none() || self.speaks_with[to] != term,
            Way::ToLeader { term, .. } | Way::Commit { term } | Way::Confirm { term } => {
                !self.offices.contains_key(&term)
            }
        }
    }

    /// Applies a command. The leader is told later.
    fn commit(&mut self, term: u64, command: Command) -> Result<(), Violation> {
        if term != self.term {
            return self.depose(term);
        }
        let applied = self.roster.change(|roster| roster.apply(command.clone()));
        if applied == Applied::Refused {
            return Err(format!("the leader's command does not fit: {command:?}"));
        }
        self.put(Way::Commit { term }, Parcel::Applied);
        Ok(())
    }

    /// Lets a node handle an event, and carries out the effects.
    pub(super) fn with(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let now = self.now();
        let Some(participant) = &mut self.nodes[index] else {
            return Ok(());
        };
        let before = participant.me().clone();
        let mut out = MemberEffects::default();
        participant.change(|participant| event(participant, now, &mut out))?;
        let me = participant.me().clone();
        if let Some(change) = out.links.take() {
            self.members[index] = Shared::new(change.members);
        }
        for (to, bytes) in out.locks.sends() {
            let to = self.members[index][to.index()].clone();
            let link = Way::Link {
                from: index,
                to: index_of(&to),
            };
            let frame = Parcel::Frame {
                from: before.clone(),
                to,
                bytes: bytes.to_vec(),
            };
            self.put(link, frame);
        }
        for event in &out.locks.events {
            let has_lease = self.has_lease(index);
            self.witness.sees(index, event, has_lease, now)?;
            self.note_promise(index);
            self.witness.look(now)?;
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
                term: self.speaks_with[index],
            };
            self.say(index, way, Parcel::ToKeepers(me.clone(), message), renewal)?;
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
        term: u64,
        event: impl FnOnce(&mut Leader, &Roster, Moment, &mut LeaderEffects),
    ) -> Result<(), Violation> {
        let now = self.now();
        let Some(office) = self.offices.get_mut(&term) else {
            return Ok(());
        };
        let mut out = LeaderEffects::default();
        let roster = &self.roster;
        office.change(|Membership { leader, last }| {
            event(leader, last.as_ref().unwrap_or(roster), now, &mut out);
        });
        if let Some(command) = out.propose {
            self.put(Way::Commit { term }, Parcel::Commit(command));
        }
        for (to, message) in out.sends {
            let is_renewal = matches!(message, ToMember::Granted { .. } | ToMember::Probe { .. });
            let renewal = is_renewal.then_some(Renewal::Granted);
            let node = index_of(&to);
            let way = Way::ToMember { term, to: node };
            self.say(node, way, Parcel::ToMember(to, message), renewal)?;
        }
        if out.confirm {
            // A leader that has no rival, and will have none, is confirmed immediately.
            match self.offices.len() == 1 && self.budget.elections == 0 {
                true => self.arrive(Way::Confirm { term }, Parcel::Confirmed)?,
                false => self.put(Way::Confirm { term }, Parcel::Confirm),
            }
        }
        Ok(())
    }

    /// Sends a message between a node and the keepers. It is lost, arrives immediately, or arrives
    /// at any time.
    fn say(
        &mut self,
        node: usize,
        way: Way,
        word: Parcel,
        renewal: Option<Renewal>,
    ) -> Result<(), Violation> {
        if self.cut == Some(node) {
            return Ok(());
        }
        match renewal {
            Some(renewal) if self.slow == Some((node, renewal)) => self.slow = None,
            Some(_) => return self.arrive(way, word),
            None => {}
        }
        self.put(way, word);
        Ok(())
    }
}
