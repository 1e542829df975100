//! A client, its node and the node of a rival, and the messages between them.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use soloist_algorithms::{Choice, NodeId};
use soloist_api::session::{ClientMessage, Closed, Code, Hello, Left, NodeMessage, Resume, Secret};
use soloist_api::{LockName, Moment};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::locks::{
    Client as Principal, Effects, Epoch, HoldId, Inside, LockEvent, Settings, Table,
};
use soloist_core::name_hash::HashKey;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_core::sessions::{ConnectionId, SessionId, Teller};
use soloist_core::{Incarnation, Mutant, Tuning};
use soloist_lab::breadth_first::Shared;

use super::client::{Client, LOCK, Phase};

pub(crate) const TTL: Duration = Duration::from_secs(2);
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// Shorter than the time to live, as it usually is.
const LEASE: Duration = TICK;

/// The node of the client at first, and that of the rival.
pub(crate) const HERE: usize = 0;
pub(crate) const THERE: usize = 1;

pub(crate) const RIVAL: &str = "the rival";

/// Which of its sessions the client uses: the one that it has now, or the one that it has left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    Now,
    Before,
}

#[derive(Clone)]
pub(crate) struct Connection {
    pub node: usize,
    pub role: Role,
    pub session: Option<SessionId>,
    pub up: VecDeque<Rc<ClientMessage>>,
    pub down: VecDeque<Rc<NodeMessage>>,
    /// The client uses it.
    pub is_open: bool,
    /// The node has closed it, or has noticed its end.
    pub is_over: bool,
}

impl Hash for Connection {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (
            self.node,
            self.role,
            self.session.is_some(),
            self.is_open,
            self.is_over,
        )
            .hash(hasher);
        for message in &self.up {
            (message.n(), message.seen()).hash(hasher);
        }
        for message in &self.down {
            format!("{message:?}").hash(hasher);
        }
    }
}

/// How often each thing may happen.
#[derive(Clone, Copy, Hash, Debug)]
pub(crate) struct Case {
    pub requests: u8,
    pub cuts: u8,
    pub pings: u8,
    pub ticks: u8,
    pub rivals: u8,
    pub drains: u8,
    /// The client's node loses its lease at the first tick.
    pub lapses: bool,
    pub moves: u8,
    /// How often the client connects to the node that it has left.
    pub returns: u8,
    pub intrusions: u8,
    pub resends_all: bool,
}

pub(crate) const QUIET: Case = Case {
    requests: 1,
    cuts: 1,
    pings: 0,
    ticks: 0,
    rivals: 1,
    drains: 0,
    lapses: false,
    moves: 0,
    returns: 0,
    intrusions: 0,
    resends_all: false,
};

#[derive(Clone)]
pub(crate) struct State {
    pub tables: [Shared<Table>; 2],
    pub connections: Vec<Connection>,
    pub client: Client,
    /// The client of the session that was left: it keeps a hold there, and releases it there.
    pub before: Option<Client>,
    /// What the other node is to end on the first one.
    pub leaving: Option<Left>,
    pub rival: Option<HoldId>,
    pub rival_waits: bool,
    pub now: Moment,
    pub epoch: u64,
    pub left: Case,
    pub is_drained: bool,
    /// When the client's node loses its lease, if it does.
    pub valid_until: Option<Moment>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.tables, &self.connections).hash(hasher);
        (&self.client, &self.before).hash(hasher);
        let leaving = self.leaving.as_ref();
        leaving.map(|left| (left.seen, &left.release)).hash(hasher);
        (self.rival.is_some(), self.rival_waits, self.now).hash(hasher);
        (self.epoch, self.left, self.is_drained, self.valid_until).hash(hasher);
    }
}

pub(crate) fn lock() -> LockName {
    LockName::new(LOCK).unwrap()
}

pub(crate) fn principal() -> Principal {
    Principal::new("the client")
}

pub(crate) fn table(me: usize, planted: Option<Mutant>) -> Table {
    let settings = RuleSettings {
        algorithm: Choice::parse("raymond", "").unwrap().name.to_owned(),
        ..RuleSettings::default()
    };
    let mut table = Table::new(Settings {
        rules: Rules::new(2, &settings, &[]).unwrap(),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 10,
        forget_after: Duration::from_secs(3600),
        turns_away_after: None,
        seed: [me as u8; 32],
    });
    table.tune(Tuning {
        planted,
        ..Tuning::default()
    });
    table
}

impl State {
    pub(crate) fn new(case: Case, planted: Option<Mutant>) -> Self {
        let mut state = State {
            tables: [HERE, THERE].map(|me| Shared::new(table(me, planted))),
            connections: Vec::new(),
            client: Client::new(case.resends_all, planted),
            before: None,
            leaving: None,
            rival: None,
            rival_waits: false,
            now: Moment::default(),
            epoch: 0,
            left: case,
            is_drained: false,
            valid_until: case.lapses.then(|| Moment::default() + TICK),
        };
        state.install().unwrap();
        state
    }

    /// Begins the next epoch on both nodes. The rival stays inside, if it is.
    pub(crate) fn install(&mut self) -> Result<(), String> {
        self.epoch += 1;
        let name = lock();
        let mut done = VecDeque::new();
        for node in [HERE, THERE] {
            let inside = self.rival.map(|_| (&name, NodeId::from_index(THERE)));
            let epoch = Epoch {
                number: self.epoch,
                me: NodeId::from_index(node),
                members: [HERE, THERE].map(|node| Incarnation(node as u64)).into(),
                inside: Inside::of(HashKey::default(), inside),
            };
            let mut out = Effects::new();
            self.tables[node].change(|table| table.install(self.now, epoch, &mut out));
            done.push_back((node, out));
        }
        self.settle(done)
    }

    /// The client's node loses its lease, and joins again.
    pub(crate) fn lapse(&mut self) -> Result<(), String> {
        self.valid_until = None;
        self.change(HERE, |table, now, out| table.lose(now, out))?;
        self.change(THERE, |table, _, _| table.freeze())?;
        self.install()
    }

    /// Until when a node is certainly a member. It renews its lease all the time, until it lapses.
    pub(crate) fn leased(&self, node: usize) -> Moment {
        let lapse = self.valid_until.filter(|_| node == HERE);
        lapse.unwrap_or(self.now + LEASE)
    }

    /// Changes a table. Messages between the nodes arrive at once.
    pub(crate) fn change<T>(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut Table, Moment, &mut Effects) -> T,
    ) -> Result<T, String> {
        let now = self.now;
        let mut out = Effects::new();
        let result = self.tables[node].change(|table| act(table, now, &mut out));
        self.settle(VecDeque::from([(node, out)]))?;
        Ok(result)
    }

    /// Carries out effects, and those of the messages that they send.
    pub(crate) fn settle(&mut self, mut done: VecDeque<(usize, Effects)>) -> Result<(), String> {
        let now = self.now;
        while let Some((node, mut out)) = done.pop_front() {
            for (to, bytes) in out.sends() {
                let from = NodeId::from_index(node);
                let mut next = Effects::new();
                let to = to.0 as usize;
                let receiver = &mut self.tables[to];
                let received = receiver.change(|table| table.receive(now, from, bytes, &mut next));
                received.map_err(|error| error.to_string())?;
                done.push_back((to, next));
            }
            self.carry_out(node, &mut out);
        }
        Ok(())
    }

    pub(crate) fn carry_out(&mut self, node: usize, out: &mut Effects) {
        for event in &out.events {
            match event {
                LockEvent::Granted { grant, owner, .. } if **owner == *RIVAL => {
                    self.rival = Some(grant.hold);
                    self.rival_waits = false;
                }
                LockEvent::Denied { owner, .. } if **owner == *RIVAL => self.rival_waits = false,
                _ => {}
            }
        }
        for push in std::mem::take(&mut out.pushes) {
            let teller = Teller {
                node: "n",
                epoch: self.epoch,
                valid_until: Some(self.leased(node)),
                lease: Lease::default(),
            };
            let number = push.connection.0 as usize;
            if let Some(message) = self.tables[node].session_message(&teller, push) {
                self.deliver_down(number, message);
            }
        }
    }

    pub(crate) fn deliver_down(&mut self, number: usize, message: NodeMessage) {
        let connection = &mut self.connections[number];
        connection.is_over |= matches!(message, NodeMessage::Closed(_));
        if connection.is_open {
            connection.down.push_back(Rc::new(message));
        }
    }

    pub(crate) fn client_of(&self, role: Role) -> Option<&Client> {
        match role {
            Role::Now => Some(&self.client),
            // Once it has nothing there, it does not come back.
            Role::Before => {
                let before = self.before.as_ref();
                before.filter(|before| before.phase != Phase::Idle)
            }
        }
    }

    pub(crate) fn client_mut(&mut self, role: Role) -> &mut Client {
        match role {
            Role::Now => &mut self.client,
            Role::Before => self.before.as_mut().expect("it has left a session"),
        }
    }

    pub(crate) fn open(&self, role: Role) -> Option<usize> {
        let mut connections = self.connections.iter();
        connections.position(|one| one.is_open && one.role == role)
    }

    pub(crate) fn connect(&mut self, role: Role) {
        let (now, is_drained) = (self.now, self.is_drained);
        let client = self.client_mut(role);
        // A node that drains takes no new session, and the other one does.
        if client.credentials.is_none() && is_drained {
            client.node = THERE;
        }
        let (node, hello) = (client.node, client.hello(now));
        self.connections.push(Connection {
            node,
            role,
            session: None,
            up: VecDeque::from([Rc::new(hello)]),
            down: VecDeque::new(),
            is_open: true,
            is_over: false,
        });
    }

    /// The client continues on the other node. A request that waits is made again there.
    pub(crate) fn leave(&mut self) {
        if matches!(self.client.phase, Phase::Asked(_)) {
            self.left.requests += 1;
        }
        let mut next = self.client.leave();
        next.node = THERE;
        self.before = Some(std::mem::replace(&mut self.client, next));
    }

    /// The other node makes the first one end what the client left there.
    pub(crate) fn end_left(&mut self) -> Result<(), String> {
        let left = self.leaving.take().expect("something was left");
        let node = left.node.parse().expect("a node");
        let (session, secret) = (left.session.parse(), left.secret.0.parse());
        let (session, secret) = (session.expect("an id"), secret.expect("a secret"));
        self.change(node, |table, now, out| {
            table.leave_session(now, session, secret, left.seen, &left.release, out)
        })?;
        Ok(())
    }

    pub(crate) fn send(&mut self, role: Role, message: ClientMessage) {
        let open = self.open(role).expect("it has a connection");
        self.connections[open].up.push_back(Rc::new(message));
    }

    pub(crate) fn cut(&mut self, role: Role) {
        let open = self.open(role).expect("it has a connection");
        self.connections[open].is_open = false;
        self.connections[open].down.clear();
    }

    /// A message of the client arrives at its node.
    pub(crate) fn up(&mut self, number: usize) -> Result<(), String> {
        let connection = &mut self.connections[number];
        let message = connection.up.pop_front().expect("a message");
        let (node, session) = (connection.node, connection.session);
        if connection.is_over {
            return Ok(());
        }
        let id = ConnectionId(number as u64);
        if let ClientMessage::Hello(hello) = &*message {
            return self.greet(node, number, hello);
        }
        let session = session.expect("a hello came first");
        self.change(node, |table, now, out| {
            table.receive_from_session(now, session, id, (*message).clone(), out);
        })
    }

    pub(crate) fn greet(
        &mut self,
        node: usize,
        number: usize,
        hello: &Hello,
    ) -> Result<(), String> {
        let id = ConnectionId(number as u64);
        // The node does it later: the first node may not answer at once.
        self.leaving = hello.left.clone().or(self.leaving.take());
        let session = match &hello.resume {
            Some(resume) => {
                let session: SessionId = resume.session.parse().expect("an id");
                let resumed = self.resume(node, session, resume, number)?;
                resumed.then_some(session)
            }
            None => self.change(node, |table, now, out| {
                let owner = "the client".into();
                let opened = table.open_session(now, principal(), owner, TTL, id, out);
                opened.ok()
            })?,
        };
        self.connections[number].session = session;
        if session.is_none() {
            let code = match hello.resume {
                Some(_) => Code::NoSuchSession,
                None => Code::Stopping,
            };
            let detail = String::new();
            self.deliver_down(number, NodeMessage::Closed(Closed { code, detail }));
        }
        Ok(())
    }

    pub(crate) fn resume(
        &mut self,
        node: usize,
        session: SessionId,
        resume: &Resume,
        number: usize,
    ) -> Result<bool, String> {
        let id = ConnectionId(number as u64);
        let (secret, seen) = (resume.secret.0.parse().expect("a secret"), resume.seen);
        // The pushes to this connection must find it.
        self.connections[number].session = Some(session);
        self.change(node, |table, now, out| {
            let resumed = table.resume_session(now, session, secret, &principal(), seen, id, out);
            resumed.is_ok()
        })
    }

    pub(crate) fn down(&mut self, role: Role) -> Result<(), String> {
        let open = self.open(role).expect("it has a connection");
        let message = self.connections[open].down.pop_front().expect("a message");
        let is_closed = matches!(*message, NodeMessage::Closed(_));
        let now = self.now;
        let resends = self.client_mut(role).receive(now, (*message).clone())?;
        for message in resends {
            self.send(role, message);
        }
        if is_closed {
            self.cut(role);
        }
        Ok(())
    }

    /// A resume with the right session and a wrong secret.
    pub(crate) fn intrude(&mut self) -> Result<(), String> {
        let known = self.client.credentials.clone().expect("a session");
        let number = self.connections.len();
        self.connections.push(Connection {
            node: known.node,
            role: Role::Now,
            session: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
            is_open: false,
            is_over: true,
        });
        let resume = Resume {
            session: known.session.clone(),
            secret: Secret("0".repeat(32)),
            seen: 0,
        };
        let session = known.session.parse().expect("an id");
        match self.resume(known.node, session, &resume, number)? {
            true => Err("a session was resumed with a wrong secret".to_owned()),
            false => Ok(()),
        }
    }
}
