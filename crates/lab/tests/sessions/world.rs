//! A client, its node and the node of a rival, and the messages between them.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use soloist_algorithms::{Choice, NodeId};
use soloist_api::session::{ClientMessage, Closed, Code, Hello, NodeMessage, Resume, Secret};
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
use soloist_lab::breadth_first::{Shared, Space};

use super::client::{Client, LOCK, Phase};
use super::steps::Action;

pub(crate) const TTL: Duration = Duration::from_secs(2);
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// Shorter than the time to live, as it usually is.
const LEASE: Duration = TICK;

/// The node of the client at first, and that of the rival.
pub(crate) const HERE: usize = 0;
pub(crate) const THERE: usize = 1;

pub(crate) const RIVAL: &str = "the rival";

#[derive(Clone)]
pub(crate) struct Connection {
    pub node: usize,
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
    intrusions: 0,
    resends_all: false,
};

#[derive(Clone)]
pub(crate) struct State {
    pub tables: [Shared<Table>; 2],
    pub connections: Vec<Connection>,
    pub client: Client,
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
        (&self.tables, &self.connections, &self.client).hash(hasher);
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
            client: Client::new(
                case.resends_all,
                planted == Some(Mutant::PromiseFromArrival),
            ),
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
            let message = self.tables[node].session_message(&teller, push);
            self.deliver_down(number, message);
        }
    }

    pub(crate) fn deliver_down(&mut self, number: usize, message: NodeMessage) {
        let connection = &mut self.connections[number];
        connection.is_over |= matches!(message, NodeMessage::Closed(_));
        if connection.is_open {
            connection.down.push_back(Rc::new(message));
        }
    }

    pub(crate) fn open(&self) -> Option<usize> {
        self.connections.iter().position(|one| one.is_open)
    }

    pub(crate) fn connect(&mut self, node: usize) {
        self.client.node = node;
        let hello = self.client.hello(self.now);
        self.connections.push(Connection {
            node,
            session: None,
            up: VecDeque::from([Rc::new(hello)]),
            down: VecDeque::new(),
            is_open: true,
            is_over: false,
        });
    }

    /// The node to connect to. One that drains takes no new session, and the other one does.
    pub(crate) fn next_node(&self) -> usize {
        let is_new = self.client.credentials.is_none();
        match is_new && self.is_drained {
            true => THERE,
            false => self.client.node,
        }
    }

    pub(crate) fn send(&mut self, message: ClientMessage) {
        let open = self.open().expect("it has a connection");
        self.connections[open].up.push_back(Rc::new(message));
    }

    pub(crate) fn cut(&mut self) {
        let open = self.open().expect("it has a connection");
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
        if let Some(left) = &hello.left {
            let old = left.node.parse().expect("a node");
            let (session, secret) = (left.session.parse(), left.secret.0.parse());
            let (session, secret) = (session.expect("an id"), secret.expect("a secret"));
            self.change(old, |table, now, out| {
                table.leave_session(now, session, secret, left.seen, &left.release, out)
            })?;
        }
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

    pub(crate) fn down(&mut self) -> Result<(), String> {
        let open = self.open().expect("it has a connection");
        let message = self.connections[open].down.pop_front().expect("a message");
        let is_closed = matches!(*message, NodeMessage::Closed(_));
        let resends = self.client.receive(self.now, (*message).clone())?;
        for message in resends {
            self.send(message);
        }
        if is_closed {
            self.cut();
        }
        Ok(())
    }

    /// A resume with the right session and a wrong secret.
    pub(crate) fn intrude(&mut self) -> Result<(), String> {
        let known = self.client.credentials.clone().expect("a session");
        let number = self.connections.len();
        self.connections.push(Connection {
            node: known.node,
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

    pub(crate) fn excludes(&self) -> Result<(), String> {
        if self.client.relies(self.now) && self.rival.is_some() {
            return Err("the client works while the rival is inside".to_owned());
        }
        Ok(())
    }

    /// Lets the client connect, all messages arrive and the rival leave. Then client and nodes must
    /// agree.
    pub(crate) fn comes_to_an_end(&self) -> Result<(), String> {
        let mut end = self.clone();
        for _ in 0..1000 {
            let up = end.connections.iter().position(|one| !one.up.is_empty());
            let down = end
                .open()
                .filter(|&open| !end.connections[open].down.is_empty());
            if let Some(number) = up {
                end.up(number)?;
            } else if down.is_some() {
                end.down()?;
            } else if end.rival.is_some() {
                end.apply(Action::RivalReleases)?;
            } else if end.open().is_none() {
                end.connect(end.next_node());
            } else {
                return end.agrees();
            }
        }
        Err("messages never stop".to_owned())
    }

    pub(crate) fn agrees(&self) -> Result<(), String> {
        let phase = self.client.phase;
        if matches!(phase, Phase::Asked(_) | Phase::Releasing(_)) {
            return Err(format!("the client is {phase:?} and nothing happens"));
        }
        let mut held = [0, 0];
        if matches!(phase, Phase::Held(..)) {
            held[self.client.node] = 1;
        }
        let holds = [self.tables[HERE].holds(), self.tables[THERE].holds()];
        if holds != held {
            return Err(format!(
                "the client is {phase:?}, and the nodes have {holds:?} holds"
            ));
        }
        Ok(())
    }
}
