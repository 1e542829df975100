//! What the five papers claim, and what measuring and searching says to it: a file a paper.
//!
//! A claim is examined afresh each time, with the same simulator and the same search that users have;
//! nothing about its verdict is written down beforehand.

mod chance;
mod chaudhuri_karaata;
pub mod comparison;
mod lodha_kshemkalyani;
mod maekawa;
pub mod markdown;
mod neamatollahi;
mod raymond;
mod share;
mod tools;
mod watch;

use rayon::prelude::*;
use serde::Serialize;
use soloist_algorithms::Kind;

/// Something that a paper says of its algorithm.
pub struct Claim {
    /// Whose paper it is.
    pub paper: Kind,
    /// Where it is said: "§4.1", "Theorem 4".
    pub section: &'static str,
    /// What is said, in our words.
    pub claimed: &'static str,
    /// Measures or searches.
    pub examine: fn() -> Finding,
}

/// What came of examining a claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whether it is so.
    pub verdict: Verdict,
    /// What was measured or searched, with sizes and figures, in one line.
    pub found: String,
    /// How to see it: a command of this project, or the file of a scenario.
    pub evidence: String,
}

/// Whether a claim is so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is, by the printed rules.
    Holds,
    /// It is not by the printed rules, but it is by the repaired ones.
    HoldsAfterRepair,
    /// It is not.
    Fails,
}

impl Verdict {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsAfterRepair => "holds after repair",
            Verdict::Fails => "fails",
        }
    }

    /// From what is so by the printed rules and by the repaired ones.
    pub fn of(published: bool, repaired: bool) -> Self {
        match (published, repaired) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::HoldsAfterRepair,
            (false, false) => Verdict::Fails,
        }
    }
}

/// A claim and what came of examining it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Examined {
    /// Whose paper it is.
    #[serde(serialize_with = "name")]
    pub paper: Kind,
    /// Where it is said.
    pub section: &'static str,
    /// What is said.
    pub claimed: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

fn name<S: serde::Serializer>(paper: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(paper.info().name)
}

/// The papers whose claims are examined, in the order of [`all`].
pub const PAPERS: [Kind; 5] = [
    Kind::ChaudhuriKaraata,
    Kind::Maekawa,
    Kind::Raymond,
    Kind::Neamatollahi,
    Kind::LodhaKshemkalyani,
];

/// All claims, in the order of the papers and of their sections.
pub fn all() -> Vec<Claim> {
    [
        chaudhuri_karaata::claims(),
        maekawa::claims(),
        raymond::claims(),
        neamatollahi::claims(),
        lodha_kshemkalyani::claims(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Examines claims on all cores; `progress` is called once for each that is done.
pub fn examine(claims: &[Claim], progress: &(dyn Fn() + Sync)) -> Vec<Examined> {
    let examined = claims.par_iter().map(|claim| {
        let finding = (claim.examine)();
        progress();
        Examined {
            paper: claim.paper,
            section: claim.section,
            claimed: claim.claimed,
            finding,
        }
    });
    examined.collect()
}

/// What was examined, paper by paper; they must be in the order of [`all`].
pub fn by_paper(examined: &[Examined]) -> impl Iterator<Item = (Kind, &[Examined])> {
    let papers = examined.chunk_by(|one, other| one.paper == other.paper);
    papers.map(|claims| (claims[0].paper, claims))
}
