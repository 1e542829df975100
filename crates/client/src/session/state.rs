//! The state of a session: the machine, its connection, and who waits.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use soloist_api::session::{Code, Left, NodeMessage};

use super::Settings;
use super::machine::{Machine, Out, Wait};
use super::socket::{Broken, Socket};
use super::spin::Spin;
use crate::{ClientError, Moment};

/// What the callers and the driver of a session share.
pub(super) struct State {
    pub(super) machine: Machine<Arc<ClientError>>,
    pub(super) out: Out,
    pub(super) spin: Spin,
    /// The connection, if there is one. It is there if and only if the machine is connected.
    pub(super) socket: Option<Socket>,
    /// Why the last connection ended. `None` if the session ended with it.
    pub(super) broken: Option<ClientError>,
    pub(super) driver: Driver,
    /// The session on another node that the client left for this one, until this one has begun.
    pub(super) left: Option<Left>,
    /// Number of calls so far: tells the driver whether callers are active.
    pub(super) calls: u64,
    /// Whether no more requests will come.
    pub(super) is_closing: bool,
    /// Tasks that wait until everything was answered.
    pub(super) settling: Vec<Waker>,
    /// Tasks that wait until the session begins.
    pub(super) opening: Vec<Waker>,
}

/// The task that keeps the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    NotStarted,
    Runs,
    /// Its runtime was shut down.
    Gone,
}

impl State {
    pub(super) fn new(settings: &Settings, left: Option<Left>) -> Self {
        State {
            machine: Machine::new(settings.clone()),
            out: Out::default(),
            spin: Spin::new(settings.spin),
            socket: None,
            broken: None,
            driver: Driver::NotStarted,
            left,
            calls: 0,
            is_closing: false,
            settling: Vec::new(),
            opening: Vec::new(),
        }
    }

    pub(super) fn update<T>(
        &mut self,
        change: impl FnOnce(&mut Machine<Arc<ClientError>>, Moment, &mut Out) -> T,
    ) -> T {
        change(&mut self.machine, Moment::now(), &mut self.out)
    }

    pub(super) fn give_up(&mut self, error: &Arc<ClientError>, is_over: impl Fn(Wait) -> bool) {
        self.update(|machine, now, out| machine.give_up(now, error, is_over, out));
    }

    pub(super) fn give_up_all(&mut self, error: &Arc<ClientError>) {
        self.give_up(error, |_| true);
        self.machine.give_up_releases(error, &mut self.out);
    }

    pub(super) fn set_direct(&mut self, is_direct: bool) {
        if let Some(socket) = &mut self.socket {
            socket.set_direct(is_direct);
        }
    }

    pub(super) fn cut(&mut self, why: Option<ClientError>) {
        self.socket = None;
        self.broken = why;
        self.out.send.clear();
        self.machine.cut();
    }

    /// The error is why the connection is over, or `None` if the session has ended.
    pub(super) fn exchange(
        &mut self,
        read: bool,
        context: &mut Context<'_>,
    ) -> Result<(), Option<Broken>> {
        loop {
            let Some(socket) = &mut self.socket else {
                self.out.send.clear();
                return Ok(());
            };
            for message in self.out.send.drain(..) {
                socket.push(&message);
            }
            if let Poll::Ready(Err(broken)) = socket.poll_flush(context) {
                return Err(Some(broken));
            }
            while read && let Poll::Ready(message) = socket.poll_read(context) {
                let message = message.map_err(Some)?;
                let now = Moment::now();
                if let NodeMessage::Closed(closed) = message {
                    if let Code::Expired | Code::Ended = closed.code {
                        self.machine.end(now, &mut self.out);
                        return Err(None);
                    }
                    return Err(Some(Broken::Closed(closed)));
                }
                let received = self.machine.receive(now, message, &mut self.out);
                received.map_err(|violation| Some(Broken::Garbled(violation.to_string())))?;
            }
            if self.out.send.is_empty() {
                return Ok(());
            }
        }
    }
}
