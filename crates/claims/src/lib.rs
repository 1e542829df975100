//! The claims of the five papers, checked by measurement and search. One module per paper.
//!
//! Each claim is examined afresh, with the same simulator and search that users have. Figures and
//! the verdicts holds, withstood and fails are computed; that a claim is open is our judgement
//! ([`Verdict::is_open`]).

#![warn(clippy::iter_over_hash_type)]

mod chance;
mod chaudhuri_karaata;
pub mod comparison;
mod evidence;
mod exact;
mod lodha_kshemkalyani;
mod maekawa;
pub mod markdown;
mod neamatollahi;
mod pairs;
mod raymond;
pub mod reproduce;
mod share;
mod single;
mod tools;
mod watch;
mod worst;

use rayon::prelude::*;
use serde::Serialize;
use soloist_algorithms::Kind;

/// A statement of a paper about its algorithm.
#[derive(Debug)]
pub struct Claim {
    /// The algorithm of the paper.
    pub paper: Kind,
    /// Where the paper makes it: "§4.1", "Theorem 4".
    pub section: &'static str,
    /// The statement, in our words.
    pub claimed: &'static str,
    /// Examines the claim by measurement or search.
    pub examine: fn() -> Finding,
}

/// Result of examining a claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// What was measured or searched, with sizes and figures, in one line.
    pub found: String,
    /// How to reproduce it: a command of this project, or the file of a scenario.
    pub evidence: String,
    /// What would decide the claim, if the verdict leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds for the printed rules.
    Holds,
    /// It was measured for the printed rules, or where repairs do not matter, and nothing speaks
    /// against it. That is neither a search nor a proof.
    Withstood,
    /// It does not hold for the printed rules, but it does for the repaired ones.
    HoldsAfterRepair,
    /// It holds for neither.
    Fails,
    /// Neither shown nor refuted.
    NotDecided,
    /// The paper assumes it and does not claim it. The finding says which rules need it.
    Assumption,
    /// It holds in one reading of the paper, and does not in another.
    DependsOnReading,
}

impl Verdict {
    /// All verdicts, from the weakest.
    pub const ALL: [Verdict; 7] = [
        Verdict::Fails,
        Verdict::NotDecided,
        Verdict::Assumption,
        Verdict::DependsOnReading,
        Verdict::HoldsAfterRepair,
        Verdict::Withstood,
        Verdict::Holds,
    ];

    /// How much the verdict grants the paper, from 0.
    pub fn strength(self) -> usize {
        let place = Self::ALL.iter().position(|verdict| *verdict == self);
        place.expect("all verdicts are listed")
    }

    /// Text for people.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Withstood => "withstood",
            Verdict::HoldsAfterRepair => "holds after repair",
            Verdict::Fails => "fails",
            Verdict::NotDecided => "not decided",
            Verdict::Assumption => "assumption",
            Verdict::DependsOnReading => "depends on reading",
        }
    }

    /// Whether the claim is left open, so that the finding says what would decide it.
    pub fn is_open(self) -> bool {
        matches!(
            self,
            Verdict::NotDecided | Verdict::Assumption | Verdict::DependsOnReading
        )
    }

    /// Verdict from whether the claim holds for the printed and for the repaired rules.
    pub fn of(published: bool, repaired: bool) -> Self {
        match (published, repaired) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::HoldsAfterRepair,
            (false, false) => Verdict::Fails,
        }
    }
}

/// A claim and the result of examining it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Examined {
    /// The algorithm of the paper.
    #[serde(serialize_with = "name")]
    pub paper: Kind,
    /// Where the paper makes the claim.
    pub section: &'static str,
    /// The claim, in our words.
    pub claimed: &'static str,
    /// Result of examining it.
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

impl Claim {
    /// Returns whether the claim is made there: the section as given, or one of several.
    pub fn is_in(&self, section: &str) -> bool {
        self.section == section || self.section.split(", ").any(|one| one == section)
    }
}

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

/// Examines claims on all cores. Calls `progress` once per examined claim.
pub fn examine(claims: &[Claim], progress: &(dyn Fn() + Sync)) -> Vec<Examined> {
    let examined = claims.par_iter().map(|claim| {
        let finding = (claim.examine)().not_rounded_up();
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

/// Groups results by paper. They must be in the order of [`all`].
pub fn by_paper(examined: &[Examined]) -> impl Iterator<Item = (Kind, &[Examined])> {
    let papers = examined.chunk_by(|one, other| one.paper == other.paper);
    papers.map(|claims| (claims[0].paper, claims))
}
