//! The steps of the search.

use soloist_core::locks::LockRequest;
use soloist_core::sessions::ConnectionId;
use soloist_lab::breadth_first::{self, Space};

use super::client::Phase;
use super::world::{Connection, HERE, RIVAL, Role, State, THERE, TICK, lock};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The client opens a connection: a new session, or to resume the one it has.
    Connect(Role),
    /// The client opens a connection to the other node.
    Move,
    /// The other node makes the first one end what the client left there.
    Leave,
    Acquire,
    Release(Role),
    Ping,
    /// The client's connection breaks. What it sent may still arrive.
    Cut(Role),
    /// The node notices that a connection has ended.
    Notice(usize),
    /// A message of the client arrives.
    Up(usize),
    /// A message of the node arrives.
    Down(Role),
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
        for role in [Role::Now, Role::Before] {
            let Some(client) = self.client_of(role) else {
                continue;
            };
            let open = self.open(role).map(|open| &self.connections[open]);
            may(
                Action::Down(role),
                open.is_some_and(|open| !open.down.is_empty()),
            );
            may(Action::Cut(role), open.is_some() && left.cuts > 0);
            let connects = match role {
                Role::Now => true,
                Role::Before => left.returns > 0,
            };
            may(Action::Connect(role), open.is_none() && connects);
            let is_held = matches!(client.phase, Phase::Held(..));
            let releases = open.is_some() && client.is_welcome && is_held;
            may(Action::Release(role), releases);
        }
        let open = self.open(Role::Now);
        let is_welcome = open.is_some() && self.client.is_welcome;
        let moves = open.is_none() && left.moves > 0 && self.client.node == HERE;
        may(Action::Move, moves);
        may(Action::Leave, self.leaving.is_some());
        let acquires = self.client.phase == Phase::Idle && left.requests > 0;
        may(Action::Acquire, is_welcome && acquires);
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
            Action::Connect(role) => {
                if role == Role::Before {
                    self.left.returns -= 1;
                }
                self.connect(role);
            }
            Action::Move => {
                self.left.moves -= 1;
                self.leave();
                self.connect(Role::Now);
            }
            Action::Leave => self.end_left()?,
            Action::Acquire => {
                self.left.requests -= 1;
                let message = self.client.acquire(now);
                self.send(Role::Now, message);
            }
            Action::Release(role) => {
                let client = self.client_mut(role);
                if let Phase::Held(hold, _) = client.phase {
                    let message = client.release(now, hold);
                    self.send(role, message);
                }
            }
            Action::Ping => {
                self.left.pings -= 1;
                let message = self.client.ping(now);
                self.send(Role::Now, message);
            }
            Action::Cut(role) => {
                self.left.cuts -= 1;
                self.cut(role);
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
            Action::Down(role) => self.down(role)?,
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
        self.comes_to_an_end(false)?;
        match self.before {
            Some(_) => self.comes_to_an_end(true),
            None => Ok(()),
        }
    }

    fn fingerprint(&self) -> u128 {
        breadth_first::fingerprint(self)
    }
}
