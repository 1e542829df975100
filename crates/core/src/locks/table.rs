//! All locks of a node: a pure state machine. The caller passes the time in; messages to send and
//! events for clients come out as [`Effects`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use soloist_algorithms::{ByteOutbox, NodeId};

use super::by_name::LocksByName;
use super::counts::Counts;
use super::deadlines::{Deadlines, Due, Key};
use super::drive::lock_of;
use super::ended::EndedHolds;
use super::epoch::Current;
use super::forget::{Offers, weight};
use super::idle::IdleLocks;
use super::lock::{Lock, Waiter};
use super::quota::Usage;
use super::requests::Requests;
use super::{
    Denial, Effects, HoldError, HoldId, LockEvent, LockRequest, ReceiveError, RequestError,
    Settings, Ticket, wire,
};
use crate::Tuning;
use crate::lookup_map::LookupMap;
use crate::mutant::Mutant;
use crate::sessions::{SessionRequest, Sessions};
use soloist_api::Moment;
use soloist_api::{EndReason, Fence, LockName};

/// Number of nodes assumed to share the cluster's holds until a node knows how many there are.
const NODES_UNKNOWN: usize = 128;

/// All locks of a node.
// Methods: a node outside the cluster in `away.rs`, epochs in `epoch.rs`, forgetting in
// `forget.rs`, holds in `holds.rs`, requests with ids in `requests.rs`, sessions in `sessions.rs`
// and `session_messages.rs`, stopping in `stopping.rs`, views in `view.rs`.
#[derive(Clone)]
pub struct Table {
    pub(super) locks: LocksByName,
    pub(super) context: Context,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

/// Everything but the locks themselves, so that a lock can be borrowed separately.
#[derive(Clone)]
pub(super) struct Context {
    pub settings: Settings,
    pub tuning: Tuning,
    /// The current epoch, or `None` while the table is frozen.
    pub current: Option<Current>,
    /// Locks that have no state machine in this epoch yet, the next one last. May include some that
    /// have one by now.
    pub unbegun: Vec<LockName>,
    /// Locks whose hold ended while the table was frozen. It may have reported them.
    pub given_back: BTreeSet<LockName>,
    /// Number of nodes in the current epoch, or in the last one.
    pub nodes: usize,
    /// The lock of each hold.
    pub holds: LookupMap<HoldId, LockName>,
    /// The lock that each waiter waits for. The first waiter has waited longest.
    pub tickets: BTreeMap<Ticket, LockName>,
    pub ended: EndedHolds,
    pub requests: Requests,
    pub sessions: Sessions,
    pub usage: Usage,
    pub deadlines: Deadlines,
    pub idle: IdleLocks,
    /// Offers of locks whose home this node is.
    pub offers: Offers,
    /// Total bytes held back for locks that this node has offered.
    pub held_bytes: usize,
    /// The highest fence of all forgotten locks, and at least the first of the epoch.
    pub floor: Fence,
    /// A lock has used up the fences of the epoch. Its waiters wait for the next one.
    pub is_exhausted: bool,
    /// The highest request number in all locks that were forgotten in this epoch.
    pub clock: u64,
    pub ids: ChaCha12Rng,
    pub tickets_given: u64,
    pub stopping: bool,
    /// Set while the node is outside the cluster: when it begins to turn waiters away.
    pub turns_away: Option<Key>,
    /// Whether the node turns requests of sessions away: it has been outside for too long.
    pub is_away: bool,
    /// Holds are no longer extended.
    pub draining: bool,
    pub counts: Counts,
    pub outbox: ByteOutbox,
}

impl Context {
    /// Limit on locks that peers' messages may create. A refused message is lost, and a node may
    /// wait for it forever. So the limit is twice that of this node's own clients, which are
    /// refused long before.
    pub(super) fn peers_locks_max(&self) -> usize {
        self.settings.locks_max.saturating_mul(2)
    }
}

/// Covers all state that decides what the table does next, but not counters or start times.
impl Hash for Table {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (name, lock) in self.locks.iter() {
            if !lock.is_left_over() {
                (name, lock).hash(hasher);
            }
        }
        let context = &self.context;
        (context.floor, context.clock, context.is_exhausted).hash(hasher);
        (context.stopping, context.draining).hash(hasher);
        (context.turns_away, context.is_away).hash(hasher);
        (&context.unbegun, &context.given_back).hash(hasher);
        (&context.offers, &context.sessions).hash(hasher);
        context.current.hash(hasher);
    }
}

impl Table {
    /// Creates an empty table. It grants nothing before an epoch is [installed](Table::install).
    pub fn new(settings: Settings) -> Self {
        Table {
            locks: LocksByName::default(),
            context: Context {
                tuning: Tuning::default(),
                holds: LookupMap::default(),
                tickets: BTreeMap::new(),
                ended: EndedHolds::default(),
                requests: Requests::default(),
                sessions: Sessions::default(),
                usage: Usage::default(),
                deadlines: Deadlines::default(),
                idle: IdleLocks::new(settings.forget_after),
                offers: Offers::default(),
                held_bytes: 0,
                current: None,
                unbegun: Vec::new(),
                given_back: BTreeSet::new(),
                nodes: NODES_UNKNOWN,
                floor: Fence::default(),
                is_exhausted: false,
                clock: 0,
                ids: ChaCha12Rng::from_seed(settings.seed),
                tickets_given: 0,
                stopping: false,
                turns_away: None,
                is_away: false,
                draining: false,
                counts: Counts::default(),
                outbox: ByteOutbox::new(),
                settings,
            },
        }
    }

    /// Requests a lock. If it is here and free, the effects already contain the grant. A request
    /// with an id must be new: see [`resume`](Table::resume).
    pub fn acquire(
        &mut self,
        now: Moment,
        name: &LockName,
        ask: LockRequest,
        out: &mut Effects,
    ) -> Result<Ticket, RequestError> {
        self.enqueue(now, name, ask, None, out)
    }

    /// Requests a lock, for a session if there is one.
    pub(super) fn enqueue(
        &mut self,
        now: Moment,
        name: &LockName,
        ask: LockRequest,
        session: Option<SessionRequest>,
        out: &mut Effects,
    ) -> Result<Ticket, RequestError> {
        let context = &mut self.context;
        if context.stopping {
            return Err(RequestError::Stopping);
        }
        if let Some(ttl) = ask.ttl {
            context.check_ttl(ttl)?;
        }
        let limits = &context.settings.limits;
        let fits = context
            .usage
            .check(limits, context.nodes, &ask.client, name);
        if let Err(full) = fits {
            *context.counts.refused.entry(full.key()).or_default() += 1;
            return Err(full.into());
        }
        let most = context.settings.locks_max;
        let lock = lock_of(&mut self.locks, context, name, most, now, out)?;
        context.tickets_given += 1;
        let ticket = Ticket(context.tickets_given);
        context.tickets.insert(ticket, name.clone());
        context.usage.wait(&ask.client, name);
        context
            .requests
            .wait(&ask.client, ask.request, name, ticket);
        let give_up = |until| context.deadlines.add(until, Due::GiveUp(ticket));
        lock.waiters.push_back(Waiter {
            ticket,
            since: now,
            ttl: ask.ttl,
            deadline: ask.until.map(give_up),
            owner: Arc::clone(&ask.owner),
            client: ask.client,
            request: ask.request,
            session,
            abandoned: None,
        });
        self.settle(now, name, out);
        if self.context.tickets.contains_key(&ticket) {
            out.events.push(LockEvent::Waiting {
                ticket,
                lock: name.clone(),
                owner: ask.owner,
            });
        }
        Ok(ticket)
    }

    /// Removes a waiter. If the lock arrives later, it is passed on. Returns whether the waiter was
    /// still waiting.
    pub fn cancel(&mut self, now: Moment, ticket: Ticket, out: &mut Effects) -> bool {
        let Some((lock, waiter)) = self.remove_waiter(now, ticket, out) else {
            return false;
        };
        out.events.push(LockEvent::Cancelled {
            ticket,
            lock,
            owner: waiter.owner,
            waited: now.since(waiter.since),
        });
        true
    }

    fn remove_waiter(
        &mut self,
        now: Moment,
        ticket: Ticket,
        out: &mut Effects,
    ) -> Option<(LockName, Waiter)> {
        let name = self.context.tickets.remove(&ticket)?;
        let lock = self.locks.get_mut(&name).expect("its lock exists");
        let place = lock.waiters.iter().position(|w| w.ticket == ticket);
        let waiter = place.and_then(|place| lock.waiters.remove(place));
        let waiter = waiter.expect("tickets have waiters");
        let context = &mut self.context;
        context.deadlines.remove(waiter.deadline);
        context.deadlines.remove(waiter.abandoned);
        context.usage.cancel(&waiter.client, &name);
        context.requests.cancel(&waiter.client, waiter.request);
        self.settle(now, &name, out);
        Some((name, waiter))
    }

    /// Releases a hold.
    pub fn release(
        &mut self,
        now: Moment,
        hold: HoldId,
        out: &mut Effects,
    ) -> Result<(), HoldError> {
        self.end(now, hold, EndReason::Released, out)
    }

    /// Applies changes for tests.
    pub fn tune(&mut self, tuning: Tuning) {
        self.context.tuning = tuning;
    }

    pub(crate) fn tuning(&self) -> Tuning {
        self.context.tuning
    }

    /// Handles bytes from a peer. They may be anything.
    pub fn receive(
        &mut self,
        now: Moment,
        from: NodeId,
        bytes: &[u8],
        out: &mut Effects,
    ) -> Result<(), ReceiveError> {
        let message = wire::decode(bytes)?;
        if self.epoch() != Some(message.epoch) && !self.context.tuning.has(Mutant::AnyEpoch) {
            self.context.counts.other_epoch += 1;
            return Ok(());
        }
        if message.kind == wire::IDLE {
            return self.receive_idle(now, from, &message, out);
        }
        let context = &mut self.context;
        let name = message.name;
        let most = context.peers_locks_max();
        let count = self.locks.len();
        let lock =
            lock_of(&mut self.locks, context, &name, most, now, out).map_err(ReceiveError::Full)?;
        if lock.offer.is_some() && !context.tuning.has(Mutant::OfferNotWithdrawn) {
            return self.receive_offered(now, from, &name, bytes, out);
        }
        context.deadlines.remove(lock.stands_back.take());
        let machine = lock.machine.as_mut().expect("the lock has a machine");
        let received = machine.receive(from, message.payload, &mut context.outbox);
        if let Err(violation) = received {
            // A lock that was created only for this message is removed again.
            if self.locks.len() > count {
                self.locks.remove(&name);
            }
            return Err(ReceiveError::Violation {
                lock: name,
                violation,
            });
        }
        lock.fence = lock.fence.max(message.fence);
        let me = context
            .current
            .as_ref()
            .map_or(from, |current| current.epoch.me);
        lock.balance = lock.balance.wrapping_sub(weight(from, me));
        self.settle(now, &name, out);
        Ok(())
    }

    /// Handles everything that has become due: waiters that time out, and holds that were not
    /// renewed. Also creates the state machines of some locks that have none in this epoch yet.
    pub fn tick(&mut self, now: Moment, out: &mut Effects) {
        self.begin_some(now, out);
        while let Some(due) = self.context.deadlines.pop(now) {
            match due {
                Due::GiveUp(ticket) => self.deny(now, ticket, Denial::NotGranted, out),
                Due::Abandoned(ticket) => {
                    self.cancel(now, ticket, out);
                }
                Due::Hold(id) => self.hold_due(now, id, out),
                Due::Session(id) => self.session_due(now, id, out),
                Due::TurnAway => self.turn_away(now, out),
                Due::Ask(name) => {
                    if let Some(lock) = self.locks.get_mut(&name) {
                        lock.stands_back = None;
                        self.settle(now, &name, out);
                    }
                }
            }
        }
        while let Some(name) = self.context.idle.pop(now) {
            self.look_after(now, &name, out);
        }
        // Locks that were used once must not take up memory forever.
        self.locks.shrink();
        self.context.idle.shrink();
        self.context.offers.shrink();
    }

    /// When [`tick`](Table::tick) next has something to do.
    pub fn next_deadline(&self) -> Option<Moment> {
        let context = &self.context;
        let begins = (!context.unbegun.is_empty()).then(Moment::default);
        let all = [context.deadlines.first(), context.idle.first(), begins];
        all.into_iter().flatten().min()
    }

    pub(super) fn lock(&self, name: &LockName) -> Option<&Lock> {
        self.locks.get(name)
    }

    pub(super) fn deny(&mut self, now: Moment, ticket: Ticket, denial: Denial, out: &mut Effects) {
        let removed = self.remove_waiter(now, ticket, out);
        let (lock, waiter) = removed.expect("tickets have waiters");
        if let Some(session) = waiter.session {
            self.context.deny_in_session(session, &lock, denial, out);
        }
        out.events.push(LockEvent::Denied {
            ticket,
            lock,
            owner: waiter.owner,
            waited: now.since(waiter.since),
            denial,
        });
    }

    pub(super) fn end(
        &mut self,
        now: Moment,
        id: HoldId,
        end: EndReason,
        out: &mut Effects,
    ) -> Result<(), HoldError> {
        let context = &mut self.context;
        let name = context
            .holds
            .remove(&id)
            .ok_or_else(|| context.ended.error(id))?;
        let lock = self.locks.get_mut(&name).expect("held locks exist");
        let hold = lock.hold.take().expect("it is held");
        lock.last_end = Some(now);
        if let Some(mut life) = hold.life {
            life.disarm(&mut context.deadlines);
        }
        context.ended.note(id, end, now);
        context.usage.end(&hold.client, &name);
        context.requests.end(&hold.client, hold.request, id);
        if let Some(session) = hold.session {
            context.lose_in_session(session, end, true, out);
        }
        if context.current.is_none() {
            context.given_back.insert(name.clone());
        }
        out.events.push(LockEvent::Ended {
            hold: id,
            lock: name.clone(),
            owner: hold.owner,
            fence: hold.fence,
            end,
            held: now.since(hold.since),
        });
        self.settle(now, &name, out);
        Ok(())
    }

    /// Advances a lock after a change, and drops it or lists it as idle if it is unused.
    pub(super) fn settle(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let mut lock = self.locks.get_mut(name).expect("changed locks exist");
        lock.touched = now;
        self.context.begin_if_unbegun(now, name, lock, out);
        if lock.offer.is_some() {
            if !lock.is_wanted() || !self.reopen(name, out) {
                return;
            }
            lock = self.locks.get_mut(name).expect("it still exists");
        }
        self.context.settle(now, name, lock, out);
        if !lock.is_unused() {
            return;
        }
        if lock.machine.is_none() {
            self.locks.remove(name);
        } else if !lock.is_listed {
            lock.is_listed = true;
            self.context.idle.add(now, name.clone());
        }
    }
}
