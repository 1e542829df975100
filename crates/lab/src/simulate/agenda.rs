//! What happens next: events ordered by time, and by order of entry among the simultaneous.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Time;

/// A queue of things to come.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Item<T>>,
    next_number: u64,
}

#[derive(Debug)]
struct Item<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Agenda<T> {
    /// Nothing to come.
    pub fn new() -> Self {
        Agenda {
            heap: BinaryHeap::new(),
            next_number: 0,
        }
    }

    /// Something is to come; after everything else that was put down for the same moment.
    pub fn put(&mut self, at: Time, what: T) {
        let number = self.next_number;
        self.next_number += 1;
        self.heap.push(Item { at, number, what });
    }

    /// The next thing, and when.
    pub fn next(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|item| (item.at, item.what))
    }
}

// The heap gives the greatest first: so the earliest is the greatest.
impl<T> Ord for Item<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Item<T> {}
