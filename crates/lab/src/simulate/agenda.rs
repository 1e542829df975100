//! The event queue: events ordered by time and, if simultaneous, by order of insertion.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Time;

/// A queue of future events.
#[derive(Debug)]
pub(super) struct Agenda<T> {
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
    /// An empty queue.
    pub(super) fn new() -> Self {
        Agenda {
            heap: BinaryHeap::new(),
            next_number: 0,
        }
    }

    /// Schedules an event, after all others scheduled for the same time.
    pub(super) fn put(&mut self, at: Time, what: T) {
        let number = self.next_number;
        self.next_number += 1;
        self.heap.push(Item { at, number, what });
    }

    /// Removes and returns the next event and its time.
    pub(super) fn next(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|item| (item.at, item.what))
    }
}

// `BinaryHeap` is a max-heap, so the earliest item compares greatest.
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
