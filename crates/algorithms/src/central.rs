//! A central coordinator: the baseline for all other algorithms.
//!
//! **Channels**: fifo (a RELEASE must not be overtaken by the same node's next REQUEST).
//! **Cost**: 3 messages per entry (none for the coordinator's own), response time 2T,
//! synchronisation delay 2T.
//!
//! A node sends its request to the coordinator, which grants one request at a time, first come,
//! first served. The coordinator is the node at home.
//!
//! **Invariants**: only the coordinator has a queue. While no grant is outstanding, its queue is
//! empty.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, NodeSet, Outbox,
    PHASE, Phase, Place, Role, Start, Value, VariantSet, Violation,
};

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Central {
    place: Place<Complete>,
    coordinator: NodeId,
    phase: Phase,
    /// At the coordinator: the node that has the grant.
    granted: Option<NodeId>,
    /// At the coordinator: the nodes that wait, in order of arrival.
    queue: VecDeque<NodeId>,
    /// At the coordinator: the nodes that have the grant or wait. Empty elsewhere.
    asking: NodeSet,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum CentralMessage {
    /// From a node to the coordinator: requests the critical section.
    Request,
    /// From the coordinator: the receiver may enter.
    Grant,
    /// To the coordinator: the sender has left.
    Release,
}

use CentralMessage::{Grant, Release, Request};

impl Message for CentralMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "GRANT", "RELEASE"];

    fn kind(&self) -> usize {
        *self as usize
    }

    fn examples() -> Vec<Self> {
        vec![Request, Grant, Release]
    }
}

impl fmt::Display for CentralMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const GRANTED: Field =
    Field::new("granted", FieldKind::Node, "the node that has the grant").role(Role::Granted);
const QUEUE: Field = Field::new(
    "queue",
    FieldKind::Queue,
    "nodes that wait, in order of arrival",
)
.role(Role::Queue);

impl Algorithm for Central {
    type Message = CentralMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "central",
        aliases: &[],
        paper: "a central coordinator, the yardstick",
        channels: Channels::Fifo,
        variants: &[],
        presets: &[],
    };

    fn new(config: &Config<Complete>) -> Self {
        let me = config.place.me;
        let coordinator = config.start.home;
        let mut asking = NodeSet::new(if me == coordinator {
            config.place.nodes()
        } else {
            0
        });
        if me == coordinator {
            asking.extend(config.start.inside);
        }
        Central {
            place: config.place.clone(),
            coordinator,
            phase: config.start.phase(me),
            granted: config.start.inside.filter(|_| me == coordinator),
            queue: VecDeque::new(),
            asking,
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        if self.is_coordinator() {
            self.asking.insert(self.place.me);
            self.queue.push_back(self.place.me);
            self.grant_next(out);
        } else {
            out.send(self.coordinator, Request);
            if Mutant::CentralAsksTwice.planted() {
                out.send(self.coordinator, Request);
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        match message {
            Request | Release if !self.is_coordinator() => {
                return refuse("this node is not the coordinator");
            }
            Request => {
                if !self.asking.insert(from) {
                    if Mutant::CentralAsksTwice.planted() {
                        return Ok(());
                    }
                    return refuse("its previous request has not been released");
                }
                self.queue.push_back(from);
                self.grant_next(out);
            }
            Release => {
                if self.granted != Some(from) {
                    return refuse("it was not granted the critical section");
                }
                self.withdraw_grant(from, out);
            }
            Grant => {
                if from != self.coordinator || self.phase != Phase::Waiting {
                    return refuse("no grant is expected from it");
                }
                self.enter(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        if self.is_coordinator() {
            self.withdraw_grant(self.place.me, out);
        } else {
            out.send(self.coordinator, Release);
        }
        Ok(())
    }

    fn rests_alone(_variants: VariantSet, _start: Start) -> bool {
        true
    }

    fn fields(&self, fields: &mut dyn Fields) {
        let coordinates = self.is_coordinator();
        fields.add(&PHASE, self.phase.into());
        let granted = Value::node_or(self.granted, "none");
        fields.add(&GRANTED, granted.only_if(coordinates));
        fields.add(&QUEUE, Value::from(&self.queue).only_if(coordinates));
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if !self.is_coordinator() && (self.granted.is_some() || !self.queue.is_empty()) {
            return Err("a node that is not the coordinator stores grants");
        }
        if self.asking.len() != self.queue.len() + usize::from(self.granted.is_some()) {
            return Err("the requesters do not match the waiting and granted nodes");
        }
        if self.granted.is_none() && !self.queue.is_empty() {
            return Err("a node waits although none is inside");
        }
        Ok(())
    }
}

impl Central {
    fn is_coordinator(&self) -> bool {
        self.place.me == self.coordinator
    }

    fn grant_next(&mut self, out: &mut Outbox<CentralMessage>) {
        if self.granted.is_some() && !Mutant::CentralGrantsTwice.planted() {
            return;
        }
        self.granted = if Mutant::CentralLifo.planted() {
            self.queue.pop_back()
        } else {
            self.queue.pop_front()
        };
        match self.granted {
            Some(next) if next == self.place.me => self.enter(out),
            Some(next) => out.send(next, Grant),
            None => {}
        }
    }

    fn withdraw_grant(&mut self, from: NodeId, out: &mut Outbox<CentralMessage>) {
        self.granted = None;
        self.asking.remove(from);
        if !Mutant::CentralForgetsQueue.planted() {
            self.grant_next(out);
        }
    }

    fn enter(&mut self, out: &mut Outbox<CentralMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }
}
