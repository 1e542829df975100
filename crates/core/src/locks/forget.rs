//! Forgetting locks that are idle everywhere.
//!
//! If an algorithm's state machines [rest alone](soloist_algorithms::Machine::rests_alone), each
//! node drops its own machine without sending a message. For all other algorithms, the machines
//! that have exchanged messages are dropped together. The lock's *home*, a node determined by the
//! lock's name, coordinates this:
//!
//! 1. A node that has not used a lock for a while, and whose machine is idle, *offers* it to the
//!    home. From then on the machine is suspended. Messages for it are held back, and the node's
//!    own waiters queue.
//! 2. A node that needs its machine again *withdraws* the offer. The home removes the offer and
//!    answers *resume*; or it has already decided, and its *forget* is the answer. Each offer has
//!    exactly one answer.
//! 3. When the offers balance, the home sends *forget*, with the highest fence, to all nodes that
//!    offered. They drop their machines, or create new ones if messages were held back or a waiter
//!    is queued.
//!
//! An offer carries the machine's *balance*: the total weight of the messages that it sent, minus
//! that of the messages that it received. The weight of a message is a 64-bit hash of its sender
//! and receiver. Let D be the set of nodes that offered. Since their machines are suspended, the
//! sum over D is 0 exactly if every message that a node of D sent was received in D, and vice versa
//! (except with a probability of 1 in 2^64). Then no message of D is in flight, and no node outside
//! D has received anything from D. So the global state is as if D had done nothing yet: a state
//! that the algorithm reaches from its initial state, without D. *Forget* establishes exactly this
//! state, so everything that was proved about the algorithm continues to hold. Nodes that never
//! heard of the lock need not be asked. A message in flight from outside D to D meets a new
//! machine, as in that run.
//!
//! Fences: if a node of D entered, no node outside D can have entered since without hearing from D
//! (otherwise both could be inside at the same time, against mutual exclusion). And all nodes of D
//! now have the highest fence as their floor.
//!
//! A lock that was held when the epoch began has another initial state, and nodes that were not
//! asked would create their machines from that one. So the home asks every node to offer the lock,
//! once its first holder has offered it.
//!
//! Cost: one offer and one forget per node that has a machine for the lock, except the home;
//! nothing while the lock is used. A withdrawal costs two messages, and a round trip to the home
//! before the machine continues. A change of epoch ends all offers, since it drops all machines
//! anyway. Links deliver messages in order, so messages of different offers cannot be confused.
//!
//! A member that lies about its balance can cause a lock that is in use to be forgotten, just as it
//! could forge a token: no algorithm here tolerates such members. Nothing that it sends makes a
//! node panic or grow without bound.

use soloist_algorithms::{NodeId, NodeSet, Phase};

use super::drive::lock_of;
use super::epoch::Current;
use super::idle_message::IdleMessage;
use super::lock::Lock;
use super::table::Context;
use super::wire::LockMessage;
use super::{Effects, ReceiveError, Table, wire};
use crate::lookup_map::LookupMap;
use crate::mutant::Mutant;
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// Maximum total size of messages held back for all offered locks. The messages of a round trip fit
/// many times over.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Weight of a message between two nodes in the balance of a lock.
pub(super) fn weight(from: NodeId, to: NodeId) -> u64 {
    // The finalizer of SplitMix64.
    let channel = (from.index() as u64) << 32 | to.index() as u64;
    let mixed = channel.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// An offer of this node to a lock's home.
#[derive(Clone, Default, Hash)]
pub(super) struct Offer {
    is_withdrawn: bool,
    /// Messages held back since the offer, with their senders, in order.
    held: Vec<(NodeId, Box<[u8]>)>,
}

/// The offers made to this node, for the locks whose home it is.
#[derive(Clone, Default, Hash)]
pub(super) struct Offers(LookupMap<LockName, Gathered>);

#[derive(Clone, Hash)]
struct Gathered {
    nodes: NodeSet,
    balance: u64,
    fence: Fence,
    /// All nodes were asked to offer it.
    all_asked: bool,
}

impl Offers {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns memory that is no longer needed.
    pub(super) fn shrink(&mut self) {
        self.0.shrink();
    }

    /// Removes a node's offer. Returns whether there was one.
    fn withdraw(&mut self, name: &LockName, node: NodeId, balance: u64) -> bool {
        let Some(gathered) = self.0.get_mut(name) else {
            return false;
        };
        if !gathered.nodes.remove(node) {
            return false;
        }
        gathered.balance = gathered.balance.wrapping_sub(balance);
        if gathered.nodes.is_empty() {
            self.0.remove(name);
        }
        true
    }
}

impl Context {
    /// The current epoch. Offers exist only within one.
    fn epoch_of_offers(&self) -> &Current {
        let current = self.current.as_ref();
        current.expect("offers need an epoch")
    }

    /// This node, and the lock's home.
    fn me_and_home(&self, name: &LockName) -> (NodeId, NodeId) {
        let current = self.current.as_ref().expect("offers need an epoch");
        (current.epoch.me, current.home(name))
    }

    fn send_idle(
        &mut self,
        to: NodeId,
        message: IdleMessage,
        fence: Fence,
        name: &LockName,
        out: &mut Effects,
    ) {
        let current = self.current.as_ref().expect("offers need an epoch");
        let (bytes, len) = message.encode();
        let (to, epoch) = (current.epoch.member(to), current.epoch.number);
        out.send(to, wire::IDLE, epoch, fence, name, &bytes[..len]);
        self.counts.forgetting += 1;
    }

    /// Keeps the state that must outlive a forgotten lock.
    fn outlive(&mut self, name: &LockName, lock: &Lock) {
        let machine = lock.machine.as_ref().expect("the lock has a machine");
        self.clock = self.clock.max(machine.clock());
        self.floor = self.floor.max(lock.fence);
        let current = self.current.as_mut().expect("the lock has a machine");
        current.forget(name);
    }
}

impl Table {
    /// Checks a lock that may be idle: forgets it if it rests alone, otherwise offers it to its
    /// home.
    pub(super) fn look_after(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let context = &mut self.context;
        let lock = self.locks.get_mut(name).expect("listed locks exist");
        let machine = lock.machine.as_ref().expect("the lock has a machine");
        let is_idle = lock.is_unused() && machine.phase() == Phase::Idle;
        if is_idle && now.since(lock.touched) < context.idle.after() {
            context.idle.add(now, name.clone());
            return;
        }
        // Any further event lists the lock again.
        lock.is_listed = false;
        if !is_idle || lock.stands_back.is_some() || lock.offer.is_some() {
            return;
        }
        if !machine.rests_alone() {
            self.offer(now, name, out);
        } else if machine.is_at_rest() {
            context.outlive(name, lock);
            self.locks.remove(name);
        }
    }

    fn offer(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let (me, home) = self.context.me_and_home(name);
        let lock = self.locks.get_mut(name).expect("offered locks exist");
        lock.offer = Some(Box::default());
        let (balance, fence) = (lock.balance, lock.fence);
        if home == me {
            self.gather(now, me, name, balance, fence, out);
        } else {
            self.context
                .send_idle(home, IdleMessage::Offer(balance), fence, name, out);
        }
    }

    /// Reopens an offered lock that is needed. Returns whether it is open; if not, the home's
    /// answer will open it.
    pub(super) fn reopen(&mut self, name: &LockName, out: &mut Effects) -> bool {
        let (me, home) = self.context.me_and_home(name);
        let lock = self.locks.get_mut(name).expect("offered locks exist");
        let Some(offer) = &mut lock.offer else {
            return true;
        };
        if self.context.tuning.has(Mutant::OfferNotWithdrawn) {
            return true;
        }
        if home == me {
            lock.offer = None;
            self.context.offers.withdraw(name, me, lock.balance);
            return true;
        }
        if !std::mem::replace(&mut offer.is_withdrawn, true) {
            let message = IdleMessage::Withdraw(lock.balance);
            self.context.send_idle(home, message, lock.fence, name, out);
        }
        false
    }

    /// Handles a message for a lock that this node has offered.
    pub(super) fn receive_offered(
        &mut self,
        now: Moment,
        from: NodeId,
        name: &LockName,
        bytes: &[u8],
        out: &mut Effects,
    ) -> Result<(), ReceiveError> {
        if self.context.held_bytes + bytes.len() > HELD_BYTES_MAX {
            return Err(ReceiveError::Held {
                lock: name.clone(),
                most: HELD_BYTES_MAX,
            });
        }
        if self.reopen(name, out) {
            return self.receive(now, from, bytes, out);
        }
        let lock = self.locks.get_mut(name).expect("offered locks exist");
        let offer = lock.offer.as_mut().expect("the lock is offered");
        offer.held.push((from, bytes.into()));
        self.context.held_bytes += bytes.len();
        Ok(())
    }

    /// Handles a peer's message about an idle lock.
    pub(super) fn receive_idle(
        &mut self,
        now: Moment,
        from: NodeId,
        message: &LockMessage<'_>,
        out: &mut Effects,
    ) -> Result<(), ReceiveError> {
        let name = &message.name;
        let refuse = |reason| {
            let lock = name.clone();
            Err(ReceiveError::Idle { lock, reason })
        };
        let Some(idle) = IdleMessage::decode(message.payload) else {
            return refuse("unknown message");
        };
        let nodes = self
            .context
            .current
            .as_ref()
            .map_or(0, |current| current.epoch.nodes());
        if from.index() >= nodes {
            return refuse("the sender is not a member");
        }
        let (me, home) = self.context.me_and_home(name);
        let is_offered = |table: &Table| {
            let lock = table.locks.get(name);
            lock.is_some_and(|lock| lock.offer.is_some())
        };
        match idle {
            IdleMessage::Offer(_) | IdleMessage::Withdraw(_) if home != me => {
                return refuse("it was offered to this node, which is not its home");
            }
            IdleMessage::Resume | IdleMessage::Forget | IdleMessage::Ask if home != from => {
                return refuse("the sender is not its home");
            }
            IdleMessage::Resume | IdleMessage::Forget if !is_offered(self) => {
                return refuse("it was not offered");
            }
            IdleMessage::Offer(balance) => {
                if !self.gather(now, from, name, balance, message.fence, out) {
                    return refuse("it was offered before");
                }
            }
            IdleMessage::Withdraw(balance) => {
                // If there is no offer, a forget or a resume is already in flight.
                if self.context.offers.withdraw(name, from, balance) {
                    self.context
                        .send_idle(from, IdleMessage::Resume, message.fence, name, out);
                }
            }
            IdleMessage::Resume => self.reopened(now, name, out),
            IdleMessage::Forget => self.forget(now, name, message.fence, out),
            IdleMessage::Ask => self.offer_unused(now, name, out),
        }
        Ok(())
    }

    /// Records an offer and decides if the offers balance. Returns whether the offer was new.
    fn gather(
        &mut self,
        now: Moment,
        from: NodeId,
        name: &LockName,
        balance: u64,
        fence: Fence,
        out: &mut Effects,
    ) -> bool {
        let context = &mut self.context;
        let current = context.epoch_of_offers();
        let (nodes, me) = (current.epoch.nodes(), current.epoch.me);
        let is_full = context.offers.0.len() >= context.peers_locks_max();
        if is_full && !context.offers.0.contains_key(name) {
            if from == me {
                self.reopened(now, name, out);
            } else {
                context.send_idle(from, IdleMessage::Resume, fence, name, out);
            }
            return true;
        }
        let gathered = context.offers.0.entry(name.clone());
        let gathered = gathered.or_insert_with(|| Gathered {
            nodes: NodeSet::new(nodes),
            balance: 0,
            fence,
            all_asked: false,
        });
        if !gathered.nodes.insert(from) {
            return false;
        }
        gathered.balance = gathered.balance.wrapping_add(balance);
        gathered.fence = gathered.fence.max(fence);
        if gathered.balance == 0 || context.tuning.has(Mutant::ForgetUnbalanced) {
            self.decide(now, name, out);
        }
        true
    }

    /// The offers balance, so all nodes that offered forget the lock. If a node was inside when the
    /// epoch began, all nodes must have offered first.
    fn decide(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let context = &mut self.context;
        let current = context.epoch_of_offers();
        let (nodes, me) = (current.epoch.nodes(), current.epoch.me);
        let first = current.inside(name);
        let gathered = context.offers.0.get_mut(name).expect("it was just added");
        if let Some(first) = first
            && gathered.nodes.len() < nodes
            && !context.tuning.has(Mutant::ForgetNotByAll)
        {
            if gathered.nodes.contains(first) && !gathered.all_asked {
                gathered.all_asked = true;
                let Gathered {
                    nodes: has, fence, ..
                } = gathered.clone();
                for node in NodeId::all(nodes).filter(|node| !has.contains(*node) && *node != me) {
                    context.send_idle(node, IdleMessage::Ask, fence, name, out);
                }
                self.offer_unused(now, name, out);
            }
            return;
        }
        let Gathered { nodes, fence, .. } = context.offers.0.remove(name).expect("it was found");
        for node in nodes.iter().filter(|node| *node != me) {
            context.send_idle(node, IdleMessage::Forget, fence, name, out);
        }
        if nodes.contains(me) {
            self.forget(now, name, fence, out);
        }
    }

    /// Creates this node's machine for a lock and offers it. A machine that exists already is
    /// offered once it has been idle for long enough.
    fn offer_unused(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        // If there are too many locks, this one is kept until the next epoch.
        let most = self.context.peers_locks_max();
        let lock = self.locks.get(name);
        if lock.is_some_and(|lock| !lock.is_left_over()) || self.locks.len() >= most {
            return;
        }
        let lock = lock_of(&mut self.locks, &mut self.context, name, most, now, out);
        if lock.is_ok_and(|lock| lock.is_idle()) {
            self.offer(now, name, out);
        } else {
            self.settle(now, name, out);
        }
    }

    /// The home has decided: the machine is dropped, or replaced by a new one if it is needed.
    fn forget(&mut self, now: Moment, name: &LockName, fence: Fence, out: &mut Effects) {
        let Table { locks, context } = self;
        let lock = locks.get_mut(name).expect("offered locks exist");
        if !context.tuning.has(Mutant::FenceForgotten) {
            lock.fence = lock.fence.max(fence);
            context.outlive(name, lock);
        }
        let held = context.let_go(lock);
        if lock.is_unused() && held.is_empty() {
            locks.remove(name);
            return;
        }
        lock.fence = context.floor;
        lock.balance = 0;
        context.begin(now, name, lock, out);
        self.go_on(now, name, held, out);
    }

    /// The home has removed the offer: the machine continues as it is.
    fn reopened(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let lock = self.locks.get_mut(name).expect("offered locks exist");
        let held = self.context.let_go(lock);
        self.go_on(now, name, held, out);
    }

    fn go_on(
        &mut self,
        now: Moment,
        name: &LockName,
        held: Vec<(NodeId, Box<[u8]>)>,
        out: &mut Effects,
    ) {
        self.settle(now, name, out);
        for (from, bytes) in held {
            // If it is refused, nothing changes, and its sender's link has moved on long ago.
            let _ = self.receive(now, from, &bytes, out);
        }
    }
}

impl Context {
    /// Ends an offer. Returns the messages that were held back.
    fn let_go(&mut self, lock: &mut Lock) -> Vec<(NodeId, Box<[u8]>)> {
        let held = lock.offer.take().map_or_else(Vec::new, |offer| offer.held);
        let bytes: usize = held.iter().map(|(_, bytes)| bytes.len()).sum();
        self.held_bytes -= bytes;
        held
    }
}
