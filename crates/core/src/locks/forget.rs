//! How locks that are idle everywhere are forgotten.
//!
//! Where each part of an algorithm [rests alone](soloist_algorithms::Machine::rests_alone), each node
//! drops its part by itself, without a message. Everywhere else the parts that have to do with each
//! other are dropped together, by the lock's *home*, which follows from its name:
//!
//! 1. A node that has not used a lock for a while, and whose part is idle, *offers* it to the home.
//!    From then on the part stands still. Messages for it are held back, own waiters queue.
//! 2. Whoever needs the part again *withdraws* the offer. The home takes it out and says *resume*;
//!    or it has decided already, and its *forget* is the answer. Each offer has exactly one answer.
//! 3. When the offers balance, the home says *forget* to all that offered, with the highest fence.
//!    They drop their parts, or begin new ones if something was held back or somebody waits.
//!
//! An offer carries the part's *balance*: a weight for each message it sent, less one for each it
//! received, where the weight is a 64-bit hash of sender and receiver. Let D be the nodes that offered.
//! Since they stand still, the sum over D is 0 exactly if every message that a node of D sent was
//! received in D and vice versa (otherwise by a chance of 1 in 2^64). Then no message of D is under way,
//! and nobody outside D has heard of what D did. So the whole is as if D had done nothing yet: a state that
//! the algorithm reaches from its beginning, without D. That is what *forget* makes true, so whatever
//! was proved of the algorithm goes on to hold. Nodes that never heard of the lock need not be asked, and what
//! is under way from them to D finds a new part, as in that run.
//!
//! Fences: if D entered, nobody outside could have entered since without hearing from D (both
//! together would break mutual exclusion), and all of D now have the highest fence as their floor.
//!
//! A lock that was held when the epoch began has another beginning, and nodes that were not asked would build
//! their parts from that. So the home asks everybody to offer it, once its first holder has.
//!
//! Cost: an offer and a forget for each node that has to do with the lock, except home; nothing while it is
//! used. A withdrawal costs two messages, and a round trip to the home before the part goes on. An epoch change
//! ends all offers: it drops all parts anyway. Links keep the order of what one node says to another, so the
//! words of different offers cannot be confused.
//!
//! A member that lies in its balance can have a lock forgotten that is in use, as it could also forge a
//! token: no algorithm here withstands such members. Nothing that it says makes a node panic or grow
//! without bound.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use soloist_algorithms::{NodeId, NodeSet, Phase};

use super::drive::lock_of;
use super::lock::Lock;
use super::table::Context;
use super::wire::LockMessage;
use super::{Effects, ReceiveError, Table, wire};
use crate::mutant::Mutant;
use soloist_api::Moment;
use soloist_api::{Fence, LockName};

/// How much is held back for all offered locks together. A round trip's messages fit many times.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What a message between two nodes weighs in the balance of a lock.
pub(super) fn weight(from: NodeId, to: NodeId) -> u64 {
    // The finalizer of SplitMix64.
    let channel = (from.index() as u64) << 32 | to.index() as u64;
    let mixed = channel.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// What nodes and a lock's home say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    /// To the home: this part is idle and stands still. With its balance.
    Offer(u64),
    /// To the home: this part is needed again. With the balance that was offered.
    Withdraw(u64),
    /// From the home: the offer does not count any more.
    Resume,
    /// From the home: all that offered drop their parts.
    Forget,
    /// From the home: offer it, too, if it was never used.
    Ask,
}

impl Word {
    fn encode(self) -> ([u8; 9], usize) {
        let (kind, balance) = match self {
            Word::Offer(balance) => (0, Some(balance)),
            Word::Withdraw(balance) => (1, Some(balance)),
            Word::Resume => (2, None),
            Word::Forget => (3, None),
            Word::Ask => (4, None),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&balance.unwrap_or(0).to_le_bytes());
        (bytes, if balance.is_some() { 9 } else { 1 })
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let (&kind, balance) = payload.split_first()?;
        let number = || Some(u64::from_le_bytes(balance.try_into().ok()?));
        match kind {
            0 => Some(Word::Offer(number()?)),
            1 => Some(Word::Withdraw(number()?)),
            2 if balance.is_empty() => Some(Word::Resume),
            3 if balance.is_empty() => Some(Word::Forget),
            4 if balance.is_empty() => Some(Word::Ask),
            _ => None,
        }
    }
}

/// This node offered a lock to its home.
#[derive(Clone, Default, Hash)]
pub(super) struct Offer {
    is_withdrawn: bool,
    /// Messages that arrived meanwhile, with their senders, in order.
    held: Vec<(NodeId, Box<[u8]>)>,
}

/// The offers that were made to this node, for the locks whose home it is.
#[derive(Clone, Default)]
pub(super) struct Offers(HashMap<LockName, Gathered>);

#[derive(Clone, Hash)]
struct Gathered {
    nodes: NodeSet,
    balance: u64,
    fence: Fence,
    /// Everybody was asked to offer it.
    all_asked: bool,
}

impl Offers {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives memory back that many locks have left.
    pub fn shrink(&mut self) {
        if self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to(self.0.len() * 2);
        }
    }

    /// Takes a node's offer out. Tells whether it was there.
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

impl Hash for Offers {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut offers: Vec<_> = self.0.iter().collect();
        offers.sort_unstable_by_key(|(name, _)| *name);
        offers.hash(hasher);
    }
}

impl Context {
    /// This node, and the lock's home.
    fn me_and_home(&self, name: &LockName) -> (NodeId, NodeId) {
        let current = self.current.as_ref().expect("offers go with their epoch");
        (current.epoch.me, current.home(name))
    }

    fn say(&mut self, to: NodeId, word: Word, fence: Fence, name: &LockName, out: &mut Effects) {
        let current = self.current.as_ref().expect("offers go with their epoch");
        let (bytes, len) = word.encode();
        let epoch = current.epoch.number;
        out.send(to, wire::IDLE, epoch, fence, name, &bytes[..len]);
        self.counts.forgetting += 1;
    }

    /// Keeps what outlives a lock that is forgotten.
    fn outlive(&mut self, name: &LockName, lock: &Lock) {
        let machine = lock.machine.as_ref().expect("it takes part in the epoch");
        self.clock = self.clock.max(machine.clock());
        self.floor = self.floor.max(lock.fence);
        let current = self.current.as_mut().expect("it takes part in the epoch");
        // Who was inside at first has left.
        current.epoch.inside.forget(name);
    }
}

impl Table {
    /// Looks at a lock that may be idle: forgets it if it rests alone, else offers it to its home.
    pub(super) fn look_after(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let context = &mut self.context;
        let lock = self.locks.get_mut(name).expect("what is listed is there");
        let machine = lock.machine.as_ref().expect("it takes part in the epoch");
        let is_idle = lock.is_unused() && machine.phase() == Phase::Idle;
        if is_idle && now.since(lock.touched) < context.idle.after() {
            context.idle.add(now, name.clone());
            return;
        }
        // Whatever comes of it makes the lock be looked at again.
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
        let lock = self.locks.get_mut(name).expect("what is offered is there");
        lock.offer = Some(Box::default());
        let (balance, fence) = (lock.balance, lock.fence);
        if home == me {
            self.gather(now, me, name, balance, fence, out);
        } else {
            self.context
                .say(home, Word::Offer(balance), fence, name, out);
        }
    }

    /// A lock that was offered is needed. Tells whether it is open again; else the home's word will open it.
    pub(super) fn reopen(&mut self, name: &LockName, out: &mut Effects) -> bool {
        let (me, home) = self.context.me_and_home(name);
        let lock = self.locks.get_mut(name).expect("what is offered is there");
        let Some(offer) = &mut lock.offer else {
            return true;
        };
        if Mutant::OfferNotWithdrawn.planted() {
            return true;
        }
        if home == me {
            lock.offer = None;
            self.context.offers.withdraw(name, me, lock.balance);
            return true;
        }
        if !std::mem::replace(&mut offer.is_withdrawn, true) {
            let word = Word::Withdraw(lock.balance);
            self.context.say(home, word, lock.fence, name, out);
        }
        false
    }

    /// A message for a lock that this node has offered.
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
        let lock = self.locks.get_mut(name).expect("what is offered is there");
        let offer = lock.offer.as_mut().expect("it is offered");
        offer.held.push((from, bytes.into()));
        self.context.held_bytes += bytes.len();
        Ok(())
    }

    /// A peer's word on a lock that is idle there.
    pub(super) fn hear_idle(
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
        let Some(word) = Word::decode(message.payload) else {
            return refuse("a word that there is not");
        };
        let nodes = self
            .context
            .current
            .as_ref()
            .map_or(0, |current| current.epoch.nodes);
        if from.index() >= nodes {
            return refuse("its sender is no member");
        }
        let (me, home) = self.context.me_and_home(name);
        let is_offered = |table: &Table| {
            let lock = table.locks.get(name);
            lock.is_some_and(|lock| lock.offer.is_some())
        };
        match word {
            Word::Offer(_) | Word::Withdraw(_) if home != me => {
                return refuse("it is offered here, and this is not its home");
            }
            Word::Resume | Word::Forget | Word::Ask if home != from => {
                return refuse("it is not the sender's to forget");
            }
            Word::Resume | Word::Forget if !is_offered(self) => {
                return refuse("it was not offered");
            }
            Word::Offer(balance) => {
                if !self.gather(now, from, name, balance, message.fence, out) {
                    return refuse("it was offered before");
                }
            }
            Word::Withdraw(balance) => {
                // If it is not there, forget or resume are on their way.
                if self.context.offers.withdraw(name, from, balance) {
                    self.context
                        .say(from, Word::Resume, message.fence, name, out);
                }
            }
            Word::Resume => self.reopened(now, name, out),
            Word::Forget => self.forget(now, name, message.fence, out),
            Word::Ask => self.offer_unused(now, name, out),
        }
        Ok(())
    }

    /// Takes an offer, and decides. Tells whether it was a new one.
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
        let current = context
            .current
            .as_ref()
            .expect("offers go with their epoch");
        let (nodes, me) = (current.epoch.nodes, current.epoch.me);
        let is_full = context.offers.0.len() >= context.peers_locks_max();
        if is_full && !context.offers.0.contains_key(name) {
            if from == me {
                self.reopened(now, name, out);
            } else {
                context.say(from, Word::Resume, fence, name, out);
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
        if gathered.balance == 0 || Mutant::ForgetUnbalanced.planted() {
            self.decide(now, name, out);
        }
        true
    }

    /// The offers balance: all that offered forget the lock. If somebody was inside when the epoch began, all nodes do.
    fn decide(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let context = &mut self.context;
        let current = context
            .current
            .as_ref()
            .expect("offers go with their epoch");
        let (nodes, me) = (current.epoch.nodes, current.epoch.me);
        let first = current.inside(name);
        let gathered = context.offers.0.get_mut(name).expect("it was just offered");
        if let Some(first) = first
            && gathered.nodes.len() < nodes
            && !Mutant::ForgetNotByAll.planted()
        {
            if gathered.nodes.contains(first) && !gathered.all_asked {
                gathered.all_asked = true;
                let Gathered {
                    nodes: has, fence, ..
                } = gathered.clone();
                for node in NodeId::all(nodes).filter(|node| !has.contains(*node) && *node != me) {
                    context.say(node, Word::Ask, fence, name, out);
                }
                self.offer_unused(now, name, out);
            }
            return;
        }
        let Gathered { nodes, fence, .. } = context.offers.0.remove(name).expect("it is there");
        for node in nodes.iter().filter(|node| *node != me) {
            context.say(node, Word::Forget, fence, name, out);
        }
        if nodes.contains(me) {
            self.forget(now, name, fence, out);
        }
    }

    /// Makes this node's part of a lock and offers it. If it is there, it is offered when its time comes.
    fn offer_unused(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        // If there are too many, the lock is kept until the next epoch.
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

    /// The home has decided: the part is dropped, or begins anew if it is needed.
    fn forget(&mut self, now: Moment, name: &LockName, fence: Fence, out: &mut Effects) {
        let Table { locks, context } = self;
        let lock = locks.get_mut(name).expect("what is offered is there");
        if !Mutant::FenceForgotten.planted() {
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

    /// The home has taken the offer out: the part goes on as it is.
    fn reopened(&mut self, now: Moment, name: &LockName, out: &mut Effects) {
        let lock = self.locks.get_mut(name).expect("what is offered is there");
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
            // Refused, it changes nothing; and its sender's link has long gone on.
            let _ = self.receive(now, from, &bytes, out);
        }
    }
}

impl Context {
    /// Ends an offer. Tells what was held back.
    fn let_go(&mut self, lock: &mut Lock) -> Vec<(NodeId, Box<[u8]>)> {
        let held = lock.offer.take().map_or_else(Vec::new, |offer| offer.held);
        let bytes: usize = held.iter().map(|(_, bytes)| bytes.len()).sum();
        self.held_bytes -= bytes;
        held
    }
}
