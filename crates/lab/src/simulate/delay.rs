//! How long messages are in flight: the same for all links, by zones, or from a matrix.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use soloist_algorithms::NodeId;

use super::settings::SettingError;
use super::{Distribution, Random, Time};

/// How long a message is in flight.
#[derive(Clone, PartialEq, Debug)]
pub enum Delay {
    /// The same for all links.
    Same(Distribution),
    /// The nodes are divided into zones of consecutive numbers, as equal as possible.
    Zones {
        /// Number of zones.
        zones: usize,
        /// Between nodes of the same zone.
        near: Distribution,
        /// Between nodes of different zones.
        far: Distribution,
    },
    /// A delay for each link.
    Matrix(Arc<DelayMatrix>),
}

/// A delay for each link, from a file.
#[derive(Clone, PartialEq, Debug)]
pub struct DelayMatrix {
    name: String,
    nodes: usize,
    /// From node i to node j: at `i * nodes + j`.
    delays: Vec<Distribution>,
}

/// An invalid matrix of delays. The text names the file and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}:{line}: {reason}")]
pub struct MatrixError {
    name: String,
    line: usize,
    reason: String,
}

impl Delay {
    /// Draws the delay of one message, in a cluster of this many nodes.
    #[inline]
    pub(super) fn draw(&self, nodes: usize, from: NodeId, to: NodeId, random: &mut Random) -> Time {
        let distribution = match self {
            Delay::Same(distribution) => distribution,
            _ => self.of_link(nodes, from, to),
        };
        distribution.draw(random).max(Time::TICK)
    }

    /// Not inlined into the innermost loop of simulations: most have the same delay for all links.
    #[inline(never)]
    fn of_link(&self, nodes: usize, from: NodeId, to: NodeId) -> &Distribution {
        match self {
            Delay::Same(distribution) => distribution,
            Delay::Zones { zones, near, far } => {
                let zone = |node: NodeId| node.index() * zones / nodes;
                if zone(from) == zone(to) { near } else { far }
            }
            Delay::Matrix(matrix) => &matrix.delays[from.index() * matrix.nodes + to.index()],
        }
    }

    /// Returns why these delays do not fit a cluster of this many nodes, if they do not.
    pub(super) fn misfit(&self, nodes: usize) -> Option<String> {
        match self {
            Delay::Zones { zones, .. } if *zones > nodes => Some(format!(
                "{zones} zones for {nodes} nodes: use at most {nodes} zones"
            )),
            Delay::Matrix(matrix) if matrix.nodes != nodes => Some(format!(
                "{} has delays for {} nodes, not for {nodes}",
                matrix.name, matrix.nodes
            )),
            _ => None,
        }
    }
}

impl From<Distribution> for Delay {
    fn from(distribution: Distribution) -> Self {
        Delay::Same(distribution)
    }
}

impl DelayMatrix {
    /// Parses one line per node, with one delay per node, separated by spaces or commas: from the
    /// line's node to the column's node. A delay is a number or a distribution, such as
    /// `exponential:2`. The diagonal is not used and may be `-`. Text after `#` is a comment.
    pub fn parse(name: &str, text: &str) -> Result<Self, MatrixError> {
        let error = |line: usize, reason: String| MatrixError {
            name: name.to_owned(),
            line,
            reason,
        };
        let lines = text.lines().enumerate().filter_map(|(index, line)| {
            let content = line.split('#').next().unwrap_or_default();
            let cells: Vec<_> = content
                .split(|c: char| c == ',' || c.is_whitespace())
                .filter(|cell| !cell.is_empty())
                .collect();
            (!cells.is_empty()).then_some((index + 1, cells))
        });
        let rows: Vec<_> = lines.collect();
        let nodes = rows.first().map_or(0, |(_, cells)| cells.len());
        let mut delays = Vec::with_capacity(nodes * nodes);
        for (row, (line, cells)) in rows.iter().enumerate() {
            if row >= nodes || cells.len() != nodes {
                let reason = format!(
                    "expected {nodes} lines of {nodes} delays, found {} in line {} of the matrix",
                    cells.len(),
                    row + 1
                );
                return Err(error(*line, reason));
            }
            for (column, cell) in cells.iter().enumerate() {
                if row == column && *cell == "-" {
                    delays.push(Distribution::Constant(0.0));
                    continue;
                }
                let zero = row == column;
                let delay = Distribution::number_or_name("delay", cell, cell, zero);
                delays.push(delay.map_err(|bad| error(*line, bad.to_string()))?);
            }
        }
        if nodes == 0 {
            let reason = "expected one line of delays per node, found none";
            return Err(error(1, reason.to_owned()));
        }
        if rows.len() < nodes {
            let reason = format!(
                "expected {nodes} lines of {nodes} delays, found {}",
                rows.len()
            );
            return Err(error(text.lines().count(), reason));
        }
        Ok(DelayMatrix {
            name: name.to_owned(),
            nodes,
            delays,
        })
    }
}

impl FromStr for Delay {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        const WHAT: &str = "delay";
        if let Some(distribution) = Distribution::by_name(WHAT, given, given)? {
            return Ok(Delay::Same(distribution));
        }
        let Some(zones) = given.strip_prefix("zones:") else {
            let allowed = format!(
                "use {}, zones:COUNT:NEAR/FAR or file:PATH",
                Distribution::FORMS.replace(" or", ",")
            );
            return Err(SettingError::new(WHAT, given, allowed));
        };
        let parts = zones.split_once(':');
        let parts = parts.and_then(|(count, delays)| Some((count, delays.split_once('/')?)));
        let Some((count, (near, far))) = parts else {
            let form = "write zones as zones:COUNT:NEAR/FAR, such as zones:3:0.1/1";
            return Err(SettingError::new(WHAT, given, form));
        };
        let zones = count.parse().ok().filter(|zones| *zones >= 1);
        let zones = zones.ok_or_else(|| {
            let reason = format!("'{count}' is not a number of zones: use 1 or more");
            SettingError::new(WHAT, given, reason)
        })?;
        Ok(Delay::Zones {
            zones,
            near: Distribution::number_or_name(WHAT, given, near, false)?,
            far: Distribution::number_or_name(WHAT, given, far, false)?,
        })
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay::Same(distribution) => distribution.fmt(f),
            Delay::Zones { zones, near, far } => write!(f, "zones:{zones}:{near}/{far}"),
            Delay::Matrix(matrix) => write!(f, "file:{}", matrix.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(delay: &Delay, nodes: usize, from: u32, to: u32) -> f64 {
        let mut random = Random::new(1, 1);
        let time = delay.draw(nodes, NodeId::new(from), NodeId::new(to), &mut random);
        time.delays()
    }

    #[test]
    fn zones_are_near_inside_and_far_between() {
        let delay: Delay = "zones:2:0.5/constant:4".parse().unwrap();
        assert_eq!(delay.to_string(), "zones:2:constant:0.5/constant:4");
        // 0, 1 and 2 are one zone, 3 and 4 the other.
        assert_eq!(ticks(&delay, 5, 0, 2), 0.5);
        assert_eq!(ticks(&delay, 5, 3, 4), 0.5);
        assert_eq!(ticks(&delay, 5, 2, 3), 4.0);
        assert_eq!(ticks(&delay, 5, 4, 0), 4.0);
        assert!(delay.misfit(2).is_none());
        assert!(delay.misfit(1).unwrap().contains("at most 1"));
    }

    #[test]
    fn a_matrix_has_a_delay_for_each_direction() {
        let text = "# from 0\n-, 1, 2.5\n\n3 0 constant:4 # from 1\n5 6 -\n";
        let delay = Delay::Matrix(Arc::new(DelayMatrix::parse("wan.txt", text).unwrap()));
        assert_eq!(delay.to_string(), "file:wan.txt");
        assert_eq!(ticks(&delay, 3, 0, 2), 2.5);
        assert_eq!(ticks(&delay, 3, 1, 2), 4.0);
        assert_eq!(ticks(&delay, 3, 2, 1), 6.0);
        assert!(delay.misfit(3).is_none());
        let misfit = delay.misfit(4).unwrap();
        assert_eq!(misfit, "wan.txt has delays for 3 nodes, not for 4");
    }

    #[test]
    fn a_bad_matrix_names_the_file_the_line_and_what_was_expected() {
        for (text, expected) in [
            (
                "",
                "wan.txt:1: expected one line of delays per node, found none",
            ),
            ("- 1\n", "wan.txt:1: expected 2 lines of 2 delays, found 1"),
            (
                "- 1\n# one\n1\n",
                "wan.txt:3: expected 2 lines of 2 delays, found 1 in line 2 of the matrix",
            ),
            (
                "- 1\n1 -\n1 1\n",
                "wan.txt:3: expected 2 lines of 2 delays, found 2 in line 3 of the matrix",
            ),
            (
                "- 1\nfast -\n",
                "wan.txt:2: delay 'fast': use a number, constant[:MEAN], uniform[:LOW..HIGH] or \
                 exponential[:MEAN]",
            ),
            (
                "- -1\n1 -\n",
                "wan.txt:1: delay '-1': use a number above 0, from 1e-6 to 1e9",
            ),
        ] {
            let error = DelayMatrix::parse("wan.txt", text).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
