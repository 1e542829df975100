//! The claims that an item judges. docs/claims.md and docs/reproduced.md have the same verdicts.

use super::{Item, Make};
use crate::{Claim, Verdict, all};

/// A claim, by its section and the beginning of its text.
type Key = (&'static str, &'static str);

/// The claims that each item judges, by the item's name.
const JUDGED: &[(&str, &[Key])] = &[
    (
        "chaudhuri-karaata-figure-1",
        &[("§2", "13(c-1) links are enough")],
    ),
    (
        "chaudhuri-karaata-figure-2",
        &[("§2.1, Fig. 3", "a head's token goes")],
    ),
    (
        "chaudhuri-karaata-equation-theorem-2",
        &[("Theorem 2", "at most 8(c-1) messages")],
    ),
    (
        "chaudhuri-karaata-equation-theorem-3",
        &[("Theorem 3", "under heavy demand")],
    ),
    (
        "chaudhuri-karaata-equation-4",
        &[
            ("§4", "within the privileged plane"),
            ("§4", "to make another plane privileged"),
        ],
    ),
    (
        "chaudhuri-karaata-equation-theorem-4",
        &[("Theorem 4 (i)", "a message has O(log n) bits")],
    ),
    (
        "chaudhuri-karaata-equation-theorem-4-queue",
        &[("Theorem 4 (ii)", "a queue has at most")],
    ),
    (
        "maekawa-equation-3-count",
        &[("§3", "at most (D-1)K + 1 sets")],
    ),
    (
        "raymond-equation-5-distance",
        &[("§5", "on a line the mean distance")],
    ),
    (
        "raymond-equation-5-diameter",
        &[("§5", "the diameter of a radiating star")],
    ),
    ("maekawa-figure-1", &[("§3, Fig. 1", "the sets shown")]),
    ("maekawa-figure-2", &[("§5, Fig. 2", "nodes 7, 8 and 11")]),
    (
        "maekawa-equation-1",
        &[("§1", "3√N messages for a request alone")],
    ),
    ("maekawa-equation-3", &[("§3", "no smaller K is possible")]),
    (
        "maekawa-equation-abstract",
        &[("Abstract", "c√N messages for an entry")],
    ),
    (
        "raymond-figure-1",
        &[("§2, Figs. 1 to 3", "HOLDER variables point")],
    ),
    (
        "raymond-figure-4",
        &[("§3.5, Fig. 4", "the messages on an edge")],
    ),
    ("raymond-figure-5", &[("§5", "on a line, all nodes alike")]),
    (
        "raymond-figure-6",
        &[
            ("§5", "an entry costs at most 2D"),
            ("§5", "in a radiating star the mean distance"),
        ],
    ),
    (
        "raymond-figure-7",
        &[("§5.1, Fig. 7", "saturated, the privilege goes")],
    ),
    (
        "raymond-equation-5.1",
        &[
            ("§5.1", "saturated, 4(N-1)/N messages"),
            ("§5.1", "the more nodes request"),
        ],
    ),
    (
        "raymond-equation-6.1",
        &[("§6.1", "piggybacking saves next to nothing")],
    ),
    (
        "raymond-equation-6.1-demand",
        &[("§6.1", "piggybacking saves next to nothing")],
    ),
    (
        "raymond-equation-6.2",
        &[
            ("§6.2", "greedy has little effect"),
            ("§6.2", "greedy: under heavy demand"),
        ],
    ),
    (
        "raymond-equation-6.2-fairness",
        &[("§6.2", "greedy: in Fig. 7, saturated, a nonleaf")],
    ),
    (
        "neamatollahi-figure-1",
        &[("§3.1, Fig. 1", "a request goes round its row")],
    ),
    (
        "neamatollahi-figure-2",
        &[("Theorem 2", "no deadlock"), ("Theorem 2", "no starvation")],
    ),
    (
        "neamatollahi-figure-3",
        &[("§3.4, Fig. 3", "the walk-through of 25 nodes")],
    ),
    (
        "neamatollahi-table-1",
        &[
            ("Table 1", "its own row"),
            ("Table 1", "its own cell for light"),
            ("Table 1", "Le Lann"),
            ("Table 1", "Suzuki-Kasami"),
            ("Table 1", "Raymond: "),
            ("Table 1", "Naimi-Trehel"),
            ("Table 1", "Lamport 3(N-1)"),
            ("Table 1", "Maekawa"),
        ],
    ),
    (
        "neamatollahi-equation-5.1",
        &[("§5.1", "one request at a time takes")],
    ),
    (
        "neamatollahi-equation-5.2",
        &[("§5.2", "with all nodes requesting all the time")],
    ),
    (
        "neamatollahi-equation-5.3",
        &[
            ("§5.3", "√N requests at once in one row"),
            ("§5.3", "√N requests at once in different rows take (2N"),
            ("§5.3", "√N requests at once in different rows take at most"),
        ],
    ),
    (
        "lodha-kshemkalyani-figure-1",
        &[("§2.2, Fig. 1", "Ricart and Agrawala's rules")],
    ),
    (
        "lodha-kshemkalyani-figure-2",
        &[
            ("Theorem 1", "mutual exclusion"),
            ("Theorem 1, Definition 7", "fairness"),
            ("Theorem 2", "liveness"),
        ],
    ),
    (
        "lodha-kshemkalyani-figure-3",
        &[("§3.4.1, Fig. 3", "three concurrent requests cost")],
    ),
    (
        "lodha-kshemkalyani-figure-4",
        &[("§3.2", "a node that leaves knows")],
    ),
    (
        "lodha-kshemkalyani-figure-5",
        &[("§3.4.2, Fig. 5", "the four scenarios")],
    ),
    (
        "lodha-kshemkalyani-figure-6",
        &[("§3.4.2, Fig. 6", "a REPLY stands for")],
    ),
    (
        "lodha-kshemkalyani-figure-7",
        &[("§3.4.2, Fig. 7", "a node may get more than one FLUSH")],
    ),
    (
        "lodha-kshemkalyani-equation-4.1",
        &[
            ("§1, §5", "the exact number is 2(N-1)-x"),
            ("§4.1", "N-1 REQUESTs"),
        ],
    ),
    (
        "lodha-kshemkalyani-equation-1",
        &[
            ("abstract, §5", "an access to the critical section"),
            ("§2.2, §1", "Ricart and Agrawala's algorithm takes"),
        ],
    ),
];

impl Item {
    /// The claims that this item judges.
    ///
    /// # Panics
    /// If the table names a claim that is not made, or does not name this item.
    pub fn claims(&self) -> Vec<Claim> {
        let name = self.name();
        let judged = JUDGED.iter().find(|(item, _)| *item == name);
        let (_, keys) = judged.unwrap_or_else(|| panic!("say which claims {name} judges"));
        let find = |(section, start): &Key| {
            let mut own = all().into_iter().filter(|claim| claim.paper == self.paper);
            let claim =
                own.find(|claim| claim.section == *section && claim.claimed.starts_with(start));
            claim.unwrap_or_else(|| panic!("{name}: no claim '{start}' in {section}"))
        };
        keys.iter().map(find).collect()
    }

    /// Returns whether this verdict of the item agrees with those of its claims: it is the weakest
    /// of them. Rules as printed that fail are not more than a part of a claim that holds after
    /// repair, and so is one run of the repaired rules that happens as told.
    pub fn agrees(&self, verdict: Verdict, claims: &[Verdict]) -> bool {
        let weakest = claims.iter().copied().min_by_key(|claim| claim.strength());
        let part = match self.make {
            Make::Replay(scenarios) => {
                let printed = scenarios
                    .iter()
                    .any(|(name, _)| name.contains("as-published"));
                Some(if printed {
                    Verdict::Fails
                } else {
                    Verdict::Holds
                })
            }
            Make::ReplayByBoth(_) | Make::Measure(_) => None,
        };
        weakest == Some(verdict)
            || part == Some(verdict) && weakest == Some(Verdict::HoldsAfterRepair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_judges_claims_and_every_entry_is_an_item() {
        let items = super::super::all();
        for item in &items {
            assert!(!item.claims().is_empty(), "{item:?}");
        }
        for (name, _) in JUDGED {
            assert!(items.iter().any(|item| item.name() == *name), "{name}");
        }
    }

    #[test]
    fn an_item_agrees_with_the_weakest_of_its_claims() {
        use Verdict::{Fails, Holds, HoldsAfterRepair, Withstood};
        let items = super::super::all();
        let named = |name: &str| items.iter().find(|item| item.name() == name).unwrap();
        let curve = named("neamatollahi-equation-5.3");
        assert!(curve.agrees(Fails, &[Withstood, Fails, Holds]));
        assert!(!curve.agrees(Withstood, &[Withstood, Fails]));
        assert!(!curve.agrees(Fails, &[HoldsAfterRepair]));
        assert!(named("neamatollahi-figure-2").agrees(Fails, &[HoldsAfterRepair]));
    }
}
