//! A lock table that can be changed only after a look at the clock.

use crate::locks::{Effects, Table};
use crate::mutant::Mutant;
use soloist_api::{EndReason, Moment};

/// A lock table and the lease that covers it. The table is private here, so a change to it that
/// does not check the lease first does not compile.
#[derive(Clone, Hash)]
pub(super) struct LeasedTable {
    table: Table,
    /// Until when the node may rely on being a member. `None` while it has no lease: it is not a
    /// member then, or installs no epoch yet.
    valid_until: Option<Moment>,
}

impl LeasedTable {
    /// A table without a lease.
    pub(super) fn new(table: Table) -> Self {
        LeasedTable {
            table,
            valid_until: None,
        }
    }

    /// The table as of the last change.
    pub(super) fn get(&self) -> &Table {
        &self.table
    }

    /// The table, to change it now.
    ///
    /// # Panics
    /// If the lease [has expired](LeasedTable::has_expired) and was not [ended](LeasedTable::lose).
    pub(super) fn at(&mut self, now: Moment) -> &mut Table {
        assert!(!self.has_expired(now), "an expired lease was not ended");
        &mut self.table
    }

    pub(super) fn valid_until(&self) -> Option<Moment> {
        self.valid_until
    }

    pub(super) fn has_expired(&self, now: Moment) -> bool {
        let is_noticed = !self.table.tuning().has(Mutant::LapseUnnoticed);
        self.valid_until.is_some_and(|until| until <= now) && is_noticed
    }

    /// Extends the lease. It never ends sooner because of this.
    pub(super) fn extend(&mut self, until: Moment) {
        self.valid_until = self.valid_until.max(Some(until));
    }

    /// Ends the lease because it expired or was refused. All holds are lost.
    pub(super) fn lose(&mut self, now: Moment, out: &mut Effects) {
        // It may be noticed late that a lease expired, for example after the machine slept.
        let since = self.valid_until.take();
        self.table
            .lose(since.map_or(now, |until| until.min(now)), out);
    }

    /// Ends the lease because the node leaves.
    pub(super) fn leave(&mut self, now: Moment, out: &mut Effects) {
        self.table.freeze();
        self.table.end_all(now, EndReason::NodeStopped, out);
        self.valid_until = None;
    }
}
