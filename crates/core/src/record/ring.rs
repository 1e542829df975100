//! The last items of a sequence.

use std::collections::VecDeque;

/// The last items of an endless sequence, each with a number. Older items are dropped.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    items: VecDeque<T>,
    /// Number of the first item that was ever added.
    first: u64,
    /// Number of the next item.
    next: u64,
    max: usize,
}

/// What is missing between a reader's last item and the first one that is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Gap {
    /// Nothing.
    None,
    /// This many items.
    Items(u64),
    /// The reader's last item is not of this sequence: the node has restarted.
    Unknown,
}

impl<T> Ring<T> {
    /// Creates a sequence that starts with this number and keeps at most `max` items.
    pub fn new(first: u64, max: usize) -> Self {
        Ring {
            items: VecDeque::new(),
            first,
            next: first,
            max,
        }
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        if self.items.len() == self.max {
            self.items.pop_front();
        }
        self.items.push_back(item);
        self.next += 1;
    }

    /// Number of the latest item, or the number before the first one.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// All items that are kept, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let start = self.next - self.items.len() as u64;
        (start..).zip(self.items.iter())
    }

    /// The items after this number, and what is missing before them.
    pub fn after(&self, number: u64) -> (Gap, impl Iterator<Item = (u64, &T)>) {
        let start = self.next - self.items.len() as u64;
        let is_known = (self.first..=self.next).contains(&(number + 1));
        let (gap, from) = match is_known {
            false => (Gap::Unknown, start),
            true if number + 1 < start => (Gap::Items(start - number - 1), start),
            true => (Gap::None, number + 1),
        };
        let skipped = (from - start) as usize;
        (gap, (from..).zip(self.items.iter().skip(skipped)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ring: &Ring<char>, number: u64) -> (Gap, String) {
        let (gap, items) = ring.after(number);
        (gap, items.map(|(_, item)| *item).collect())
    }

    #[test]
    fn a_reader_gets_what_is_new_and_learns_what_is_missing() {
        let mut ring = Ring::new(100, 3);
        assert_eq!(
            (ring.last(), after(&ring, 99)),
            (99, (Gap::None, String::new()))
        );
        for item in "abcde".chars() {
            ring.push(item);
        }
        assert_eq!(ring.last(), 104);
        assert_eq!(after(&ring, 104), (Gap::None, String::new()));
        assert_eq!(after(&ring, 102), (Gap::None, "de".to_owned()));
        assert_eq!(after(&ring, 101), (Gap::None, "cde".to_owned()));
        assert_eq!(after(&ring, 99), (Gap::Items(2), "cde".to_owned()));
        // Numbers of an earlier life, and numbers that were never given.
        assert_eq!(after(&ring, 7), (Gap::Unknown, "cde".to_owned()));
        assert_eq!(after(&ring, 105), (Gap::Unknown, "cde".to_owned()));
        let numbers: Vec<u64> = ring.iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [102, 103, 104]);
    }
}
