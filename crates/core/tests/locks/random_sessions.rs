//! Sessions in random runs: their clients request, cancel, release, end them or leave them.

use std::time::Duration;

use proptest::prelude::*;
use soloist_api::LockName;
use soloist_api::session::{
    Acquire, Cancel, ClientMessage, NodeMessage, Numbered, Release, Secret,
};
use soloist_core::epochs::lease::Lease;
use soloist_core::locks::{Client, Remaining};
use soloist_core::sessions::{ConnectionId, Outcome, Push, SessionId, SessionPush, Teller};

use crate::cluster::Cluster;

/// The next action of a session's client. Numbers are taken modulo what exists.
#[derive(Clone, Debug)]
pub(crate) enum SessionStep {
    Open(usize),
    Acquire {
        session: usize,
        lock: usize,
        wait: u8,
    },
    Cancel(usize, usize),
    Release(usize, usize),
    /// The search for others finds one, if the last request may not wait.
    RefuseTry(usize),
    End(usize),
    /// The client moves to another node. It has read outcomes up to this one.
    Leave(usize, usize),
}

pub(crate) fn session_step() -> impl Strategy<Value = SessionStep> {
    let two = || (any::<usize>(), any::<usize>());
    prop_oneof![
        2 => any::<usize>().prop_map(SessionStep::Open),
        8 => (any::<usize>(), any::<usize>(), any::<u8>()).prop_map(
            |(session, lock, wait)| SessionStep::Acquire { session, lock, wait }
        ),
        1 => two().prop_map(|(session, n)| SessionStep::Cancel(session, n)),
        2 => two().prop_map(|(session, n)| SessionStep::Release(session, n)),
        1 => any::<usize>().prop_map(SessionStep::RefuseTry),
        1 => any::<usize>().prop_map(SessionStep::End),
        1 => two().prop_map(|(session, seen)| SessionStep::Leave(session, seen)),
    ]
}

#[derive(Default)]
pub(crate) struct Sessions(Vec<Session>);

struct Session {
    node: usize,
    id: SessionId,
    secret: Secret,
    /// A number of its own.
    connection: ConnectionId,
    /// The number of its last message.
    n: u64,
    /// A request that may not wait.
    attempt: Option<u64>,
}

const TTL: Duration = Duration::from_secs(30);

impl Sessions {
    pub(crate) fn step(&mut self, cluster: &mut Cluster, step: &SessionStep, locks: &[LockName]) {
        if let SessionStep::Open(node) = *step {
            let node = node % cluster.tables.len();
            self.0.extend(Session::open(cluster, node, self.0.len()));
            return;
        }
        let (SessionStep::Open(which)
        | SessionStep::Acquire { session: which, .. }
        | SessionStep::Cancel(which, _)
        | SessionStep::Release(which, _)
        | SessionStep::RefuseTry(which)
        | SessionStep::End(which)
        | SessionStep::Leave(which, _)) = *step;
        let count = self.0.len().max(1);
        if let Some(session) = self.0.get_mut(which % count) {
            session.step(cluster, step, locks);
        }
    }
}

impl Session {
    fn open(cluster: &mut Cluster, node: usize, number: usize) -> Option<Self> {
        let connection = ConnectionId(number as u64);
        let (client, owner) = (Client::new("me"), format!("session {number}"));
        let (opened, mut pushes) = cluster.change(node, |table, now, out| {
            table.open_session(now, client, owner.into(), TTL, connection, out)
        });
        let teller = Teller {
            node: "n1",
            epoch: 1,
            valid_until: None,
            lease: Lease::default(),
        };
        // The node may have stopped.
        let id = opened.ok()?;
        let welcome = pushes.pop().expect("a welcome");
        let Some(NodeMessage::Welcome(welcome)) =
            cluster.tables[node].session_message(&teller, welcome)
        else {
            panic!("no welcome");
        };
        Some(Session {
            node,
            id,
            secret: welcome.secret,
            connection,
            n: 0,
            attempt: None,
        })
    }

    fn step(&mut self, cluster: &mut Cluster, step: &SessionStep, locks: &[LockName]) {
        let some = |which: usize| which as u64 % self.n.max(1) + 1;
        let (n, seen) = (self.n + 1, None);
        match *step {
            SessionStep::Open(_) => unreachable!("it opens another one"),
            SessionStep::Acquire { lock, wait, .. } => {
                let wait_ms = [None, Some(0), Some(3_000)][usize::from(wait % 3)];
                let lock = locks[lock % locks.len()].to_string();
                let acquire = Acquire {
                    n,
                    lock,
                    wait_ms,
                    owner: None,
                    seen,
                };
                let remaining = self.send(cluster, ClientMessage::Acquire(acquire));
                if let Remaining::Try(n, _) = remaining {
                    self.attempt = Some(n);
                }
            }
            SessionStep::Cancel(_, which) => {
                let request = some(which);
                let cancel = Cancel { n, request, seen };
                self.send(cluster, ClientMessage::Cancel(cancel));
            }
            SessionStep::Release(_, which) => {
                let hold = some(which);
                let later = which % 2 == 0;
                let release = Release {
                    n,
                    hold,
                    later,
                    seen,
                };
                self.send(cluster, ClientMessage::Release(release));
            }
            SessionStep::RefuseTry(_) => {
                if let Some(n) = self.attempt.take() {
                    let id = self.id;
                    cluster.change(self.node, |table, now, out| {
                        table.refuse_try(now, id, n, out);
                    });
                }
            }
            SessionStep::End(_) => {
                let end = ClientMessage::End(Numbered { n, seen });
                self.send(cluster, end);
                self.has_ended(cluster);
            }
            SessionStep::Leave(_, which) => {
                let (id, secret) = (self.id, self.secret.0.parse().unwrap());
                let (_, pushes) = cluster.change(self.node, |table, now, out| {
                    table.leave_session(now, id, secret, which as u64 % 4, &[], out)
                });
                let is_granted = |push: &SessionPush| push.session == id && is_grant(push);
                assert!(!pushes.iter().any(is_granted), "{pushes:?}");
            }
        }
    }

    fn send(&mut self, cluster: &mut Cluster, message: ClientMessage) -> Remaining {
        self.n += 1;
        let (id, connection) = (self.id, self.connection);
        let (remaining, _) = cluster.change(self.node, |table, now, out| {
            table.receive_from_session(now, id, connection, message, out)
        });
        remaining
    }

    /// Nothing of a session is left, unless it ignored `end` because its client had left it.
    fn has_ended(&self, cluster: &Cluster) {
        let table = &cluster.tables[self.node];
        if table.has_session(self.id) {
            return;
        }
        let owner = format!("session {}", self.connection.0);
        for view in table.views(cluster.now, None, usize::MAX, usize::MAX).locks {
            let holder = view.holder.as_ref().map(|holder| &holder.owner);
            assert_ne!(holder, Some(&owner), "its session has ended");
            let waits = view.waiters.iter().any(|waiter| waiter.owner == owner);
            assert!(!waits, "{owner} has ended and waits");
        }
    }
}

fn is_grant(push: &SessionPush) -> bool {
    matches!(&push.push, Push::Outcome(_, Outcome::Granted { .. }))
}
