//! Drives a lock: sends the algorithm's messages, grants to the node's own waiters in turn,
//! releases, and requests again.

use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::Phase;

use super::by_name::LocksByName;
use super::deadlines::Due;
use super::forget::weight;
use super::lifetime::Lifetime;
use super::lock::{Hold, Lock, Waiter};
use super::table::Context;
use super::{Effects, FIRST_PROMISE, Grant, HoldId, LockEvent, RequestError, wire};
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// The lock of this name. Creates it if it does not exist and there are fewer than `most` locks.
pub(super) fn lock_of<'t>(
    locks: &'t mut LocksByName,
    context: &mut Context,
    name: &LockName,
    most: usize,
    now: Moment,
    out: &mut Effects,
) -> Result<&'t mut Lock, RequestError> {
    let count = locks.len();
    match locks.entry(name) {
        Ok(lock) => {
            context.begin_if_unbegun(now, name, lock, out);
            Ok(lock)
        }
        Err(_) if count >= most => Err(RequestError::LocksFull(count)),
        Err(vacant) => {
            let lock = vacant.insert(context.new_lock(name, now));
            context.begin(now, name, lock, out);
            Ok(lock)
        }
    }
}

impl Context {
    pub(super) fn check_ttl(&self, ttl: Duration) -> Result<(), RequestError> {
        let max = self.settings.ttl_max;
        if ttl.is_zero() || ttl > max {
            return Err(RequestError::Ttl { given: ttl, max });
        }
        Ok(())
    }

    pub(super) fn new_lock(&self, name: &LockName, now: Moment) -> Lock {
        let rule = self.settings.rules.rule(name.as_str());
        Lock {
            machine: None,
            algorithm: rule.choice().name,
            fence: self.floor,
            waiters: Default::default(),
            hold: None,
            turns_left: 0,
            turns_max: rule.max_local_turns(),
            last_end: None,
            touched: now,
            is_listed: false,
            balance: 0,
            offer: None,
            stands_back: None,
        }
    }

    /// Creates the lock's state machine for the current epoch, if there is one.
    pub(super) fn begin(
        &mut self,
        now: Moment,
        name: &LockName,
        lock: &mut Lock,
        out: &mut Effects,
    ) {
        if self.current.is_some() {
            self.prepare(now, name, lock);
        }
        if let Some(current) = &self.current {
            let machine = lock.machine.insert(current.machine(name, self.clock));
            machine.start(&mut self.outbox);
        }
        self.settle(now, name, lock, out);
    }

    /// Creates the lock's state machine for the current epoch, if there is an epoch and it has none
    /// yet.
    pub(super) fn begin_if_unbegun(
        &mut self,
        now: Moment,
        name: &LockName,
        lock: &mut Lock,
        out: &mut Effects,
    ) {
        if lock.machine.is_none() && self.current.is_some() {
            self.begin(now, name, lock, out);
        }
    }

    /// Advances the lock until it is stable: sends pending messages, grants to the next waiter,
    /// releases, or requests again.
    pub(super) fn settle(
        &mut self,
        now: Moment,
        name: &LockName,
        lock: &mut Lock,
        out: &mut Effects,
    ) {
        loop {
            if self.post(name, lock, out) {
                lock.turns_left = lock.turns_max;
            }
            let Some(machine) = &mut lock.machine else {
                return;
            };
            match machine.phase() {
                Phase::Inside if lock.hold.is_none() => {
                    if lock.waiters.is_empty() || lock.turns_left == 0 {
                        if lock.turns_left == lock.turns_max {
                            self.counts.unclaimed += 1;
                        }
                        let left = machine.release(&mut self.outbox);
                        left.expect("a node inside may release");
                        continue;
                    }
                    let Some(fence) = lock.fence.next() else {
                        self.is_exhausted = true;
                        return;
                    };
                    lock.turns_left -= 1;
                    self.serve_next(now, name, lock, fence, out);
                }
                Phase::Idle if lock.stands_back.is_some() => {}
                Phase::Idle if !lock.waiters.is_empty() => {
                    let asked = machine.request(&mut self.outbox);
                    asked.expect("an idle node may request");
                    continue;
                }
                Phase::Idle | Phase::Waiting | Phase::Inside => {}
            }
            let phase = lock.machine.as_ref().map(|machine| machine.phase());
            if phase != Some(Phase::Inside) || lock.hold.is_some() {
                return;
            }
        }
    }

    /// Sends the algorithm's pending messages. Returns whether the node entered.
    fn post(&mut self, name: &LockName, lock: &mut Lock, out: &mut Effects) -> bool {
        for send in self.outbox.sends() {
            // The lock may leave this node with this message.
            lock.last_end = None;
            let key = (lock.algorithm, send.name);
            *self.counts.sent.entry(key).or_default() += 1;
            let current = self.current.as_ref();
            let epoch = &current.expect("a lock sends only within an epoch").epoch;
            lock.balance = lock.balance.wrapping_add(weight(epoch.me, send.to));
            let (to, number) = (epoch.member(send.to), epoch.number);
            out.send(to, wire::KIND, number, lock.fence, name, send.bytes);
        }
        let entered = self.outbox.entered();
        self.outbox.clear();
        entered
    }

    /// Grants the lock to the first waiter. The node must be inside.
    fn serve_next(
        &mut self,
        now: Moment,
        name: &LockName,
        lock: &mut Lock,
        fence: Fence,
        out: &mut Effects,
    ) {
        let waiter = lock.waiters.pop_front().expect("a waiter exists");
        self.tickets.remove(&waiter.ticket);
        self.deadlines.remove(waiter.deadline);
        self.deadlines.remove(waiter.abandoned);
        lock.fence = fence;
        self.counts.fence = self.counts.fence.max(fence);
        let id = HoldId(self.random());
        self.holds.insert(id, name.clone());
        self.usage.grant(&waiter.client);
        self.requests.grant(&waiter.client, waiter.request, id);
        let mut life = first_life(now, &waiter);
        if let Some(life) = &mut life {
            life.arm(&mut self.deadlines, Due::Hold(id));
        }
        let expires = life.as_ref().map(Lifetime::deadline);
        lock.hold = Some(Hold {
            owner: Arc::clone(&waiter.owner),
            fence,
            since: now,
            life,
            client: waiter.client,
            request: waiter.request,
            session: waiter.session,
            is_confirmed: waiter.request.is_none(),
        });
        if let Some(session) = waiter.session {
            self.grant_in_session(session, name, id, fence, out);
        }
        out.events.push(LockEvent::Granted {
            ticket: waiter.ticket,
            grant: Grant {
                hold: id,
                lock: name.clone(),
                fence,
                expires,
            },
            owner: waiter.owner,
            waited: now.since(waiter.since),
            handed_over: lock.last_end.take().map(|end| now.since(end)),
        });
    }
}

/// How long a hold lives that begins now: see [`requests`](super::requests).
fn first_life(now: Moment, waiter: &Waiter) -> Option<Lifetime> {
    let mut life = Lifetime::new(now, waiter.ttl?);
    match (waiter.request, waiter.abandoned) {
        (None, _) => {}
        (Some(_), None) => life.end_by(now + FIRST_PROMISE),
        // No promise has been made to its client.
        (Some(_), Some(until)) => life.end_by(until.moment()),
    }
    Some(life)
}
