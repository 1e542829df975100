//! What a node remembers of itself for dashboards.

use std::sync::Arc;
use std::time::Duration;

use super::event::{unix_ms, unix_us};
use super::shared::Shared;
use soloist_core::epochs::roster::Member;
use soloist_core::locks::LockEvent;
use soloist_core::record::Recorder;

/// What a node remembers of itself for dashboards. Its notes about the cluster are in the journal,
/// which the leader's task shares.
pub(crate) struct Memory {
    recorder: Recorder,
    /// The epoch that the node installed last, and its members. `None` once its lease has expired.
    installed: Option<(u64, Arc<[Member]>)>,
    outside_since_ms: u64,
    last_epoch: u64,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory {
            recorder: Recorder::new(unix_us()),
            installed: None,
            outside_since_ms: unix_ms(Duration::ZERO),
            last_epoch: 0,
        }
    }

    /// Returns what it remembers of its locks.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns when the node was last seen to be outside, in milliseconds since 1970: since when it
    /// is, if it is.
    pub(crate) fn outside_since_ms(&self) -> u64 {
        self.outside_since_ms
    }

    /// Returns the epoch that the node installed last, or 0.
    pub(crate) fn last_epoch(&self) -> u64 {
        self.last_epoch
    }

    /// Records a lock event of this time, in milliseconds since 1970.
    pub(super) fn note(&mut self, shared: &Shared, at_ms: u64, event: &LockEvent) {
        self.recorder.note(at_ms, event);
        if let LockEvent::Ended { lock, end, .. } = event
            && end.is_loss()
        {
            shared.journal().lost(at_ms, lock, *end);
        }
    }

    /// Records that the node installed an epoch.
    pub(super) fn install(
        &mut self,
        shared: &Shared,
        epoch: u64,
        members: &Arc<[Member]>,
        stood_still: Option<Duration>,
    ) {
        self.last_epoch = epoch;
        let before = self.installed.replace((epoch, Arc::clone(members)));
        let before = before.as_ref().map(|(epoch, members)| (*epoch, &**members));
        let at_ms = unix_ms(Duration::ZERO);
        let mut journal = shared.journal();
        journal.installed(at_ms, epoch, members, before, stood_still);
    }

    /// Records that the node is no longer a member.
    pub(super) fn leave(&mut self) {
        self.installed = None;
        self.outside_since_ms = unix_ms(Duration::ZERO);
    }
}
