//! What the tasks of a node's links share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::roster::Roster;
use super::settings::{Limits, Peer, Settings};
use super::status::{Notes, Totals};
use super::{Handler, LinkChange, dial};

/// A panic elsewhere must not stop the other links: no state is left half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Shared {
    pub settings: Settings,
    /// Locked for a moment only, also when it changes.
    roster: RwLock<Arc<Roster>>,
    /// Held by whoever makes the next roster.
    changing: Mutex<()>,
    pub handler: Arc<dyn Handler>,
    pub totals: Totals,
    pub notes: Notes,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    pub runtime: Handle,
    /// Some peer's buffer was found full.
    pub fulls: Notify,
    /// Some peer has acknowledged everything, or is gone.
    pub drained: Notify,
}

impl Shared {
    pub fn new(settings: Settings, handler: Arc<dyn Handler>, runtime: Handle) -> Self {
        Self {
            settings,
            roster: RwLock::default(),
            changing: Mutex::default(),
            handler,
            totals: Totals::default(),
            notes: Notes::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime,
            fulls: Notify::new(),
            drained: Notify::new(),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// The roster, to be looked at for a moment: meanwhile it does not change.
    pub fn roster(&self) -> RwLockReadGuard<'_, Arc<Roster>> {
        self.roster.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another list of peers takes the place of the last one. They were checked.
    pub fn change_roster(self: &Arc<Self>, incarnation: u64, peers: Vec<Peer>) {
        let _changing = lock(&self.changing);
        let before = self.roster().clone();
        let me = self.settings.endpoint.name.as_str();
        let next = before.next(incarnation, peers, me, self.limits(), &self.stop);
        let next = Arc::new(next);
        {
            let mut roster = self.roster.write().unwrap_or_else(PoisonError::into_inner);
            *roster = next.clone();
        }
        for peer in before.gone_from(&next) {
            peer.retire();
        }
        for peer in next.gone_from(&before) {
            if peer.name != me {
                let link = dial::keep_link(self.clone(), peer.clone());
                self.tasks.spawn_on(link, &self.runtime);
            }
        }
        self.drained.notify_one();
    }
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It could not be made, or it broke.
    Failed(String),
    /// One of the two nodes does not want it.
    Refused(String),
    /// Something came over it that no correct peer sends.
    Hostile(String),
    /// The peer stops, or has no links with this node any more.
    Goodbye(String),
    /// The receiver does not know the sender, or this life of it: not yet, or no more.
    Later(String),
    /// This node wants it no more: it stops, has another list of peers, or a newer connection.
    Ours,
}

impl End {
    /// What the handler is told of a link that ended so.
    pub fn change(self) -> Option<LinkChange> {
        match self {
            End::Failed(reason) | End::Hostile(reason) => Some(LinkChange::Down { reason }),
            End::Refused(reason) => Some(LinkChange::Refused { reason }),
            End::Goodbye(_) => Some(LinkChange::Goodbye),
            End::Later(_) | End::Ours => None,
        }
    }
}
