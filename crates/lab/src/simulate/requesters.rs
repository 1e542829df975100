//! Which nodes request, and how often compared with each other.

use std::fmt;
use std::str::FromStr;

use soloist_algorithms::NodeId;

use super::settings::{Load, SettingError, number};
use super::{Random, SimulateError};

/// Which nodes request.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Requesters {
    /// All nodes alike.
    #[default]
    All,
    /// These nodes alike, in ascending order; the others only take part.
    Nodes(Vec<u32>),
    /// All nodes, node i in proportion to 1/(i+1)^s (Zipf's law).
    Zipf(f64),
}

impl Requesters {
    /// Number of nodes that request, in a cluster of this many.
    pub fn count(&self, nodes: usize) -> usize {
        match self {
            Requesters::All | Requesters::Zipf(_) => nodes,
            Requesters::Nodes(list) => list.len(),
        }
    }

    /// Checks that these nodes exist and that the load draws them.
    pub(super) fn check(&self, nodes: usize, load: Load) -> Result<(), SimulateError> {
        let bad = |reason| Err(SimulateError::Requesters(reason));
        match self {
            Requesters::Nodes(list) => match list.iter().find(|node| **node as usize >= nodes) {
                Some(node) => bad(format!(
                    "no node {node}: the {nodes} nodes are numbered from 0"
                )),
                None => Ok(()),
            },
            Requesters::Zipf(_) if matches!(load, Load::Heavy | Load::Burst) => bad(format!(
                "zipf does not fit {load} load, under which every node requests; use light, \
                 poisson or think"
            )),
            Requesters::All | Requesters::Zipf(_) => Ok(()),
        }
    }
}

impl FromStr for Requesters {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        const WHAT: &str = "requesters";
        if given == "all" {
            return Ok(Requesters::All);
        }
        if let Some(exponent) = given.strip_prefix("zipf:") {
            return Ok(Requesters::Zipf(number(WHAT, given, exponent, true)?));
        }
        let mut list = Vec::new();
        for item in given.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
                // A longer range than there can be nodes would fill the memory.
                (Ok(first), Ok(last)) if first <= last && last - first < 1 << 24 => {
                    list.extend(first..=last);
                }
                _ => {
                    let allowed = "use all, zipf:S, or nodes such as 0,4,8-11";
                    return Err(SettingError::new(WHAT, given, allowed));
                }
            }
        }
        list.sort_unstable();
        list.dedup();
        Ok(Requesters::Nodes(list))
    }
}

impl fmt::Display for Requesters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requesters::All => f.write_str("all"),
            Requesters::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Requesters::Nodes(list) => {
                let mut separator = "";
                for run in list.chunk_by(|one, next| one + 1 == *next) {
                    write!(f, "{separator}{}", run[0])?;
                    if let [first, .., last] = run {
                        debug_assert!(first < last);
                        write!(f, "-{last}")?;
                    }
                    separator = ",";
                }
                Ok(())
            }
        }
    }
}

/// Draws nodes for a load.
#[derive(Debug)]
pub(super) struct Crowd {
    nodes: usize,
    /// The nodes that request, or `None` for all.
    list: Option<Vec<NodeId>>,
    /// Zipf's law: the share of each node and of all before it. Otherwise empty.
    shares: Vec<f64>,
}

impl Crowd {
    /// The nodes that request, in a cluster of this many.
    pub(super) fn new(requesters: &Requesters, nodes: usize) -> Self {
        let (mut list, mut shares) = (None, Vec::new());
        match requesters {
            Requesters::All => {}
            Requesters::Nodes(numbers) => {
                list = Some(numbers.iter().map(|&node| NodeId::new(node)).collect());
            }
            Requesters::Zipf(exponent) => {
                let mut sum = 0.0;
                shares.extend((1..=nodes).map(|rank| {
                    sum += libm::pow(rank as f64, -exponent);
                    sum
                }));
                shares.iter_mut().for_each(|share| *share /= sum);
            }
        }
        Crowd {
            nodes,
            list,
            shares,
        }
    }

    /// Returns whether the node requests.
    pub(super) fn includes(&self, node: NodeId) -> bool {
        let list = self.list.as_ref();
        list.is_none_or(|list| list.binary_search(&node).is_ok())
    }

    /// Draws a node.
    pub(super) fn pick(&self, random: &mut Random) -> NodeId {
        if !self.shares.is_empty() {
            let unit = random.unit();
            let index = self.shares.partition_point(|share| *share <= unit);
            return NodeId::from_index(index.min(self.nodes - 1));
        }
        match &self.list {
            Some(list) => list[random.below(list.len() as u64) as usize],
            None => NodeId::from_index(random.below(self.nodes as u64) as usize),
        }
    }

    /// A node's mean pause, if the average node would pause for `mean`: nodes that request more
    /// often pause for less.
    pub(super) fn pause(&self, node: NodeId, mean: f64) -> f64 {
        if self.shares.is_empty() {
            return mean;
        }
        let index = node.index();
        let before = index.checked_sub(1).map_or(0.0, |index| self.shares[index]);
        mean / ((self.shares[index] - before) * self.nodes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_read_back() {
        for text in ["all", "zipf:1", "zipf:0.8", "3", "0,4,8-11", "0-1"] {
            let requesters: Requesters = text.parse().unwrap();
            assert_eq!(requesters.to_string(), text);
        }
        assert_eq!("5,1-3,2".parse::<Requesters>().unwrap().count(9), 4);
        for text in [
            "",
            "some",
            "4-2",
            "1,,2",
            "zipf",
            "zipf:x",
            "-1",
            "0-99999999",
        ] {
            assert!(text.parse::<Requesters>().is_err(), "{text}");
        }
    }

    #[test]
    fn zipf_draws_in_proportion() {
        let crowd = Crowd::new(&Requesters::Zipf(1.0), 4);
        let mut random = Random::new(1, 1);
        let mut counts = [0; 4];
        for _ in 0..25_000 {
            counts[crowd.pick(&mut random).index()] += 1;
        }
        // 1, 1/2, 1/3 and 1/4 of 25/12.
        for (count, expected) in counts.into_iter().zip([12_000, 6_000, 4_000, 3_000]) {
            assert!(i32::abs(count - expected) < 300, "{counts:?}");
        }
        let rates = (0..4).map(|node| 1.0 / crowd.pause(NodeId::new(node), 8.0));
        let total: f64 = rates.sum();
        assert!((total - 4.0 / 8.0).abs() < 1e-9, "{total}");
        let ratio = crowd.pause(NodeId::new(3), 8.0) / crowd.pause(NodeId::new(0), 8.0);
        assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
    }
}
