//! A hash map that cannot be walked in the order of its hashes.

use std::borrow::Borrow;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::ops::Index;

#[expect(
    clippy::disallowed_types,
    reason = "this wraps the map that is disallowed elsewhere"
)]
type HashMap<K, V> = std::collections::HashMap<K, V>;

/// A hash map for look-ups. The order of a hash map differs from process to process, so the only
/// way to walk this one is in the order of its keys.
#[derive(Clone, Debug)]
pub(crate) struct LookupMap<K, V>(HashMap<K, V>);

impl<K, V> Default for LookupMap<K, V> {
    fn default() -> Self {
        LookupMap(HashMap::default())
    }
}

impl<K: Eq + Hash + Ord, V> LookupMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    pub(crate) fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    pub(crate) fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        self.0.entry(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// All entries, in the order of their keys.
    pub(crate) fn sorted(&self) -> Vec<(&K, &V)> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        entries
    }

    /// What `map` makes of all values, sorted.
    pub(crate) fn sorted_values<T: Ord>(&self, map: impl FnMut(&V) -> T) -> Vec<T> {
        let mut values: Vec<_> = self.0.values().map(map).collect();
        values.sort_unstable();
        values
    }

    /// Changes all values, in no particular order. The outcome must not depend on it.
    pub(crate) fn update_all(&mut self, update: impl FnMut(&mut V)) {
        self.0.values_mut().for_each(update);
    }

    /// Returns memory that is no longer needed.
    pub(crate) fn shrink(&mut self) {
        if self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to(self.0.len() * 2);
        }
    }
}

impl<K: Eq + Hash + Ord, V> Index<&K> for LookupMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        &self.0[key]
    }
}

impl<K: Eq + Hash + Ord, V: Hash> Hash for LookupMap<K, V> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.sorted().hash(hasher);
    }
}
