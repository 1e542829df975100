//! Messages of a session: no input panics, what is read back is the same, and a table that handles
//! them keeps its rules.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use soloist_algorithms::NodeId;
use soloist_api::Moment;
use soloist_api::session::{ClientMessage, NodeMessage, Promise};
use soloist_core::Incarnation;
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::locks::{Client, Effects, Epoch, Inside, Settings, Table};
use soloist_core::rules::{RuleSettings, Rules};
use soloist_core::sessions::{ConnectionId, SessionId, SessionSecret, Teller};

const TTL: Duration = Duration::from_secs(10);

fn table() -> Table {
    let mut table = Table::new(Settings {
        rules: Rules::new(1, &RuleSettings::default(), &[]).expect("the defaults are valid"),
        ttl_max: TTL,
        limits: Limits::default(),
        locks_max: 100,
        forget_after: TTL,
        turns_away_after: None,
        seed: [0; 32],
    });
    let epoch = Epoch {
        number: 1,
        me: NodeId::from_index(0),
        members: [Incarnation(0)].into(),
        inside: Inside::default(),
    };
    table.install(Moment::default(), epoch, &mut Effects::new());
    table
}

/// A client of the table, and the session that it has.
struct Fuzzed {
    name: &'static str,
    session: SessionId,
    secret: SessionSecret,
    connection: ConnectionId,
}

struct World {
    table: Table,
    out: Effects,
    now: Moment,
    connections: u64,
}

impl World {
    fn connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(self.connections)
    }

    fn open(&mut self, name: &'static str) -> Fuzzed {
        let connection = self.connection();
        let (client, owner) = (Client::new(name), name.into());
        let (now, out) = (self.now, &mut self.out);
        let opened = self
            .table
            .open_session(now, client, owner, TTL, connection, out);
        let session = opened.expect("there are few");
        let mut secret = None;
        for message in self.told() {
            if let NodeMessage::Welcome(welcome) = message {
                secret = welcome.secret.0.parse().ok();
            }
        }
        let secret = secret.expect("a new session is welcomed");
        Fuzzed {
            name,
            session,
            secret,
            connection,
        }
    }

    /// The messages of the effects. None promises more than the time to live.
    fn told(&mut self) -> Vec<NodeMessage> {
        let teller = Teller {
            node: "n1",
            epoch: 1,
            valid_until: None,
            lease: Lease::default(),
        };
        let pushes = std::mem::take(&mut self.out.pushes).into_iter();
        let told = pushes.filter_map(|push| self.table.session_message(&teller, push));
        let told: Vec<_> = told.collect();
        for promise in told.iter().filter_map(promise) {
            assert!(u128::from(promise.valid_for_ms) <= TTL.as_millis());
        }
        self.out.clear();
        told
    }

    /// What happens besides messages. The digit after the letter is a number of the node or of the
    /// client.
    fn happen(&mut self, of: &mut Fuzzed, letter: u8, number: u64) {
        let (now, out) = (self.now, &mut self.out);
        match letter {
            b'c' => self.table.cut_session(of.session, of.connection),
            b't' => self.table.refuse_try(now, of.session, number, out),
            b'd' => self.table.drain(now, now + TTL / 2, out),
            b's' => self.table.stop(now, out),
            b'l' => {
                let (session, secret) = (of.session, of.secret);
                (self.table).leave_session(now, session, secret, number, &[number], out);
            }
            b'r' => {
                let connection = self.connection();
                let (client, out) = (Client::new(of.name), &mut self.out);
                let (session, secret) = (of.session, of.secret);
                let resumed = (self.table)
                    .resume_session(now, session, secret, &client, number, connection, out);
                if resumed.is_ok() {
                    of.connection = connection;
                }
            }
            _ => {}
        }
    }
}

fn promise(message: &NodeMessage) -> Option<Promise> {
    match message {
        NodeMessage::Welcome(welcome) => Some(welcome.promise),
        NodeMessage::Granted(granted) => Some(granted.promise),
        NodeMessage::Lost(lost) => Some(lost.promise),
        NodeMessage::Pong(pong) => Some(pong.promise),
        NodeMessage::Stopping(stopping) => Some(stopping.promise),
        _ => None,
    }
}

// Each line is a message of the first client, or of the second one after `&`. An empty line lets a
// second pass, and one with `!` is something else that happens: see `World::happen`.
fuzz_target!(|bytes: &[u8]| {
    let mut world = World {
        table: table(),
        out: Effects::new(),
        now: Moment::default(),
        connections: 0,
    };
    let mut clients = [world.open("one"), world.open("other")];
    for line in bytes.split(|byte| *byte == b'\n') {
        let (of, line) = match line.split_first() {
            Some((b'&', line)) => (&mut clients[1], line),
            _ => (&mut clients[0], line),
        };
        let _ = serde_json::from_slice::<NodeMessage>(line);
        match line {
            [] => {
                world.now = world.now + Duration::from_secs(1);
                world.table.tick(world.now, &mut world.out);
            }
            [b'!', letter, digit] => world.happen(of, *letter, u64::from(digit & 15)),
            _ => {
                if let Ok(message) = serde_json::from_slice::<ClientMessage>(line) {
                    let text = serde_json::to_vec(&message).expect("a message can be written");
                    let again: ClientMessage =
                        serde_json::from_slice(&text).expect("it was written");
                    assert_eq!(again, message);
                    let (session, connection) = (of.session, of.connection);
                    let (now, out) = (world.now, &mut world.out);
                    world
                        .table
                        .receive_from_session(now, session, connection, message, out);
                }
            }
        }
        world.told();
        let held = world.table.holds() + world.table.waiters();
        assert!(
            world.table.sessions() > 0 || held == 0,
            "held by no session"
        );
    }
    // Silent sessions leave nothing behind.
    world.table.tick(world.now + TTL, &mut world.out);
    let table = &world.table;
    assert_eq!(
        (table.sessions(), table.holds(), table.waiters()),
        (0, 0, 0)
    );
});
