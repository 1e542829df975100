//! A node's state behind one lock: its part in the epochs, its lock table, and the waiters for its
//! answers. Each caller does its work immediately, on its own thread.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use soloist_api::{EndReason, Reading};
use tokio::sync::{Notify, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::event::{self, unix_ms};
use super::memory::Memory;
use super::notice::Notice;
use super::sessions::Outgoing;
use super::shared::Shared;
use crate::Moment;
use crate::membership::ToLeader;
use crate::membership::log::log;
use crate::mutant::Mutant;
use soloist_api::LockName;
use soloist_core::Incarnation;
use soloist_core::epochs::member::{MemberEffects, MemberState, Participant};
use soloist_core::epochs::message::ToMember;
use soloist_core::epochs::roster::Member;
use soloist_core::locks::{
    Client, Denial, Grant, HoldError, HoldId, LockEvent, LockRequest, ReceiveError, RequestError,
    RequestId, Resumed, Table, Ticket,
};
use soloist_core::sessions::{ConnectionId, SessionId};

/// A hold, shared by the node and those who wait for its end: a guard in this process, or a request
/// of the HTTP API. Sessions are told of the ends of their holds and need none.
pub(crate) struct SharedHold {
    pub grant: Grant,
    end: OnceLock<EndReason>,
    ended: Notify,
}

impl SharedHold {
    fn new(grant: Grant) -> Arc<Self> {
        Arc::new(SharedHold {
            grant,
            end: OnceLock::new(),
            ended: Notify::new(),
        })
    }

    /// Returns why the hold ended, or `None` while it lasts.
    pub(crate) fn end(&self) -> Option<EndReason> {
        self.end.get().copied()
    }

    /// Waits until the hold ends.
    pub(crate) async fn ended(&self) -> EndReason {
        loop {
            let ended = self.ended.notified();
            if let Some(end) = self.end() {
                return end;
            }
            ended.await;
        }
    }
}

/// Minimum interval between log lines that say why this node may not join.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// The final answer to a waiter.
pub(crate) type AcquireOutcome = Result<Arc<SharedHold>, Denial>;

/// Outcome of a request.
pub(crate) enum Asked {
    Granted(Arc<SharedHold>),
    Waits(Ticket, oneshot::Receiver<AcquireOutcome>),
    /// The request had been granted when it was sent before, and its hold has ended.
    Ended(HoldId),
}

// Methods: sessions in `sessions.rs`.
pub(crate) struct NodeState {
    pub(super) part: Participant,
    pub(super) effects: MemberEffects,
    /// The connections of sessions.
    pub(super) connections: HashMap<ConnectionId, Arc<Outgoing>>,
    /// The processes that sessions end with, and the connections that wished so.
    pub(super) processes: HashMap<SessionId, (ConnectionId, AbortOnDropHandle<()>)>,
    /// The members that links go to.
    members: Arc<[Member]>,
    member_state: MemberState,
    /// Since when the epoch has been changing and locks stand still.
    frozen_since: Option<Moment>,
    /// How long locks stood still during the last change of epoch.
    stood_still: Option<Duration>,
    /// The last epoch for which a log line said that half of its fencing tokens are used up.
    half_used: u64,
    /// When a refusal to let this node join was last logged.
    refusal_told: Option<Moment>,
    waiting: HashMap<Ticket, oneshot::Sender<AcquireOutcome>>,
    /// Holds whose end somebody may wait for.
    holds: HashMap<HoldId, Arc<SharedHold>>,
    /// When the timer will wake up.
    alarm: Option<Moment>,
    /// The last clock reading, to detect that the machine slept.
    clock: Reading,
    /// What dashboards are shown later.
    memory: Memory,
}

impl NodeState {
    pub(crate) fn new(part: Participant) -> Self {
        NodeState {
            member_state: MemberState::Outside,
            part,
            effects: MemberEffects::default(),
            connections: HashMap::new(),
            processes: HashMap::new(),
            members: Arc::default(),
            frozen_since: None,
            stood_still: None,
            half_used: 0,
            refusal_told: None,
            waiting: HashMap::new(),
            holds: HashMap::new(),
            alarm: None,
            clock: Reading::take(),
            memory: Memory::new(),
        }
    }

    /// Runs one step of this node's part, and carries out its effects. Every event comes through
    /// here.
    pub(crate) fn drive<T>(
        &mut self,
        shared: &Shared,
        act: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> T,
    ) -> T {
        let clock = Reading::take();
        if clock.has_slept_since(self.clock) {
            // A machine that slept has lost its lease.
            self.clock = clock;
            self.part.wake(clock.now, &mut self.effects);
        }
        let outcome = act(&mut self.part, clock.now, &mut self.effects);
        self.carry_out(shared);
        outcome
    }

    pub(crate) fn table(&self) -> &Table {
        self.part.table()
    }

    /// Returns this node in its current incarnation.
    pub(crate) fn me(&self) -> &Member {
        self.part.me()
    }

    /// Returns the members that links go to, including this node.
    pub(crate) fn members(&self) -> Arc<[Member]> {
        Arc::clone(&self.members)
    }

    /// Returns how long locks stood still during the last change of epoch.
    pub(crate) fn stood_still(&self) -> Option<Duration> {
        self.stood_still
    }

    /// Returns since when the epoch has been changing, if it is.
    pub(crate) fn changing_since(&self) -> Option<Moment> {
        self.frozen_since
    }

    /// Returns what this node remembers for dashboards.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn member_state(&self) -> MemberState {
        self.part.member_state()
    }

    /// Returns until when this node may rely on being a member.
    pub(crate) fn valid_until(&self) -> Option<Moment> {
        self.part.valid_until()
    }

    /// Returns until when the holder may rely on a hold without further messages.
    pub(crate) fn promise(&self, hold: HoldId) -> Result<Option<Moment>, HoldError> {
        self.part.promise(hold)
    }

    /// Returns whether holds are no longer extended.
    pub(crate) fn is_draining(&self) -> bool {
        self.part.is_draining()
    }

    /// Advances the state to the current time, so that what is read next is up to date.
    pub(crate) fn look(&mut self, shared: &Shared) {
        self.drive(shared, |part, now, out| {
            part.table_mut(now, out);
        });
    }

    /// Returns a hold, to wait for its end.
    pub(crate) fn hold(&mut self, hold: HoldId) -> Result<Arc<SharedHold>, HoldError> {
        if let Some(held) = self.holds.get(&hold) {
            return Ok(Arc::clone(held));
        }
        let held = SharedHold::new(self.table().grant(hold)?);
        self.holds.insert(hold, Arc::clone(&held));
        Ok(held)
    }

    pub(crate) fn acquire(
        &mut self,
        shared: &Shared,
        name: &LockName,
        ask: LockRequest,
    ) -> Result<Asked, RequestError> {
        (shared.keeping.membership.planted).panic_if(Mutant::PanicInState);
        let asked: Result<Resumed, RequestError> = self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            if let Some(resumed) = table.resume(now, name, &ask)? {
                return Ok(resumed);
            }
            let ticket = table.acquire(now, name, ask, &mut out.locks)?;
            let hold = out.locks.granted(ticket);
            Ok(hold.map_or(Resumed::Waits(ticket), Resumed::Holds))
        });
        Ok(match asked? {
            // A request that was sent again is answered here; the earlier sender gets no answer.
            Resumed::Waits(ticket) => self.listen(ticket),
            Resumed::Holds(hold) => match self.hold(hold) {
                Ok(held) => Asked::Granted(held),
                // The hold expired when the clock was read for this call.
                Err(_) => Asked::Ended(hold),
            },
            Resumed::Ended(hold) => Asked::Ended(hold),
        })
    }

    fn listen(&mut self, ticket: Ticket) -> Asked {
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(ticket, sender);
        Asked::Waits(ticket, receiver)
    }

    /// Called when a waiter's connection broke.
    pub(crate) fn abandon(&mut self, shared: &Shared, ticket: Ticket) {
        self.waiting.remove(&ticket);
        self.drive(shared, |part, now, out| {
            part.table_mut(now, out).abandon(now, ticket);
        });
    }

    /// Cancels a client's request or releases its hold. Returns whether the request is known.
    pub(crate) fn give_up(&mut self, shared: &Shared, client: &Client, id: RequestId) -> bool {
        match self.table().request(client, id) {
            None => return false,
            Some(Resumed::Waits(ticket)) => self.cancel(shared, ticket),
            // A hold that has just ended needs no release.
            Some(Resumed::Holds(hold)) => drop(self.release(shared, hold)),
            Some(Resumed::Ended(_)) => {}
        }
        true
    }

    pub(crate) fn cancel(&mut self, shared: &Shared, ticket: Ticket) {
        self.waiting.remove(&ticket);
        self.drive(shared, |part, now, out| {
            let table = part.table_mut(now, out);
            table.cancel(now, ticket, &mut out.locks);
        });
    }

    pub(crate) fn release(&mut self, shared: &Shared, hold: HoldId) -> Result<(), HoldError> {
        self.drive(shared, |part, now, out| part.release(now, hold, out))
    }

    /// Handles a message from the current incarnation of a member.
    pub(crate) fn receive(
        &mut self,
        shared: &Shared,
        from: Incarnation,
        bytes: &[u8],
    ) -> Result<(), ReceiveError> {
        self.drive(shared, |part, now, out| {
            let received = part.receive(now, from, bytes, out);
            if matches!(received, Err(ReceiveError::Full(_))) {
                part.suspect(out);
            }
            received
        })
    }

    /// Called when a leader was found.
    pub(crate) fn find_leader(&mut self, shared: &Shared) {
        self.drive(shared, |part, now, out| {
            part.miss(unreached(shared));
            part.find_leader(now, out);
        });
    }

    /// Handles a message of the keepers' leader to this incarnation of the node.
    pub(crate) fn receive_from_leader(
        &mut self,
        shared: &Shared,
        incarnation: Incarnation,
        message: ToMember,
    ) {
        if incarnation != self.part.me().incarnation {
            return;
        }
        let now = Moment::now();
        let is_due = |at| now.since(at) >= TELL_AGAIN;
        if self.refusal_told.is_none_or(is_due)
            && let Some(notice) = Notice::of_refusal(&message)
        {
            self.refusal_told = Some(now);
            shared.notices.push(notice);
        }
        self.drive(shared, |part, now, out| {
            part.receive_from_leader(now, message, out)
        });
        if self.part.has_left() {
            shared.left.notify_waiters();
        }
    }

    /// Runs what is due, and returns the next deadline.
    pub(crate) fn tick(&mut self, shared: &Shared) -> Option<Moment> {
        self.drive(shared, |part, now, out| {
            if part.is_renewal_due(now) {
                part.miss(unreached(shared));
            }
            part.tick(now, out);
        });
        self.alarm = self.part.next_deadline();
        self.alarm
    }

    /// Returns whether the node has left and the keepers know it.
    pub(crate) fn has_left(&self) -> bool {
        self.part.has_left()
    }

    /// Carries out the collected effects: updates the links, sends messages, answers waiters, and
    /// updates the alarm.
    fn carry_out(&mut self, shared: &Shared) {
        log(std::mem::take(&mut self.effects.notices));
        if std::mem::take(&mut self.effects.lapsed) {
            self.lapse(shared);
        }
        if let Some(change) = self.effects.links.take() {
            self.members = change.members.into();
            shared.link(self.me(), &self.members);
        }
        let mut is_lost = false;
        for (to, frame) in self.effects.locks.sends() {
            is_lost |= shared.links().send(to, frame).is_err();
        }
        if is_lost {
            // Locks that needed this message may be stuck.
            self.part.suspect(&mut self.effects);
        }
        for message in self.effects.keepers.drain(..) {
            shared.send_to_leader(ToLeader {
                from: self.part.me().clone(),
                holds: self.part.table().holds(),
                message,
            });
        }
        self.push(shared);
        for session in self.effects.locks.ended_sessions.drain(..) {
            self.processes.remove(&session);
        }
        self.tell(shared);
        self.stand(shared);
        self.set_alarm(shared);
    }

    /// Called when the lease expired. This node is not a member until it joins again in a new
    /// incarnation.
    fn lapse(&mut self, shared: &Shared) {
        let events = self.effects.locks.events.iter();
        let lost = events.filter_map(|event| match event {
            LockEvent::Ended {
                lock,
                end: EndReason::EpochLost,
                ..
            } => Some(lock.clone()),
            _ => None,
        });
        let lost = lost.collect();
        shared.metrics.count_lapse();
        shared.notices.push(Notice::Lapsed { lost });
        self.members = Arc::default();
        shared.link(self.part.me(), &self.members);
    }

    /// Publishes the member state if it has changed.
    fn stand(&mut self, shared: &Shared) {
        let member_state = self.part.member_state();
        if member_state == self.member_state {
            return;
        }
        self.member_state = member_state;
        let now = Moment::now();
        match member_state {
            MemberState::Member(epoch) => {
                self.stood_still = self.frozen_since.take().map(|since| now.since(since));
                shared.metrics.count_epoch(self.stood_still);
                let (members, time) = (&self.members, self.stood_still);
                self.memory.install(shared, epoch, members, time);
                let members = self.members.len();
                shared.notices.push(Notice::Epoch { epoch, members });
            }
            MemberState::Changing(_) => {
                self.frozen_since = self.frozen_since.or(Some(now));
            }
            MemberState::Outside => {
                self.frozen_since = None;
                self.memory.leave();
            }
        }
        shared.member_state.send_replace(member_state);
    }

    fn tell(&mut self, shared: &Shared) {
        let at_ms = match self.effects.locks.events.is_empty() {
            true => 0,
            false => unix_ms(Duration::ZERO),
        };
        for event in &self.effects.locks.events {
            shared.metrics.note(event);
            self.memory.note(shared, at_ms, event);
            if shared.events.receiver_count() > 0 {
                let _ = shared.events.send(event::of(event, at_ms, shared.name()));
            }
            match event {
                LockEvent::Granted { ticket, grant, .. } => {
                    let epoch = grant.fence.epoch();
                    if grant.fence.used() >= 0.5 && self.half_used != epoch {
                        self.half_used = epoch;
                        let lock = grant.lock.clone();
                        shared.notices.push(Notice::FencesHalfUsed { epoch, lock });
                    }
                    if let Some(sender) = self.waiting.remove(ticket) {
                        let held = SharedHold::new(grant.clone());
                        self.holds.insert(grant.hold, Arc::clone(&held));
                        // A waiter dropped at this moment takes the hold out of the channel and
                        // releases it.
                        let _ = sender.send(Ok(held));
                    }
                }
                LockEvent::Denied { ticket, denial, .. } => {
                    if let Some(sender) = self.waiting.remove(ticket) {
                        let _ = sender.send(Err(*denial));
                    }
                }
                LockEvent::Ended { hold, end, .. } => {
                    if let Some(held) = self.holds.remove(hold) {
                        let first = held.end.set(*end);
                        first.expect("a hold ends once");
                        held.ended.notify_waiters();
                    }
                    if self.part.table().holds() == 0 {
                        shared.no_hold_left.notify_waiters();
                    }
                }
                LockEvent::Waiting { .. } | LockEvent::Cancelled { .. } => {}
            }
        }
        self.effects.locks.clear();
    }

    /// Wakes the timer if something is due before it would wake up.
    fn set_alarm(&mut self, shared: &Shared) {
        let next = self.part.next_deadline();
        if next.is_some_and(|next| self.alarm.is_none_or(|alarm| next < alarm)) {
            self.alarm = next;
            shared.alarm.notify_one();
        }
    }
}

/// Returns the members that this node does not reach. It reports them when it renews its lease.
fn unreached(shared: &Shared) -> Vec<Incarnation> {
    shared.links().unreached(shared.lease().apart_after())
}
