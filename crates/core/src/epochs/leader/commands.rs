//! What the leader does next: confirm its leadership, begin or install an epoch, or record which
//! nodes must wait.

use super::super::roster::{Change, Command, Roster};
use super::{Leader, LeaderEffects};
use crate::notice::Notice;
use soloist_api::{Moment, NodeName};

impl Leader {
    /// Starts whatever is due: a confirmation, or a command.
    pub(super) fn act(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        if self.confirming.is_none() && !self.asking.is_empty() {
            self.confirming = Some((now, std::mem::take(&mut self.asking)));
            out.confirm = true;
        }
        self.candidates.forget(now, &self.lease, &[]);
        self.back_off.forget(now);
        if roster.is_changing() {
            self.give_up_late(now);
        }
        if self.proposing {
            return;
        }
        if let Some(command) = self.next_command(now, roster, &mut out.notices) {
            self.proposing = true;
            out.propose = Some(command);
        }
    }

    fn next_command(
        &mut self,
        now: Moment,
        roster: &Roster,
        notices: &mut Vec<Notice>,
    ) -> Option<Command> {
        let is_changing = roster.is_changing();
        let mut is_smaller = false;
        for known in self.members.iter_mut().filter(|known| known.until <= now) {
            // From here on it is granted no lease, whatever the outcome of the command.
            known.is_leaving = true;
            is_smaller = true;
        }
        if is_smaller {
            self.note_gone(now, is_changing, notices);
        }
        let stay = self.members.iter().filter(|known| known.until > now);
        let is_free = |name: &NodeName| stay.clone().all(|known| known.member.name != *name);
        let ready = self.candidates.ready(is_free);
        let may_begin = self.pace.allows(now);
        let gathered = ready.is_due(now) && may_begin;
        // A node that suspects every epoch must not keep all the others from their work.
        let is_suspected = self.suspected && now >= self.calm_until && may_begin;
        // A member that is gone before its lease has expired would not report, and all others would
        // wait for its report.
        let mut leaving = self.members.iter().filter(|known| known.is_leaving);
        let is_parting = leaving.any(|known| known.until > now);
        let is_due = if is_changing || is_parting {
            is_smaller
        } else {
            is_smaller || gathered || is_suspected
        };
        if is_due && roster.next_epoch() <= roster.last_epoch() {
            self.notice_evictions(now, is_changing, notices);
            let stay = stay.clone().map(|known| &known.member);
            let members = stay.chain(ready.members());
            let epoch = roster.next_epoch();
            let change = Change {
                epoch,
                members: members.cloned().collect(),
                key: self.keys.of(epoch),
            };
            if is_suspected {
                self.calm_until = now + self.lease.length;
            }
            if !is_smaller {
                self.pace.count(now);
            }
            self.is_news = true;
            return Some(Command::Begin(change));
        }
        if is_changing {
            let install = self.installation(notices);
            self.is_news |= install.is_some();
            return install;
        }
        let held_off = self.back_off.held_off();
        (held_off != roster.held_off()).then_some(Command::HoldOff(held_off))
    }
}
