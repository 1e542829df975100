//! What happens on a node, for whoever watches.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::locks::{End, Fence, Happening, LockName};

/// Something that happened to a lock on this node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When, by the wall clock: for people, never for decisions.
    pub at: SystemTime,
    /// The node.
    pub node: String,
    /// The lock.
    pub lock: String,
    /// Who, as they call themselves.
    pub owner: String,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// Somebody began to wait.
    Waiting,
    /// Somebody got the lock.
    Acquired {
        /// The hold's fence.
        fence: Fence,
        /// After how long.
        waited: Duration,
    },
    /// A holder gave the lock back.
    Released {
        /// The hold's fence.
        fence: Fence,
        /// After how long.
        held: Duration,
    },
    /// A holder lost the lock.
    Lost {
        /// The hold's fence.
        fence: Fence,
        /// Why.
        reason: End,
        /// After how long.
        held: Duration,
    },
}

impl What {
    /// Its name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            What::Waiting => "waiting",
            What::Acquired { .. } => "acquired",
            What::Released { .. } => "released",
            What::Lost { .. } => "lost",
        }
    }
}

impl Event {
    /// What watchers hear of a happening, if anything.
    pub(super) fn of(happening: &Happening, node: &str) -> Option<Event> {
        let event = |lock: &LockName, owner: &str, what| Event {
            at: SystemTime::now(),
            node: node.to_owned(),
            lock: lock.to_string(),
            owner: owner.to_owned(),
            what,
        };
        match happening {
            Happening::Waiting { lock, owner, .. } => Some(event(lock, owner, What::Waiting)),
            Happening::Granted {
                grant,
                owner,
                waited,
                ..
            } => {
                let (fence, waited) = (grant.fence, *waited);
                Some(event(&grant.lock, owner, What::Acquired { fence, waited }))
            }
            Happening::Ended {
                lock,
                owner,
                fence,
                end,
                held,
                ..
            } => {
                let (fence, reason, held) = (*fence, *end, *held);
                let what = match end.is_loss() {
                    true => What::Lost {
                        fence,
                        reason,
                        held,
                    },
                    false => What::Released { fence, held },
                };
                Some(event(lock, owner, what))
            }
            Happening::Denied { .. } => None,
        }
    }
}
