//! Difference covers: sets D of numbers modulo N such that every number is the difference of two of
//! them. The translates D + i then intersect pairwise, have the same size, and contain every node
//! equally often.

use super::singer;

/// Up to this number of nodes, a smallest cover is found by exhaustive search.
pub(super) const SEARCHED_MAX: usize = 65;

/// A difference cover modulo `nodes`, ascending from 0. It is a smallest one up to [`SEARCHED_MAX`]
/// nodes and where a projective plane has this number of points; otherwise it comes from a Wichmann
/// ruler.
pub(super) fn difference_cover(nodes: usize) -> Vec<u32> {
    if nodes <= SEARCHED_MAX {
        return smallest_cover(nodes as u32);
    }
    let q = singer::order_of_plane(nodes);
    if singer::plane_points(q) == nodes {
        return singer::difference_set(q);
    }
    // The differences up to half of N and their negatives are all the differences modulo N.
    wichmann_ruler(nodes / 2)
}

/// The first number modulo `modulus` that is not a difference of two of `residues`, or `None`.
pub(super) fn missing_difference(residues: &[u32], modulus: usize) -> Option<usize> {
    let mut seen = vec![false; modulus];
    let mut unseen = modulus;
    for (place, &from) in residues.iter().enumerate() {
        for &to in &residues[place..] {
            let difference = (to as usize + modulus - from as usize) % modulus;
            for difference in [difference, (modulus - difference) % modulus] {
                unseen -= usize::from(!std::mem::replace(&mut seen[difference], true));
            }
        }
        if unseen == 0 {
            return None;
        }
    }
    seen.iter().position(|seen| !seen)
}

/// The marks of a ruler that measures every length up to at least `length`, with as few marks as
/// Wichmann's construction allows (B. Wichmann 1963, A note on restricted difference bases).
///
/// For r, s >= 0, the distances between consecutive marks are 1 (r times), r+1, 2r+1 (r times),
/// 4r+3 (s times), 2r+2 (r+1 times), 1 (r times). That makes 4r+s+3 marks, which measure every
/// length up to 4r(r+s+2) + 3(s+1).
fn wichmann_ruler(length: usize) -> Vec<u32> {
    let reach = |r: usize, s: usize| 4 * r * (r + s + 2) + 3 * (s + 1);
    let (r, s) = (3..)
        .find_map(|marks: usize| {
            let mut rulers = (0..=(marks - 3) / 4).map(|r| (r, marks - 3 - 4 * r));
            rulers.find(|&(r, s)| reach(r, s) >= length)
        })
        .expect("more marks reach further");
    let steps = [
        (r, 1),
        (1, r + 1),
        (r, 2 * r + 1),
        (s, 4 * r + 3),
        (r + 1, 2 * r + 2),
        (r, 1),
    ];
    let mut marks = vec![0];
    for (times, step) in steps {
        for _ in 0..times {
            marks.push(marks[marks.len() - 1] + step as u32);
        }
    }
    marks
}

/// A smallest cover, found by trying all sets of each size, starting from the smallest possible
/// size.
fn smallest_cover(nodes: u32) -> Vec<u32> {
    if nodes <= 2 {
        return (0..nodes).collect();
    }
    let search = CoverSearch {
        nodes,
        all: (1 << nodes) - 1,
    };
    // K numbers have K(K-1) differences other than 0.
    let cover = (2..)
        .filter(|size| size * (size - 1) + 1 >= nodes)
        .find_map(|size| search.extend(Partial::first_two(nodes), size))
        .expect("all numbers together are a cover");
    (0..nodes).filter(|n| cover >> n & 1 == 1).collect()
}

/// Represents sets of numbers modulo `nodes` as bit masks.
struct CoverSearch {
    nodes: u32,
    all: u128,
}

#[derive(Clone, Copy)]
struct Partial {
    chosen: u128,
    negated: u128,
    differences: u128,
    last: u32,
}

impl Partial {
    /// Some two numbers differ by 1; after a shift they are 0 and 1.
    fn first_two(nodes: u32) -> Self {
        let minus_one = 1 << (nodes - 1);
        Partial {
            chosen: 0b11,
            negated: 0b1 | minus_one,
            differences: 0b11 | minus_one,
            last: 1,
        }
    }
}

impl CoverSearch {
    /// The first cover of `size` numbers that extends `partial` with larger numbers.
    fn extend(&self, partial: Partial, size: u32) -> Option<u128> {
        if partial.differences == self.all {
            return Some(partial.chosen);
        }
        let chosen = partial.chosen.count_ones();
        let new_at_most = size * (size - 1) - chosen * (chosen - 1);
        if partial.differences.count_ones() + new_at_most < self.nodes {
            return None;
        }
        match size - chosen {
            0 => None,
            1 => self.complete(partial),
            left => (partial.last + 1..=self.nodes - left)
                .find_map(|number| self.extend(self.with(partial, number), size)),
        }
    }

    fn with(&self, partial: Partial, number: u32) -> Partial {
        let to_others = self.shifted(partial.chosen, self.nodes - number);
        let from_others = self.shifted(partial.negated, number);
        Partial {
            chosen: partial.chosen | 1 << number,
            negated: partial.negated | 1 << (self.nodes - number),
            differences: partial.differences | to_others | from_others,
            last: number,
        }
    }

    /// The cover that one more number completes, or `None`. That number must form every missing
    /// difference with one of those chosen.
    fn complete(&self, partial: Partial) -> Option<u128> {
        let mut candidates = self.all;
        let mut missing = self.all & !partial.differences;
        while missing != 0 && candidates != 0 {
            let difference = missing.trailing_zeros();
            missing &= missing - 1;
            candidates &= self.shifted(partial.chosen, difference)
                | self.shifted(partial.chosen, self.nodes - difference);
        }
        (candidates != 0).then(|| partial.chosen | 1 << candidates.trailing_zeros())
    }

    /// Adds `by` to each number; `by` is neither 0 nor N.
    fn shifted(&self, set: u128, by: u32) -> u128 {
        (set << by | set >> (self.nodes - by)) & self.all
    }
}
