//! The steps of the search.

use soloist_core::locks::LockRequest;
use soloist_core::sessions::ConnectionId;
use soloist_lab::breadth_first::{self, Space};

use super::client::Phase;
use super::world::{Connection, HERE, RIVAL, State, THERE, TICK, lock};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The client opens a connection: a new session, or to resume the one it has.
    Connect,
    /// The client opens a connection to the other node.
    Move,
    Acquire,
    Release,
    Ping,
    /// The client's connection breaks. What it sent may still arrive.
    Cut,
    /// The node notices that a connection has ended.
    Notice(usize),
    /// A message of the client arrives.
    Up(usize),
    /// A message of the node arrives.
    Down,
    Tick,
    Drain,
    /// Another client tries to resume the session without its secret.
    Intrude,
    RivalRequests,
    RivalReleases,
}

impl Space for State {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut may = |action, is_possible: bool| actions.extend(is_possible.then_some(action));
        let left = &self.left;
        for (number, connection) in self.connections.iter().enumerate() {
            may(Action::Up(number), !connection.up.is_empty());
            let is_gone = !connection.is_open && !connection.is_over && connection.up.is_empty();
            may(Action::Notice(number), is_gone);
        }
        let open = self.open().map(|open| &self.connections[open]);
        let is_welcome = open.is_some() && self.client.is_welcome;
        let phase = self.client.phase;
        may(Action::Down, open.is_some_and(|open| !open.down.is_empty()));
        may(Action::Connect, open.is_none());
        may(Action::Cut, open.is_some() && left.cuts > 0);
        let is_settled = matches!(phase, Phase::Idle | Phase::Asked(_));
        let moves = open.is_none() && left.moves > 0 && self.client.node == HERE;
        may(Action::Move, moves && is_settled);
        let acquires = phase == Phase::Idle && left.requests > 0;
        may(Action::Acquire, is_welcome && acquires);
        may(
            Action::Release,
            is_welcome && matches!(phase, Phase::Held(..)),
        );
        may(Action::Ping, is_welcome && left.pings > 0);
        may(Action::Tick, left.ticks > 0);
        may(Action::Drain, left.drains > 0);
        let intrudes = left.intrusions > 0 && self.client.credentials.is_some();
        may(Action::Intrude, intrudes);
        let is_free = self.rival.is_none() && !self.rival_waits;
        may(Action::RivalRequests, is_free && left.rivals > 0);
        may(Action::RivalReleases, self.rival.is_some());
        actions
    }

    fn apply(&mut self, action: Action) -> Result<(), String> {
        let now = self.now;
        match action {
            Action::Connect => self.connect(self.next_node()),
            Action::Move => {
                self.left.moves -= 1;
                if matches!(self.client.phase, Phase::Asked(_)) {
                    self.client.phase = Phase::Idle;
                    self.left.requests += 1;
                }
                self.connect(THERE);
            }
            Action::Acquire => {
                self.left.requests -= 1;
                let message = self.client.acquire(now);
                self.send(message);
            }
            Action::Release => {
                if let Phase::Held(hold, _) = self.client.phase {
                    let message = self.client.release(now, hold);
                    self.send(message);
                }
            }
            Action::Ping => {
                self.left.pings -= 1;
                let message = self.client.ping(now);
                self.send(message);
            }
            Action::Cut => {
                self.left.cuts -= 1;
                self.cut();
            }
            Action::Notice(number) => {
                self.connections[number].is_over = true;
                let Connection { node, session, .. } = self.connections[number];
                if let Some(session) = session {
                    let id = ConnectionId(number as u64);
                    self.change(node, |table, _, _| table.cut_session(session, id))?;
                }
            }
            Action::Up(number) => self.up(number)?,
            Action::Down => self.down()?,
            Action::Tick => {
                self.left.ticks -= 1;
                self.now = now + TICK;
                if self.valid_until == Some(self.now) {
                    self.lapse()?;
                }
                for node in [HERE, THERE] {
                    self.change(node, |table, now, out| table.tick(now, out))?;
                }
            }
            Action::Drain => {
                self.left.drains -= 1;
                self.is_drained = true;
                let until = self.leased(HERE);
                self.change(HERE, |table, now, out| {
                    table.stop(now, out);
                    table.drain(now, until, out);
                })?;
            }
            Action::Intrude => {
                self.left.intrusions -= 1;
                self.intrude()?;
            }
            Action::RivalRequests => {
                self.left.rivals -= 1;
                self.rival_waits = true;
                let ask = LockRequest::new(RIVAL);
                let asked = self.change(THERE, |table, now, out| {
                    table.acquire(now, &lock(), ask, out)
                })?;
                asked.map_err(|error| error.to_string())?;
            }
            Action::RivalReleases => {
                let hold = self.rival.take().expect("it is inside");
                let released =
                    self.change(THERE, |table, now, out| table.release(now, hold, out))?;
                released.map_err(|error| error.to_string())?;
            }
        }
        self.excludes()
    }

    fn check(&self) -> Result<(), String> {
        self.comes_to_an_end()
    }

    fn fingerprint(&self) -> u128 {
        breadth_first::fingerprint(self)
    }
}
