//! A session with one node, over one connection at a time.
//!
//! [`machine`] has the protocol. This module moves its messages. A caller that waits for an answer
//! reads and writes the connection in its own task. A [driver] task does it while nobody waits, and
//! it pings, reconnects and resumes.

mod driver;
mod key;
mod machine;
mod raw;
mod socket;
mod spin;
mod state;
mod wakers;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use soloist_api::session::Left;
use soloist_api::{Fence, Loss};
use tokio::runtime::Handle;

use crate::http::Http;
use crate::{ClientError, Moment, reached};
pub use key::SessionKey;
pub(crate) use machine::{Hold, RequestId, Wait, Wish};
use machine::{Machine, Out};
pub use raw::RawSession;
pub(crate) use socket::refused;
use state::{Driver, State};
use wakers::Wakers;

/// Why a request was not granted, or its release not confirmed.
pub(crate) type Denial = machine::Denial<Arc<ClientError>>;

/// Settings that the sessions of a client share.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settings {
    /// Shown as the holder of the client's locks.
    pub name: String,
    /// Time to live, or `None` for the node's setting.
    pub ttl: Option<Duration>,
    /// Whether the session ends with this process.
    pub ends_with_process: bool,
    /// Whether requests that wait can move to another node.
    pub has_others: bool,
    /// How long callers spin, see [`Spin`].
    pub spin: Duration,
}

/// A client's session with one node.
pub(crate) struct Session {
    node: Arc<Http>,
    /// Whether requests that wait can move to another node.
    has_others: bool,
    state: Mutex<State>,
    wakers: Arc<Wakers>,
    /// `wakers`, as the socket takes it.
    waker: Waker,
}

impl Session {
    /// A session that starts with its first request.
    pub(crate) fn new(node: Arc<Http>, settings: &Settings, left: Option<Left>) -> Arc<Self> {
        let wakers = Arc::<Wakers>::default();
        Arc::new(Session {
            node,
            has_others: settings.has_others,
            state: Mutex::new(State::new(settings, left)),
            waker: Arc::clone(&wakers).into(),
            wakers,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a lock. If the future is dropped, so is the request.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        runtime: &Handle,
        wish: Wish,
    ) -> Result<(RequestId, Fence), Denial> {
        self.start(runtime);
        let id = self.update(|machine, now, out| machine.acquire(now, wish, out));
        let mut pending = Pending {
            session: self,
            id,
            is_answered: false,
        };
        let answer = self.call(id, |machine| machine.acquired(id)).await;
        pending.is_answered = true;
        answer.map(|fence| (id, fence))
    }

    /// Releases a hold, and waits for the answer.
    pub(crate) async fn release(&self, id: RequestId) -> Result<(), Denial> {
        self.update(|machine, now, out| machine.release(now, id, out));
        self.call(id, |machine| machine.released(id)).await
    }

    /// Cancels or releases a request, without waiting for the answer.
    pub(crate) fn drop_request(&self, id: RequestId) {
        self.wakers.unregister(id);
        let mut state = self.state();
        state.update(|machine, now, out| machine.drop_request(now, id, out));
        // If the dropped caller was woken to read, nobody else was.
        self.exchange(&mut state, true);
        self.attend(state);
    }

    /// A hold, as far as is known now.
    pub(crate) fn hold(&self, id: RequestId) -> Option<Hold> {
        let mut state = self.state();
        let hold = *state.machine.hold(id)?;
        if hold.loss.is_some() || hold.until > Moment::now() {
            return Some(hold);
        }
        state.update(|machine, now, out| machine.expire(now, id, out));
        self.exchange(&mut state, false);
        state.machine.hold(id).copied()
    }

    /// Waits until a hold is lost, or will certainly be lost.
    pub(crate) async fn lost(&self, id: RequestId) -> Option<Loss> {
        loop {
            let hold = self.hold(id)?;
            if let Some(loss) = hold.loss {
                return Some(loss);
            }
            tokio::select! {
                () = self.changed(id, |now| *now != hold) => {}
                // Also if no driver runs any more.
                () = reached(hold.until) => {}
            }
        }
    }

    /// Waits until a hold is as wanted, or gone.
    pub(crate) async fn changed(&self, id: RequestId, is_wanted: impl Fn(&Hold) -> bool) {
        poll_fn(|context| {
            let state = self.state();
            match state.machine.hold(id) {
                Some(hold) if !is_wanted(hold) => {
                    self.wakers.watch(id, context.waker());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Waits until every release and cancellation was answered, or another node takes care of it.
    pub(crate) async fn settled(&self) {
        poll_fn(|context| {
            let mut state = self.state();
            state.update(|machine, now, out| machine.hurry(now, out));
            self.exchange(&mut state, true);
            if state.machine.is_settled_here() || state.driver != Driver::Runs {
                return Poll::Ready(());
            }
            state.settling.push(context.waker().clone());
            self.wakers.notify();
            Poll::Pending
        })
        .await;
    }

    /// What another process needs to end the session, once the node has accepted it.
    pub(crate) fn key(&self) -> Option<SessionKey> {
        self.key_of(&self.state())
    }

    fn key_of(&self, state: &State) -> Option<SessionKey> {
        let known = state.machine.known()?;
        Some(SessionKey {
            address: self.node.dialer.address.to_string(),
            session: known.session.clone(),
            secret: known.secret.clone(),
        })
    }

    /// Waits until the session has another key than this one, or is closed.
    pub(crate) async fn rekeyed(&self, known: Option<&SessionKey>) {
        poll_fn(|context| {
            // One lock for both: a session that begins in between would wake nobody.
            let mut state = self.state();
            let key = self.key_of(&state);
            if state.is_closing || (key.is_some() && key.as_ref() != known) {
                return Poll::Ready(());
            }
            state.opening.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Number of answers that came while a caller was spinning.
    pub(crate) fn spin_hits(&self) -> u64 {
        self.state().spin.hits()
    }

    /// Whether the node has accepted the session.
    pub(crate) fn has_begun(&self) -> bool {
        self.state().machine.known().is_some()
    }

    /// Whether a hold was lost with the node's lease, or not renewed in time: the node may serve no
    /// requests until it is a member again.
    pub(crate) fn may_be_outside(&self) -> bool {
        self.state().machine.may_be_outside()
    }

    /// Refuses new requests, because the client continues on another node.
    pub(crate) fn retire(&self, error: ClientError) {
        self.state().machine.retire(Arc::new(error));
        self.close();
    }

    /// Leaves the session for one on another node. Returns what the other node must know.
    pub(crate) fn leave(&self, error: ClientError) -> Option<Left> {
        let mut state = self.state();
        state.cut(None);
        let error = Arc::new(error);
        let left = state.update(|machine, now, out| machine.leave(now, &error, out));
        let left = left.or_else(|| state.left.take());
        self.exchange(&mut state, false);
        drop(state);
        self.close();
        left
    }

    /// Ends the session as soon as everything was answered. No more requests may come.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closing = true;
        state.opening.drain(..).for_each(Waker::wake);
        // Here and not in the driver's task: the program may exit next. If it does not, the driver
        // reads the answers.
        self.say_goodbye(&mut state);
        drop(state);
        self.wakers.notify();
    }

    fn start(self: &Arc<Self>, runtime: &Handle) {
        let mut state = self.state();
        if state.driver == Driver::NotStarted {
            state.driver = Driver::Runs;
            drop(state);
            runtime.spawn(driver::drive(driver::Running::new(self)));
        }
    }

    /// Makes a change on behalf of a caller, and sends what follows.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut Machine<Arc<ClientError>>, Moment, &mut Out) -> T,
    ) -> T {
        let mut state = self.state();
        let result = state.update(change);
        self.exchange(&mut state, false);
        self.attend(state);
        result
    }

    /// Tells the driver that a caller was active.
    fn attend(&self, mut state: MutexGuard<'_, State>) {
        state.calls += 1;
        let is_connected = state.socket.is_some();
        drop(state);
        match is_connected {
            true => self.wakers.calm(),
            false => self.wakers.notify(),
        }
    }

    /// Waits for an answer, and reads the connection meanwhile.
    async fn call<T>(
        &self,
        id: RequestId,
        mut answer: impl FnMut(&mut Machine<Arc<ClientError>>) -> Option<T>,
    ) -> T {
        struct Caller<'s>(&'s Session, RequestId);

        impl Drop for Caller<'_> {
            fn drop(&mut self) {
                self.0.wakers.unregister(self.1);
            }
        }

        let _caller = Caller(self, id);
        poll_fn(|context| {
            // Before the connection is read, so that what arrives later wakes this task.
            self.wakers.register(id, context.waker());
            let mut state = self.state();
            if let Some(answer) = answer(&mut state.machine) {
                return Poll::Ready(answer);
            }
            self.exchange_for(Some(id), &mut state, true);
            if let Some(answer) = answer(&mut state.machine) {
                return Poll::Ready(answer);
            }
            if let Some(answer) = self.spin(id, &mut state, &mut answer) {
                return Poll::Ready(answer);
            }
            if state.driver == Driver::Gone {
                self.abandon(&mut state);
                if let Some(answer) = answer(&mut state.machine) {
                    return Poll::Ready(answer);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Reads the connection again and again until the answer is there, if spinning is worth it and
    /// nobody else waits for this connection.
    fn spin<T>(
        &self,
        id: RequestId,
        state: &mut State,
        answer: &mut impl FnMut(&mut Machine<Arc<ClientError>>) -> Option<T>,
    ) -> Option<T> {
        if state.socket.is_none() || !self.wakers.is_only(id) {
            return None;
        }
        let limit = state.spin.begin()?;
        let begun = Instant::now();
        state.set_direct(true);
        let answered = loop {
            self.exchange_for(Some(id), state, true);
            let answered = answer(&mut state.machine);
            if answered.is_some() || state.socket.is_none() || begun.elapsed() >= limit {
                break answered;
            }
            std::hint::spin_loop();
        };
        state.set_direct(false);
        state.spin.end(answered.is_some());
        if answered.is_some() {
            // The wake-up for what was read may be the only one for what follows: a read through
            // the runtime asks for another.
            self.exchange_for(Some(id), state, true);
        }
        answered
    }

    /// Sends everything that is to be sent, and reads what has arrived if `read` is set. Wakes
    /// those who wait for it.
    fn exchange(&self, state: &mut State, read: bool) {
        self.exchange_for(None, state, read);
    }

    /// Like [`exchange`](Session::exchange), for a caller that checks for its own answer.
    fn exchange_for(&self, caller: Option<RequestId>, state: &mut State, read: bool) {
        let mut context = Context::from_waker(&self.waker);
        if state.is_closing || !state.settling.is_empty() {
            state.update(|machine, now, out| machine.hurry(now, out));
        }
        let result = state.exchange(read, &mut context);
        if let Err(broken) = result {
            state.cut(broken.map(|broken| broken.with(&self.node.dialer)));
            self.wakers.notify();
        }
        if std::mem::take(&mut state.out.is_sooner) {
            self.wakers.notify();
        }
        self.wakers.wake_changed(&mut state.out.changed, caller);
        if !state.settling.is_empty() && state.machine.is_settled_here() {
            state.settling.drain(..).for_each(Waker::wake);
        }
    }

    /// Ends the session at the node, if it has no requests, without waiting for the answer.
    /// Releases without an answer were sent before, and the node handles messages in their order.
    fn say_goodbye(&self, state: &mut State) {
        if !state.machine.has_requests() {
            state.update(|machine, now, out| machine.say_goodbye(now, out));
            self.exchange(state, false);
        }
    }

    /// Gives up all requests, because nothing keeps the session any more.
    fn abandon(&self, state: &mut State) {
        let error = self
            .node
            .dialer
            .broken("the client's runtime was shut down");
        if state.is_closing {
            self.say_goodbye(state);
        }
        if state.machine.is_ending()
            && let Some(socket) = state.socket.take()
        {
            socket.close();
        }
        state.cut(None);
        state.give_up_all(&Arc::new(error));
        self.wakers.wake_changed(&mut state.out.changed, None);
    }
}

/// A request in progress. Dropping it before it is answered cancels it.
struct Pending<'s> {
    session: &'s Session,
    id: RequestId,
    is_answered: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.session.drop_request(self.id);
        }
    }
}
