//! The lock table with those who wait for its answers, behind one lock: whoever has something for
//! it, does it at once on its own thread.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use soloist_algorithms::NodeId;
use tokio::sync::{Notify, oneshot};

use super::event;
use super::shared::Shared;
use crate::Moment;
use crate::locks::{
    Ask, AskError, Denial, Effects, End, Grant, Happening, HoldError, HoldId, LockName,
    ReceiveError, Table, Ticket,
};

/// A hold, as its holder and the node share it.
pub(crate) struct Held {
    pub grant: Grant,
    end: OnceLock<End>,
    ended: Notify,
}

impl Held {
    fn new(grant: Grant) -> Arc<Self> {
        Arc::new(Held {
            grant,
            end: OnceLock::new(),
            ended: Notify::new(),
        })
    }

    /// Why it ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    /// Waits until it ends.
    pub async fn ended(&self) -> End {
        loop {
            let ended = self.ended.notified();
            if let Some(end) = self.end() {
                return end;
            }
            ended.await;
        }
    }
}

/// What a waiter hears in the end.
pub(crate) type Answer = Result<Arc<Held>, Denial>;

/// What comes of asking.
pub(crate) enum Asked {
    Granted(Arc<Held>),
    Waits(Ticket, oneshot::Receiver<Answer>),
}

pub(crate) struct Core {
    table: Table,
    effects: Effects,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
    holds: HashMap<HoldId, Arc<Held>>,
    /// When the timer will wake up.
    alarm: Option<Moment>,
}

impl Core {
    pub fn new(table: Table) -> Self {
        Core {
            table,
            effects: Effects::new(),
            waiting: HashMap::new(),
            holds: HashMap::new(),
            alarm: None,
        }
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn hold(&self, hold: HoldId) -> Option<Arc<Held>> {
        self.holds.get(&hold).cloned()
    }

    pub fn acquire(
        &mut self,
        shared: &Shared,
        name: &LockName,
        ask: Ask,
    ) -> Result<Asked, AskError> {
        let now = Moment::now();
        let ticket = self.table.acquire(now, name, ask, &mut self.effects)?;
        let mut happenings = self.effects.happenings.iter();
        let granted = happenings.find_map(|happening| match happening {
            Happening::Granted {
                ticket: whose,
                grant,
                ..
            } if *whose == ticket => Some(grant.hold),
            _ => None,
        });
        if let Some(hold) = granted {
            self.carry_out(shared);
            let held = self.hold(hold).expect("it was just granted");
            return Ok(Asked::Granted(held));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(ticket, sender);
        self.carry_out(shared);
        Ok(Asked::Waits(ticket, receiver))
    }

    pub fn cancel(&mut self, shared: &Shared, ticket: Ticket) {
        self.waiting.remove(&ticket);
        let now = Moment::now();
        self.table.cancel(now, ticket, &mut self.effects);
        self.carry_out(shared);
    }

    pub fn release(&mut self, shared: &Shared, hold: HoldId) -> Result<(), HoldError> {
        let now = Moment::now();
        let released = self.table.release(now, hold, &mut self.effects);
        self.carry_out(shared);
        released
    }

    pub fn renew(
        &mut self,
        shared: &Shared,
        hold: HoldId,
        ttl: Option<std::time::Duration>,
    ) -> Result<Option<Moment>, HoldError> {
        let renewed = self.table.renew(Moment::now(), hold, ttl);
        self.set_alarm(shared);
        renewed
    }

    pub fn receive(
        &mut self,
        shared: &Shared,
        from: NodeId,
        bytes: &[u8],
    ) -> Result<(), ReceiveError> {
        let now = Moment::now();
        let received = self.table.receive(now, from, bytes, &mut self.effects);
        self.carry_out(shared);
        received
    }

    /// Does what is due, and tells when the next thing is.
    pub fn tick(&mut self, shared: &Shared) -> Option<Moment> {
        self.table.tick(Moment::now(), &mut self.effects);
        self.carry_out(shared);
        self.alarm = self.table.next_deadline();
        self.alarm
    }

    pub fn stop(&mut self, shared: &Shared) {
        self.table.stop(Moment::now(), &mut self.effects);
        self.carry_out(shared);
    }

    pub fn end_all(&mut self, shared: &Shared, end: End) {
        // Who has a guard in this process hears of it through that; such holds live for ever.
        let elsewhere = self.holds.values().map(|held| &held.grant);
        let elsewhere = elsewhere.filter(|grant| grant.expires.is_some());
        shared.untold.note(elsewhere.map(|grant| grant.hold));
        self.table.end_all(Moment::now(), end, &mut self.effects);
        self.carry_out(shared);
    }

    /// Sends and tells what the table wants sent and told.
    fn carry_out(&mut self, shared: &Shared) {
        for (to, frame) in self.effects.sends() {
            shared.send(to, frame);
        }
        for happening in &self.effects.happenings {
            shared.metrics.note(happening);
            if shared.events.receiver_count() > 0
                && let Some(event) = event::of(happening, shared.name())
            {
                let _ = shared.events.send(event);
            }
            match happening {
                Happening::Granted { ticket, grant, .. } => {
                    let held = Held::new(grant.clone());
                    self.holds.insert(grant.hold, Arc::clone(&held));
                    if let Some(sender) = self.waiting.remove(ticket) {
                        // Who goes away at this very moment takes it out of the channel and gives it back.
                        let _ = sender.send(Ok(held));
                    }
                }
                Happening::Denied { ticket, denial, .. } => {
                    if let Some(sender) = self.waiting.remove(ticket) {
                        let _ = sender.send(Err(*denial));
                    }
                }
                Happening::Ended { hold, end, .. } => {
                    let held = self.holds.remove(hold).expect("it was granted");
                    let first = held.end.set(*end);
                    first.expect("a hold ends once");
                    held.ended.notify_waiters();
                    if self.table.holds() == 0 {
                        shared.no_hold_left.notify_waiters();
                    }
                }
                Happening::Waiting { .. } => {}
            }
        }
        self.effects.clear();
        self.set_alarm(shared);
    }

    /// Wakes the timer if something is due before it would wake up.
    fn set_alarm(&mut self, shared: &Shared) {
        let next = self.table.next_deadline();
        if next.is_some_and(|next| self.alarm.is_none_or(|alarm| next < alarm)) {
            self.alarm = next;
            shared.alarm.notify_one();
        }
    }
}
