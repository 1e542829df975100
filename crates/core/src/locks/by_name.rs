//! All locks of a table: a map by name that can also be walked in name order, a few locks at a
//! time.

use std::collections::hash_map;
use std::collections::{BTreeSet, btree_set};
use std::ops::{Bound, Index};

use super::lock::Lock;
use crate::lookup_map::LookupMap;
use soloist_api::LockName;

#[derive(Clone, Default)]
pub(super) struct LocksByName {
    locks: LookupMap<LockName, Lock>,
    /// The same names, in order. A lock stays in both while it is unused for a short time, so that
    /// using it repeatedly costs nothing here.
    names: BTreeSet<LockName>,
}

/// The entry of a lock that does not exist.
pub(super) struct Vacant<'t> {
    entry: hash_map::VacantEntry<'t, LockName, Lock>,
    names: &'t mut BTreeSet<LockName>,
}

impl<'t> Vacant<'t> {
    pub(super) fn insert(self, lock: Lock) -> &'t mut Lock {
        self.names.insert(self.entry.key().clone());
        self.entry.insert(lock)
    }
}

impl LocksByName {
    pub(super) fn len(&self) -> usize {
        self.locks.len()
    }

    pub(super) fn get(&self, name: &LockName) -> Option<&Lock> {
        self.locks.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &LockName) -> Option<&mut Lock> {
        self.locks.get_mut(name)
    }

    /// The lock of this name, or the vacant entry for it.
    pub(super) fn entry(&mut self, name: &LockName) -> Result<&mut Lock, Vacant<'_>> {
        match self.locks.entry(name.clone()) {
            hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            hash_map::Entry::Vacant(entry) => Err(Vacant {
                entry,
                names: &mut self.names,
            }),
        }
    }

    pub(super) fn remove(&mut self, name: &LockName) {
        self.locks.remove(name);
        self.names.remove(name);
    }

    /// Changes all locks. See [`LookupMap::update_all`].
    pub(super) fn update_all(&mut self, update: impl FnMut(&mut Lock)) {
        self.locks.update_all(update);
    }

    /// All names, in order.
    pub(super) fn names(&self) -> btree_set::Iter<'_, LockName> {
        self.names.iter()
    }

    /// All locks, in name order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&LockName, &Lock)> {
        self.after(None)
    }

    /// The locks after this name, in name order.
    pub(super) fn after(&self, name: Option<&str>) -> impl Iterator<Item = (&LockName, &Lock)> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.names.range::<str, _>((from, Bound::Unbounded));
        names.map(|name| (name, &self[name]))
    }

    /// Returns memory that is no longer needed.
    pub(super) fn shrink(&mut self) {
        self.locks.shrink();
    }
}

impl Index<&LockName> for LocksByName {
    type Output = Lock;

    fn index(&self, name: &LockName) -> &Lock {
        &self.locks[name]
    }
}
