//! Lock tables, their clients and the messages between them, as a space to search.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use soloist_algorithms::{Choice, NodeId};
use soloist_api::Moment;
use soloist_api::{Fence, LockName};
use soloist_core::limits::Limits;
use soloist_core::locks::{
    Effects, Epoch, HoldId, Inside, LockEvent, LockRequest, Settings, Table, wire,
};
use soloist_core::name_hash::HashKey;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_core::{Incarnation, Mutant, Tuning};
use soloist_lab::breadth_first::{self, Shared, Space};
use xxhash_rust::xxh3::xxh3_64;

/// A small cluster, and what happens in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Number of requests, by node.
    pub(crate) requests: &'static [u8],
    /// Number of changes of epoch.
    pub(crate) changes: u8,
    /// The lock's home.
    pub(crate) home: u64,
    /// The lock does not begin an epoch together with its node, but when an event concerns it, or
    /// when the node checks its locks.
    pub(crate) begins_late: bool,
    /// A node that also holds a lock whose name has the same hash.
    pub(crate) collides: Option<usize>,
}

/// Algorithms in which a request need not reach the node that is inside. If that node does not know
/// that it counts as inside, the request waits for the next epoch.
const HOLDER_UNTOLD: [&str; 2] = ["central", "maekawa"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Request(usize),
    Release(usize),
    Deliver(usize, usize),
    /// The node checks its idle locks.
    Look(usize),
    /// The node reports for the next epoch.
    Freeze(usize),
    Install(usize),
}

#[derive(Clone, Copy)]
enum Client {
    Idle,
    Waits,
    Inside(HoldId),
}

#[derive(Clone)]
pub(crate) struct State {
    lock: LockName,
    tables: Vec<Shared<Table>>,
    channels: BTreeMap<(usize, usize), VecDeque<Rc<[u8]>>>,
    clients: Vec<Client>,
    /// Number of requests left, by node.
    left: Vec<u8>,
    fence: Option<Fence>,
    epoch: u64,
    changes_left: u8,
    /// Not all nodes have reported for the next epoch.
    is_changing: bool,
    frozen: Vec<bool>,
    /// The node that reported the lock as held.
    inside: Option<usize>,
    begins_late: bool,
    /// A node that also holds a lock whose name has the same hash.
    collides: Option<usize>,
    /// A request may wait for the next epoch.
    may_wait: bool,
    planted: Option<Mutant>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (table, client) in self.tables.iter().zip(&self.clients) {
            table.hash(hasher);
            std::mem::discriminant(client).hash(hasher);
        }
        (&self.channels, &self.left, self.fence).hash(hasher);
        (self.epoch, self.changes_left, self.is_changing).hash(hasher);
        (&self.frozen, self.inside).hash(hasher);
    }
}

/// When nodes check their locks: everything is due by then.
fn later() -> Moment {
    Moment::default() + Duration::from_secs(1)
}

fn table(rules: &Rules, me: usize) -> Table {
    Table::new(Settings {
        rules: rules.clone(),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 10,
        forget_after: Duration::ZERO,
        turns_away_after: None,
        seed: [me as u8; 32],
    })
}

impl State {
    pub(crate) fn new(choice: Choice, case: Case, planted: Option<Mutant>) -> Self {
        let nodes = case.requests.len();
        let settings = RuleSettings {
            algorithm: choice.name.to_owned(),
            variant: choice.variants.names(choice.kind.info()),
            max_local_turns: 1,
            ..RuleSettings::default()
        };
        let rules = Rules::new(nodes, &settings, &[]).unwrap();
        let names = (0..).map(|number| format!("lock/{number}"));
        let is_at_home = |name: &String| xxh3_64(name.as_bytes()) % nodes as u64 == case.home;
        let name = names.into_iter().find(is_at_home).unwrap();
        let tables = (0..nodes).map(|me| Shared::new(table(&rules, me)));
        let mut state = State {
            lock: LockName::new(&name).unwrap(),
            tables: tables.collect(),
            channels: BTreeMap::new(),
            clients: vec![Client::Idle; nodes],
            left: case.requests.to_vec(),
            fence: None,
            epoch: 1,
            changes_left: case.changes,
            is_changing: false,
            frozen: vec![true; nodes],
            inside: None,
            begins_late: case.begins_late,
            collides: case.collides,
            may_wait: case.collides.is_some() && HOLDER_UNTOLD.contains(&choice.name),
            planted,
        };
        for node in 0..nodes {
            state.apply(Action::Install(node)).unwrap();
        }
        state
    }

    fn nodes(&self) -> std::ops::Range<usize> {
        0..self.tables.len()
    }

    fn is_deliverable(&self, to: usize, bytes: &[u8]) -> bool {
        // A message that arrives before its epoch waits.
        !self.frozen[to] || self.is_changing || wire::epoch(bytes) != Some(self.epoch)
    }

    fn deliveries(&self) -> impl Iterator<Item = Action> + '_ {
        self.channels.iter().filter_map(|(&(from, to), messages)| {
            let first = messages.front()?;
            let arrives = self.is_deliverable(to, first);
            arrives.then_some(Action::Deliver(from, to))
        })
    }

    fn carry_out(&mut self, node: usize, out: &Effects) -> Result<(), String> {
        for (to, bytes) in out.sends() {
            let channel = self.channels.entry((node, to.0 as usize)).or_default();
            channel.push_back(bytes.into());
        }
        for event in &out.events {
            match event {
                LockEvent::Granted { grant, .. } => {
                    let is_inside = |client: &Client| matches!(client, Client::Inside(_));
                    if self.clients.iter().any(is_inside) {
                        return Err(format!("{node} enters while another node is inside"));
                    }
                    if self.fence >= Some(grant.fence) {
                        return Err(format!("{:?}, then {:?}", self.fence, grant.fence));
                    }
                    self.fence = Some(grant.fence);
                    self.clients[node] = Client::Inside(grant.hold);
                }
                LockEvent::Ended { .. } => self.clients[node] = Client::Idle,
                LockEvent::Waiting { .. } => {}
                LockEvent::Denied { .. } | LockEvent::Cancelled { .. } => {
                    return Err(format!("{node} is denied"));
                }
            }
        }
        Ok(())
    }

    /// If nothing is in flight and no client is inside: checks that no request waits forever, and
    /// that nothing is left of the lock.
    fn comes_to_an_end(&self) -> Result<(), String> {
        let is_inside = |client: &Client| matches!(client, Client::Inside(_));
        let is_settled = self.frozen.iter().all(|frozen| !frozen);
        if !self.channels.is_empty() || self.clients.iter().any(is_inside) || !is_settled {
            return Ok(());
        }
        let mut end = self.clone();
        end.changes_left = 0;
        for _ in 0..1000 {
            if end.clients.iter().any(is_inside) {
                return Ok(());
            }
            let is_free = |action: &Action| matches!(action, Action::Deliver(..) | Action::Look(_));
            let Some(action) = end.actions().into_iter().find(is_free) else {
                let waits = |client: &Client| matches!(client, Client::Waits);
                if end.clients.iter().any(waits) {
                    return Err("a request is never served".to_owned());
                }
                let left: usize = end.tables.iter().map(|table| table.locks()).sum();
                let is_gone = left == 0;
                return is_gone.then_some(()).ok_or(format!("{left} are left"));
            };
            end.apply(action)?;
        }
        Err("messages never stop".to_owned())
    }
}

impl Space for State {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<_> = self.deliveries().collect();
        for node in self.nodes() {
            match self.clients[node] {
                Client::Idle if self.left[node] > 0 => actions.push(Action::Request(node)),
                Client::Inside(_) => actions.push(Action::Release(node)),
                Client::Idle | Client::Waits => {}
            }
            if self.tables[node].next_deadline().is_some() {
                actions.push(Action::Look(node));
            }
            let is_settled = self.frozen.iter().all(|frozen| !frozen);
            let may_change = self.is_changing || self.changes_left > 0 && is_settled;
            if self.frozen[node] && !self.is_changing {
                actions.push(Action::Install(node));
            } else if !self.frozen[node] && may_change {
                actions.push(Action::Freeze(node));
            }
        }
        actions
    }

    fn apply(&mut self, action: Action) -> Result<(), String> {
        let now = Moment::default();
        let mut out = Effects::new();
        let node = match action {
            Action::Request(node)
            | Action::Release(node)
            | Action::Deliver(_, node)
            | Action::Look(node)
            | Action::Freeze(node)
            | Action::Install(node) => node,
        };
        let is_late = self.begins_late && matches!(action, Action::Install(_));
        let tuning = Tuning {
            planted: self.planted,
            begun_at_once: is_late.then_some(0),
            ..Tuning::default()
        };
        self.tables[node].change(|table| {
            table.tune(tuning);
            match action {
                Action::Request(node) => {
                    self.left[node] -= 1;
                    self.clients[node] = Client::Waits;
                    let ask = LockRequest::new("somebody");
                    let asked = table.acquire(now, &self.lock, ask, &mut out);
                    asked.map_err(|error| error.to_string())?;
                }
                Action::Release(node) => {
                    if let Client::Inside(hold) = self.clients[node] {
                        let released = table.release(now, hold, &mut out);
                        released.map_err(|error| error.to_string())?;
                    }
                }
                Action::Deliver(from, to) => {
                    let channel = self.channels.get_mut(&(from, to)).expect("a channel");
                    let bytes = channel.pop_front().expect("a message");
                    if channel.is_empty() {
                        self.channels.remove(&(from, to));
                    }
                    let received = table.receive(now, NodeId::from_index(from), &bytes, &mut out);
                    received.map_err(|error| error.to_string())?;
                }
                Action::Look(_) => table.tick(later(), &mut out),
                Action::Freeze(node) => {
                    if !self.is_changing {
                        self.is_changing = true;
                        self.changes_left -= 1;
                        self.inside = None;
                    }
                    table.freeze();
                    if !table.held().is_empty() {
                        self.inside = Some(node);
                    }
                    self.frozen[node] = true;
                    // If two nodes report the same hash, both are evicted, and the epoch never
                    // begins.
                    let reports = [self.inside, self.collides].into_iter().flatten();
                    let is_sound = reports.collect::<HashSet<_>>().len() < 2;
                    if self.frozen.iter().all(|frozen| *frozen) && is_sound {
                        self.inside = self.inside.or(self.collides);
                        self.is_changing = false;
                        self.epoch += 1;
                    }
                }
                Action::Install(node) => {
                    let inside = self.inside.map(NodeId::from_index);
                    let inside = inside.map(|inside| (&self.lock, inside));
                    let epoch = Epoch {
                        number: self.epoch,
                        me: NodeId::from_index(node),
                        members: (0..self.clients.len() as u64).map(Incarnation).collect(),
                        inside: Inside::of(HashKey::default(), inside),
                    };
                    table.install(now, epoch, &mut out);
                    self.frozen[node] = false;
                }
            }
            Ok::<_, String>(())
        })?;
        self.carry_out(node, &out)
    }

    fn check(&self) -> Result<(), String> {
        if self.may_wait {
            return Ok(());
        }
        self.comes_to_an_end()
    }

    fn fingerprint(&self) -> u128 {
        breadth_first::fingerprint(self)
    }
}
