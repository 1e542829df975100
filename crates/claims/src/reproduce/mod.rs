//! The figures, tables and formulas of the five papers, reproduced: as replays of scenarios, as
//! charts with the paper's curve and measured values, or as tables.

mod chaudhuri_karaata;
mod curve;
mod judged;
mod lodha_kshemkalyani;
mod maekawa;
mod neamatollahi;
pub mod page;
mod raymond;
mod replays;
mod table_1;

use std::fmt;

use serde::Serialize;
use soloist_algorithms::Kind;
use soloist_lab::report::{Chart, csv};

use crate::comparison::Table;
use crate::{Finding, PAPERS};

/// Part of a paper that is reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A figure, by its number.
    Figure,
    /// A table, by its number.
    Table,
    /// A formula, by the section or theorem that states it.
    Equation,
}

impl Part {
    /// The name on the command line and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Part::Figure => "figure",
            Part::Table => "table",
            Part::Equation => "equation",
        }
    }
}

/// A figure, table or formula that can be reproduced.
#[derive(Clone, Copy, Serialize)]
pub struct Item {
    /// The algorithm of the paper.
    #[serde(serialize_with = "crate::name")]
    pub paper: Kind,
    /// What it is.
    pub part: Part,
    /// Its number or section. The first is the name, and the others are found as well.
    pub labels: &'static [&'static str],
    /// What it shows.
    pub title: &'static str,
    #[serde(skip)]
    make: Make,
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// How an item is made.
#[derive(Clone, Copy)]
enum Make {
    /// Replays these scenarios.
    Replay(&'static [replays::Scenario]),
    /// Replays a scenario of the repaired rules by both rules.
    ReplayByBoth(&'static replays::Scenario),
    /// Measures or counts.
    Measure(fn() -> Reproduced),
}

/// An item, reproduced.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// Whether the paper's statement holds, what was found, and the command that repeats it.
    #[serde(flatten)]
    pub finding: Finding,
    /// The seeds of the runs, if there is chance in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<String>,
    /// What the command writes to files.
    pub content: Content,
}

/// What is reproduced.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Scenarios as they were replayed.
    Replays(Vec<Replayed>),
    /// A chart.
    Chart(Chart),
    /// A table.
    Table(Table),
}

/// A scenario as it was replayed.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// The file of the scenario.
    pub file: String,
    /// The scenario with what happens at each step.
    pub transcript: String,
}

impl Item {
    /// The name of the item, which is that of its files: "raymond-figure-7".
    pub fn name(&self) -> String {
        format!(
            "{}-{}-{}",
            self.paper.info().name,
            self.part.name(),
            self.labels[0]
        )
    }

    /// Where it is in the paper: "Figs. 1, 2, 3", "Table 1", "§5.1", "Theorem 2".
    pub fn place(&self) -> String {
        let label = self.labels[0];
        match self.part {
            Part::Figure if self.labels.len() > 1 => format!("Figs. {}", self.labels.join(", ")),
            Part::Figure => format!("Fig. {label}"),
            Part::Table => format!("Table {label}"),
            Part::Equation if label.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("§{}", label.replace('-', ", "))
            }
            Part::Equation => {
                let (word, number) = label.split_once('-').unwrap_or((label, ""));
                let (first, rest) = word.split_at(1);
                let word = format!("{}{rest} {number}", first.to_ascii_uppercase());
                word.trim_end().to_owned()
            }
        }
    }

    /// Reproduces the item.
    pub fn reproduce(&self) -> Reproduced {
        let reproduced = match self.make {
            Make::Replay(scenarios) => replays::replay(scenarios),
            Make::ReplayByBoth(scenario) => replays::replay_by_both(scenario),
            Make::Measure(measure) => measure(),
        };
        Reproduced {
            finding: reproduced.finding.not_rounded_up(),
            ..reproduced
        }
    }
}

impl Reproduced {
    /// The files of the item: their names and contents.
    pub fn files(&self, item: &Item) -> Vec<(String, String)> {
        let name = |ending: &str| format!("{}.{ending}", item.name());
        match &self.content {
            Content::Chart(chart) => vec![(name("svg"), chart.svg()), (name("csv"), chart.csv())],
            Content::Table(table) => {
                let head = std::iter::once(table.head.clone());
                let rows: Vec<_> = head.chain(table.rows.iter().cloned()).collect();
                vec![(name("csv"), csv(&rows))]
            }
            Content::Replays(replays) => {
                let texts: Vec<_> = replays.iter().map(|r| r.transcript.as_str()).collect();
                vec![(name("txt"), texts.join("\n"))]
            }
        }
    }
}

/// All items, in the order of the papers.
pub fn all() -> Vec<Item> {
    let mut items: Vec<Item> = [
        replays::items(),
        raymond::items(),
        maekawa::items(),
        chaudhuri_karaata::items(),
        neamatollahi::items(),
        lodha_kshemkalyani::items(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let place = |item: &Item| {
        let paper = PAPERS.iter().position(|paper| *paper == item.paper);
        (paper, item.part as u8, item.labels[0])
    };
    items.sort_by(|one, other| place(one).cmp(&place(other)));
    items
}

/// Which items to reproduce.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only those of this paper.
    pub paper: Option<Kind>,
    /// Only this figure, table or formula.
    pub part: Option<(Part, String)>,
}

/// A selection without an item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NothingSelected {
    asked: String,
    known: Vec<String>,
}

impl fmt::Display for NothingSelected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: there are {}", self.asked, self.known.join(", "))
    }
}

impl std::error::Error for NothingSelected {}

impl Selection {
    /// Whether nothing was asked for in particular.
    pub fn is_everything(&self) -> bool {
        self.paper.is_none() && self.part.is_none()
    }

    /// The selected items. Fails if there are none.
    pub fn items(&self) -> Result<Vec<Item>, NothingSelected> {
        let of_paper = |item: &Item| self.paper.is_none_or(|paper| item.paper == paper);
        let is_part = |item: &Item| match &self.part {
            None => true,
            Some((part, label)) => item.part == *part && item.labels.contains(&label.as_str()),
        };
        let mut items = all();
        items.retain(of_paper);
        let known: Vec<_> = items.iter().map(Item::name).collect();
        items.retain(is_part);
        if !items.is_empty() {
            return Ok(items);
        }
        let part = self.part.as_ref();
        let asked = part.map_or("item".to_owned(), |(part, label)| {
            format!("{} '{label}'", part.name())
        });
        let asked = match self.paper {
            None => asked,
            Some(paper) => format!("{asked} of {paper}"),
        };
        Err(NothingSelected { asked, known })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_labels_are_unique_and_every_paper_is_there() {
        let items = all();
        let names: BTreeSet<_> = items.iter().map(Item::name).collect();
        assert_eq!(names.len(), items.len());
        for paper in PAPERS {
            for part in [Part::Figure, Part::Table, Part::Equation] {
                let own = items.iter().filter(|i| i.paper == paper && i.part == part);
                let labels: Vec<_> = own.flat_map(|item| item.labels).collect();
                let distinct: BTreeSet<_> = labels.iter().collect();
                assert_eq!(labels.len(), distinct.len(), "{paper}: {labels:?}");
                assert!(part == Part::Table || !labels.is_empty(), "{paper}");
            }
        }
    }

    #[test]
    fn a_selection_finds_further_labels_and_says_what_exists() {
        let select = |paper, part, label: &str| {
            let selection = Selection {
                paper,
                part: Some((part, label.to_owned())),
            };
            selection.items()
        };
        let found = select(Some(Kind::Raymond), Part::Figure, "2").unwrap();
        assert_eq!(
            found.iter().map(Item::name).collect::<Vec<_>>(),
            ["raymond-figure-1"]
        );
        let missing = select(Some(Kind::Raymond), Part::Table, "1").unwrap_err();
        let text = missing.to_string();
        assert!(
            text.starts_with("no table '1' of raymond: there are "),
            "{text}"
        );
        assert!(
            text.contains("raymond-equation-5.1") && !text.contains("maekawa"),
            "{text}"
        );
        assert!(select(None, Part::Figure, "7").unwrap().len() > 1);
    }
}
