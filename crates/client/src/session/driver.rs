//! The task that drives a session: connects, pings, and resumes the session when its connection
//! broke. It reads the connection while no caller does.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use soloist_api::session::{Code, Welcome};
use soloist_api::{nap, ttl};
use tokio::time::sleep;

use super::machine::{Next, Wait};
use super::socket::{self, Refusal, Socket};
use super::{Driver, Session, refused};
use crate::{ClientError, Moment, reached};

/// While callers are active, the driver looks this often at what they left unread.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A connection that lasted this long resets the back-off.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// Pauses before another connection is opened. When they are used up, requests that wait are given
/// up.
const PAUSES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
];

/// Timeout for a connection and the answer to its hello.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// The same timeout if requests wait that can move to another node.
const MOVE_AFTER: Duration = Duration::from_secs(1);

/// Pause between later attempts, for the holds.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A session with a driver. If it is dropped with the runtime, callers are told.
pub(super) struct Running(Arc<Session>);

impl Running {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        Running(Arc::clone(session))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.driver = Driver::Gone;
        self.0.abandon(&mut state);
        state.settling.drain(..).for_each(Waker::wake);
        drop(state);
        self.0.wakers.wake_all();
    }
}

/// Why a conversation ended.
enum End {
    /// The session is over, and no more requests come.
    Closed,
    /// The node has ended the session.
    Session,
    Broken(ClientError),
}

/// Keeps a session until it is closed.
pub(super) async fn drive(running: Running) {
    let session = &running.0;
    let mut failures = 0;
    while session.is_wanted().await {
        let error = match session.connect().await {
            Ok((socket, sent, welcome)) => {
                let began = Moment::now();
                session.install(socket, sent, welcome);
                let end = session.converse().await;
                let was_stable = Moment::now().since(began) > STABLE_AFTER;
                if was_stable {
                    failures = 0;
                }
                match end {
                    End::Closed => return,
                    End::Session if was_stable => continue,
                    End::Session => session.node.dialer.broken("the session expired at once"),
                    End::Broken(error) => error,
                }
            }
            Err(Refusal::Closed(closed)) if closed.code == Code::NoSuchSession => {
                session.end();
                continue;
            }
            Err(Refusal::Closed(closed)) => {
                session.forget_left_if_bad(closed.code);
                refused(closed.code, closed.detail)
            }
            Err(Refusal::Error(error)) => error,
        };
        failures += 1;
        session.failed(error, failures);
        session.pause(failures).await;
    }
}

impl Session {
    /// Waits until there is something to keep. Returns false if no more will come.
    async fn is_wanted(&self) -> bool {
        loop {
            {
                let mut state = self.state();
                let now = Moment::now();
                let is_waiting = state.machine.has_waiting();
                if !is_waiting && state.machine.has_expired(now) {
                    state.update(|machine, now, out| machine.end(now, out));
                    self.exchange(&mut state, false);
                }
                let is_held = state.machine.certain_for(now).is_some();
                if is_waiting || is_held || !state.machine.is_settled() {
                    return true;
                }
                if state.is_closing {
                    return false;
                }
            }
            poll_fn(|context| self.wakers.poll_notified(context)).await;
        }
    }

    async fn connect(&self) -> Result<(Socket, Moment, Welcome), Refusal> {
        let (hello, is_waiting) = {
            let state = self.state();
            let hello = state.machine.hello(state.left.clone());
            (hello, state.machine.has_waiting())
        };
        let limit = match self.has_others && is_waiting {
            true => MOVE_AFTER,
            false => OPEN_WITHIN,
        };
        let opened = socket::open(&self.node.dialer, self.node.take_fresh(), hello, limit);
        self.while_waiting(opened).await
    }

    fn install(&self, socket: Socket, sent: Moment, welcome: Welcome) {
        let mut state = self.state();
        state.socket = Some(socket);
        state.left = None;
        state.opening.drain(..).for_each(Waker::wake);
        state.update(|machine, now, out| machine.welcome(now, sent, welcome, out));
        self.exchange(&mut state, true);
    }

    /// Stops naming the session that was left, if that may be why the hello was refused: the next
    /// hello must not fail for the same reason. The old session ends what was left, or expires.
    fn forget_left_if_bad(&self, code: Code) {
        if matches!(code, Code::BadMessage | Code::BadRequest) {
            self.state().left = None;
        }
    }

    fn end(&self) {
        let mut state = self.state();
        state.update(|machine, now, out| machine.end(now, out));
        self.exchange(&mut state, false);
    }

    /// Reads and pings until the connection is over.
    async fn converse(&self) -> End {
        let mut calls = 0;
        loop {
            let pause = {
                let mut state = self.state();
                let is_busy = std::mem::replace(&mut calls, state.calls) != state.calls;
                // Before the connection is read, so that nothing is missed.
                self.wakers.set_attentive(!is_busy);
                self.exchange(&mut state, true);
                let next = state.update(|machine, now, out| machine.tick(now, out));
                self.exchange(&mut state, false);
                if state.is_closing {
                    self.say_goodbye(&mut state);
                }
                if state.socket.is_none() {
                    return match state.broken.take() {
                        Some(error) => End::Broken(error),
                        None if state.is_closing && state.machine.is_idle() => End::Closed,
                        None => End::Session,
                    };
                }
                match next {
                    Next::Silent => {
                        state.cut(None);
                        return End::Broken(self.node.dialer.broken("the node does not answer"));
                    }
                    Next::At(moment) if is_busy => nap(moment.since(Moment::now())).min(LOOK_EVERY),
                    Next::At(moment) => nap(moment.since(Moment::now())),
                    Next::Idle if is_busy => LOOK_EVERY,
                    Next::Idle => Duration::MAX,
                }
            };
            tokio::select! {
                biased;
                () = poll_fn(|context| self.wakers.poll_notified(context)) => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Gives up requests that wait, if a connection failed too often or no other attempt can
    /// succeed.
    fn failed(&self, error: ClientError, failures: usize) {
        let mut state = self.state();
        let may_pass = matches!(
            error,
            ClientError::Unreachable(_) | ClientError::Broken { .. } | ClientError::Silent { .. }
        );
        let failures_max = match self.has_others {
            true => 1,
            false => PAUSES.len(),
        };
        if failures > failures_max || !may_pass {
            state.give_up_all(&Arc::new(error));
        }
        self.exchange(&mut state, false);
    }

    async fn pause(&self, failures: usize) {
        let certain_for = self.state().machine.certain_for(Moment::now());
        let pause = PAUSES.get(failures - 1).copied().unwrap_or(PAUSE_MAX);
        let pause = match certain_for {
            Some(left) => pause.min(ttl::renewal_pause(left)),
            None => pause,
        };
        self.while_waiting(sleep(pause)).await;
    }

    /// Runs `work` while there is no connection, and gives up requests whose time is up.
    async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.give_up_late() => match never {},
        }
    }

    async fn give_up_late(&self) -> std::convert::Infallible {
        loop {
            let next = {
                let mut state = self.state();
                let now = Moment::now();
                let error = self.node.dialer.broken("the wait is over");
                let is_late = |wait| matches!(wait, Wait::Until(moment) if moment <= now);
                state.give_up(&Arc::new(error), is_late);
                self.exchange(&mut state, false);
                state.machine.first_deadline()
            };
            match next {
                Some(moment) => reached(moment).await,
                None => std::future::pending().await,
            }
        }
    }
}
