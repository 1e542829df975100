//! A cluster of lock tables in one thread, connected by FIFO channels.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::{Choice, NodeId};
use soloist_api::Moment;
use soloist_api::{EndReason, Fence, LockName};
use soloist_core::limits::Limits;
use soloist_core::locks::{
    Denial, Effects, Epoch, Grant, HoldError, HoldId, Inside, LockEvent, LockRequest, RequestError,
    Resumed, Settings, Table, Ticket,
};
use soloist_core::name_hash::HashKey;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_core::sessions::SessionPush;
use soloist_core::{Incarnation, Tuning};

/// How long a lock must be unused before it is forgotten.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(10);

/// How long a node is outside before it turns waiters of sessions away.
pub(crate) const TURNS_AWAY_AFTER: Duration = Duration::from_secs(4);

pub(crate) struct Cluster {
    pub now: Moment,
    pub tables: Vec<Table>,
    channels: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    effects: Effects,
    /// The holder of each lock, and its last fence.
    pub holders: BTreeMap<LockName, (usize, HoldId)>,
    pub fences: BTreeMap<LockName, Fence>,
    pub granted: Vec<(usize, Ticket, Grant)>,
    pub denied: Vec<(usize, Ticket, Denial)>,
    pub cancelled: Vec<(usize, Ticket)>,
    pub ended: Vec<(HoldId, EndReason)>,
    /// The waiters.
    pub queued: BTreeSet<(usize, Ticket)>,
    /// The waiters that were granted, denied or cancelled.
    decided: BTreeSet<(usize, Ticket)>,
}

/// The members of an epoch. Their incarnations are their numbers.
pub(crate) fn members(nodes: usize) -> Arc<[Incarnation]> {
    (0..nodes as u64).map(Incarnation).collect()
}

impl Cluster {
    pub(crate) fn new(choice: Choice, nodes: usize, max_local_turns: u32) -> Self {
        Self::with_limits(choice, nodes, max_local_turns, Limits::default(), 1000)
    }

    /// A cluster with these quotas, and at most this many locks per node.
    pub(crate) fn with_limits(
        choice: Choice,
        nodes: usize,
        max_local_turns: u32,
        limits: Limits,
        locks_max: usize,
    ) -> Self {
        let settings = RuleSettings {
            algorithm: choice.name.to_owned(),
            variant: choice.variants.names(choice.kind.info()),
            max_local_turns,
            ..RuleSettings::default()
        };
        let rules = Rules::new(nodes, &settings, &[]).unwrap();
        let table = |me| {
            let mut table = Table::new(Settings {
                rules: rules.clone(),
                ttl_max: Duration::from_secs(3600),
                limits,
                locks_max,
                forget_after: FORGET_AFTER,
                turns_away_after: Some(TURNS_AWAY_AFTER),
                seed: [me as u8; 32],
            });
            let epoch = Epoch {
                number: 1,
                me: NodeId::from_index(me),
                members: members(nodes),
                inside: Inside::default(),
            };
            table.install(Moment::default(), epoch, &mut Effects::new());
            table
        };
        Cluster {
            now: Moment::default(),
            tables: (0..nodes).map(table).collect(),
            channels: BTreeMap::new(),
            effects: Effects::new(),
            holders: BTreeMap::new(),
            fences: BTreeMap::new(),
            granted: Vec::new(),
            denied: Vec::new(),
            cancelled: Vec::new(),
            ended: Vec::new(),
            queued: BTreeSet::new(),
            decided: BTreeSet::new(),
        }
    }

    pub(crate) fn ask(ttl: Option<Duration>, until: Option<Moment>) -> LockRequest {
        LockRequest {
            ttl,
            until,
            ..LockRequest::new("somebody")
        }
    }

    pub(crate) fn acquire(
        &mut self,
        node: usize,
        lock: &LockName,
        ask: LockRequest,
    ) -> Result<Ticket, RequestError> {
        let ticket = self.tables[node].acquire(self.now, lock, ask, &mut self.effects);
        self.carry_out(node);
        ticket
    }

    /// Acquires a lock that no other node wants, and releases it.
    pub(crate) fn use_once(&mut self, node: usize, lock: &LockName) {
        self.acquire(node, lock, Self::ask(None, None)).unwrap();
        self.deliver_all();
        let hold = self.hold_of(node, lock);
        self.release(node, hold).unwrap();
    }

    pub(crate) fn cancel(&mut self, node: usize, ticket: Ticket) -> bool {
        let waited = self.tables[node].cancel(self.now, ticket, &mut self.effects);
        self.carry_out(node);
        waited
    }

    pub(crate) fn release(&mut self, node: usize, hold: HoldId) -> Result<(), HoldError> {
        let released = self.tables[node].release(self.now, hold, &mut self.effects);
        self.carry_out(node);
        released
    }

    /// Sends a request, perhaps not for the first time.
    pub(crate) fn resume(
        &mut self,
        node: usize,
        lock: &LockName,
        ask: &LockRequest,
    ) -> Result<Option<Resumed>, RequestError> {
        self.tables[node].resume(self.now, lock, ask)
    }

    pub(crate) fn tick(&mut self, node: usize) {
        self.tables[node].tick(self.now, &mut self.effects);
        self.carry_out(node);
    }

    pub(crate) fn stop(&mut self, node: usize) {
        self.tables[node].stop(self.now, &mut self.effects);
        self.carry_out(node);
    }

    /// Freezes all nodes and installs another epoch with what they held then; `meanwhile` runs in
    /// between.
    pub(crate) fn change_epoch(&mut self, number: u64, meanwhile: impl FnOnce(&mut Self)) {
        let inside = self.freeze();
        meanwhile(self);
        self.install(number, &inside);
    }

    /// Freezes all nodes. Returns what they hold.
    pub(crate) fn freeze(&mut self) -> Inside {
        let mut held = Vec::new();
        for (node, table) in self.tables.iter_mut().enumerate() {
            table.freeze();
            let locks = table.held().into_iter();
            held.extend(locks.map(|lock| (lock, NodeId::from_index(node))));
        }
        let held = held.iter().map(|(lock, node)| (lock, *node));
        self.channels.clear();
        Inside::of(HashKey::default(), held)
    }

    /// Installs an epoch on all nodes, which are frozen.
    pub(crate) fn install(&mut self, number: u64, inside: &Inside) {
        for node in 0..self.tables.len() {
            let epoch = Epoch {
                number,
                me: NodeId::from_index(node),
                members: members(self.tables.len()),
                inside: inside.clone(),
            };
            self.tables[node].install(self.now, epoch, &mut self.effects);
            self.carry_out(node);
        }
    }

    /// This many locks begin an epoch in one step.
    pub(crate) fn begin_at_once(&mut self, locks: usize) {
        for table in &mut self.tables {
            table.tune(Tuning {
                begun_at_once: Some(locks),
                ..Tuning::default()
            });
        }
    }

    /// Calls a method of a node's table. Returns also what its clients are told.
    pub(crate) fn change<T>(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut Table, Moment, &mut Effects) -> T,
    ) -> (T, Vec<SessionPush>) {
        let result = act(&mut self.tables[node], self.now, &mut self.effects);
        let pushes = std::mem::take(&mut self.effects.pushes);
        self.carry_out(node);
        (result, pushes)
    }

    /// The channels with messages in flight.
    pub(crate) fn under_way(&self) -> Vec<(usize, usize)> {
        let channels = self.channels.iter();
        let busy = channels.filter(|(_, messages)| !messages.is_empty());
        busy.map(|(&channel, _)| channel).collect()
    }

    pub(crate) fn deliver(&mut self, (from, to): (usize, usize)) {
        let bytes = self.channels.get_mut(&(from, to)).unwrap().pop_front();
        let from = NodeId::from_index(from);
        let table = &mut self.tables[to];
        let received = table.receive(self.now, from, &bytes.unwrap(), &mut self.effects);
        received.unwrap();
        self.carry_out(to);
    }

    /// Sets the fence of all messages in flight to this one. It follows their kind and epoch.
    pub(crate) fn raise_fences(&mut self, fence: Fence) {
        for message in self.channels.values_mut().flatten() {
            message[9..17].copy_from_slice(&fence.number().to_le_bytes());
        }
    }

    /// Delivers messages until none are in flight.
    pub(crate) fn deliver_all(&mut self) {
        while let Some(&channel) = self.under_way().first() {
            self.deliver(channel);
        }
    }

    /// Lets time pass without requests, until nothing more is due.
    pub(crate) fn rest(&mut self) {
        loop {
            self.deliver_all();
            let due = self.tables.iter().filter_map(|table| table.next_deadline());
            let Some(due) = due.min() else {
                return;
            };
            self.now = self.now.max(due);
            (0..self.tables.len()).for_each(|node| self.tick(node));
        }
    }

    /// The latest hold of a lock, which must be on this node.
    pub(crate) fn hold_of(&self, node: usize, lock: &LockName) -> HoldId {
        let &(holder, hold) = &self.holders[lock];
        assert_eq!(holder, node);
        hold
    }

    fn carry_out(&mut self, node: usize) {
        for (to, bytes) in self.effects.sends() {
            let channel = self.channels.entry((node, to.0 as usize)).or_default();
            channel.push_back(bytes.to_vec());
        }
        for event in std::mem::take(&mut self.effects.events) {
            match event {
                LockEvent::Granted { ticket, grant, .. } => {
                    let before = self.holders.insert(grant.lock.clone(), (node, grant.hold));
                    assert_eq!(before, None, "two holders of {:?}", grant.lock);
                    let last = self.fences.insert(grant.lock.clone(), grant.fence);
                    assert!(last < Some(grant.fence), "{last:?}, then {grant:?}");
                    self.decide(node, ticket);
                    self.granted.push((node, ticket, grant));
                }
                LockEvent::Ended {
                    hold, lock, end, ..
                } => {
                    assert_eq!(self.holders.remove(&lock), Some((node, hold)));
                    self.ended.push((hold, end));
                }
                LockEvent::Denied { ticket, denial, .. } => {
                    self.decide(node, ticket);
                    self.denied.push((node, ticket, denial));
                }
                LockEvent::Cancelled { ticket, .. } => {
                    self.decide(node, ticket);
                    self.cancelled.push((node, ticket));
                }
                LockEvent::Waiting { ticket, .. } => {
                    self.queued.insert((node, ticket));
                }
            }
        }
        self.effects.clear();
    }

    fn decide(&mut self, node: usize, ticket: Ticket) {
        self.queued.remove(&(node, ticket));
        let is_first = self.decided.insert((node, ticket));
        assert!(is_first, "{ticket:?} was decided before");
    }
}
