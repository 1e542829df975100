//! State shared by the tasks of a node's links.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::roster::Roster;
use super::settings::{Limits, Peer, Settings};
use super::status::{Notes, Totals};
use super::{Handler, LinkChange, dial};
use soloist_core::Incarnation;

/// Locks a mutex and ignores poisoning. A panic in one task must not stop the other links, and no
/// state is ever left half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Shared {
    pub settings: Settings,
    /// Locked only briefly, also while it changes.
    roster: RwLock<Arc<Roster>>,
    /// Held while the next roster is built.
    changing: Mutex<()>,
    pub handler: Arc<dyn Handler>,
    pub totals: Totals,
    pub notes: Notes,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    pub runtime: Handle,
    /// Notified when a frame did not fit into some peer's buffer.
    pub fulls: Notify,
    /// Notified when some peer has acknowledged everything or has left the list.
    pub drained: Notify,
}

impl Shared {
    pub(super) fn new(settings: Settings, handler: Arc<dyn Handler>, runtime: Handle) -> Self {
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

    pub(super) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Returns the roster for a brief look; it does not change while the guard is held.
    pub(super) fn roster(&self) -> RwLockReadGuard<'_, Arc<Roster>> {
        self.roster.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the list of peers. They have been checked.
    pub(super) fn change_roster(self: &Arc<Self>, incarnation: Incarnation, peers: Vec<Peer>) {
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
    /// It could not be opened, or it broke.
    Failed(String),
    /// One of the two nodes rejected it.
    Refused(String),
    /// The peer sent something that no correct peer sends.
    Hostile(String),
    /// The peer stops, or no longer has links with this node.
    Goodbye(String),
    /// The receiver does not know the sender or its incarnation: not yet, or no longer.
    Later(String),
    /// This node ended it: it stops, has another list of peers, or has a newer connection.
    Ours,
}

impl End {
    /// Returns the change that is reported to the handler after this end, if any.
    pub(super) fn change(self) -> Option<LinkChange> {
        match self {
            End::Failed(reason) | End::Hostile(reason) => Some(LinkChange::Down { reason }),
            End::Refused(reason) => Some(LinkChange::Refused { reason }),
            End::Goodbye(_) => Some(LinkChange::Goodbye),
            End::Later(_) | End::Ours => None,
        }
    }
}
