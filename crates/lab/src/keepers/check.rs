//! Searches of every interleaving of the model.

use std::fmt::Write as _;
use std::str::FromStr;

use serde::Serialize;

use super::action::{Action, all, apply};
use super::disk::IDS_MAX;
use super::progress::{self, Progress};
use super::setup::{Budget, Setup, Variants};
use super::state::State;
use super::text;
use crate::breadth_first::{self, Finding, Space, fingerprint};
use crate::epochs::setup::names;
use crate::search::Verdict;

/// The violation that a majority of the keepers is up but cannot make progress.
pub const STUCK: &str = "a majority of the keepers is up, but none can lead";

/// A cluster, and what may happen to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// One of three keepers is down and may return. One may be replaced by another node. One
    /// machine may be re-imaged.
    ReplacedKeeper,
    /// One of three keepers is down and may return. A demoted node may be promoted again.
    SecondPromotion,
    /// Three first keepers form a cluster, and one of them may be re-imaged.
    Bootstrap,
    /// The only keeper is replaced, and its machine is deployed again as at first.
    SoleKeeper,
    /// All three keepers go down, and one of them is recovered. The others return later.
    Recovery,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 5] = [
        Preset::ReplacedKeeper,
        Preset::SecondPromotion,
        Preset::Bootstrap,
        Preset::SoleKeeper,
        Preset::Recovery,
    ];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Preset::ReplacedKeeper => "replaced-keeper",
            Preset::SecondPromotion => "second-promotion",
            Preset::Bootstrap => "bootstrap",
            Preset::SoleKeeper => "sole-keeper",
            Preset::Recovery => "recovery",
        }
    }

    /// The cluster, and what may happen to it.
    pub fn setup(self) -> Setup {
        let three = Setup {
            names: names(3),
            first: 3,
            starts_founded: true,
            redeploys: false,
            partitions: true,
            down: Vec::new(),
            checks_progress: true,
            budget: Budget::default(),
            variants: Variants::default(),
        };
        match self {
            Preset::ReplacedKeeper => Setup {
                names: names(4),
                down: vec![2],
                partitions: false,
                budget: Budget {
                    promotions: 1,
                    demotions: 1,
                    crashes: 1,
                    reimages: 1,
                    elections: 2,
                    ..Budget::default()
                },
                ..three
            },
            Preset::SecondPromotion => Setup {
                budget: Budget {
                    promotions: 2,
                    demotions: 1,
                    elections: 2,
                    ..Budget::default()
                },
                ..Preset::ReplacedKeeper.setup()
            },
            Preset::Bootstrap => Setup {
                starts_founded: false,
                budget: Budget {
                    promotions: 3,
                    crashes: 1,
                    reimages: 1,
                    elections: 2,
                    ..Budget::default()
                },
                ..three
            },
            Preset::SoleKeeper => Setup {
                first: 1,
                redeploys: true,
                budget: Budget {
                    promotions: 1,
                    demotions: 1,
                    crashes: 1,
                    reimages: 1,
                    elections: 3,
                    ..Budget::default()
                },
                ..three
            },
            Preset::Recovery => Setup {
                down: vec![2],
                partitions: false,
                budget: Budget {
                    crashes: 2,
                    recoveries: 1,
                    elections: 3,
                    ..Budget::default()
                },
                ..three
            },
        }
    }
}

/// A text that names no case.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("use {}", Preset::ALL.map(Preset::name).join(", "))]
pub struct NotAPreset;

impl FromStr for Preset {
    type Err = NotAPreset;

    fn from_str(text: &str) -> Result<Self, NotAPreset> {
        let mut all = Preset::ALL.into_iter();
        all.find(|preset| preset.name() == text).ok_or(NotAPreset)
    }
}

/// A search.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The cluster, and what may happen to it.
    pub setup: Setup,
    /// Gives up after this many states.
    pub states_max: usize,
}

/// Why a case cannot be searched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// More keepers than the model can number.
    #[error(
        "up to {needed} keepers' ids may be needed, and a search has {IDS_MAX}: \
         allow fewer promotions, recoveries or re-imaged machines"
    )]
    Ids {
        /// The number of ids.
        needed: usize,
    },
}

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The case.
    pub case: &'static str,
    /// Rules that were broken.
    pub variant: String,
    /// Number of machines.
    pub nodes: usize,
    /// Number of first keepers.
    pub keepers: usize,
    /// What may have happened.
    pub budget: Budget,
    /// Whether messages reached any subset of the keepers.
    pub partitions: bool,
    /// Whether progress was checked.
    pub checks_progress: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of states visited.
    pub states: usize,
    /// What is violated, or why the search was not exhausted.
    pub what: Option<String>,
    /// A shortest way to the violation, as text that [`text::replay`] takes.
    pub text: Option<String>,
}

impl Case {
    /// Default limit on the number of states.
    pub const STATES_MAX: usize = 50_000_000;

    /// A search of this preset.
    pub fn new(preset: Preset) -> Self {
        Case {
            name: preset.name(),
            setup: preset.setup(),
            states_max: Self::STATES_MAX,
        }
    }

    fn check_ids(&self) -> Result<(), CaseError> {
        let Setup { first, budget, .. } = &self.setup;
        let founded = match (self.setup.starts_founded, self.setup.redeploys) {
            (true, false) => *first,
            (true, true) => first + usize::from(budget.reimages),
            (false, _) => 1 + usize::from(budget.reimages),
        };
        let needed = founded + usize::from(budget.promotions) + usize::from(budget.recoveries);
        match needed > IDS_MAX {
            true => Err(CaseError::Ids { needed }),
            false => Ok(()),
        }
    }

    /// Searches. Calls `watch` from time to time, which returns whether to continue.
    pub fn run(
        &self,
        watch: &mut dyn FnMut(breadth_first::Progress) -> bool,
    ) -> Result<Report, CaseError> {
        self.check_ids()?;
        let setup = &self.setup;
        let progress = Progress::new(setup);
        let first = Search {
            setup,
            progress: &progress,
            state: State::new(setup),
        };
        let text = |actions: &[Action], violation: &str| self.text(actions, violation);
        let found = breadth_first::find(first, self.states_max, watch, text);
        let is_stuck = found.what.as_deref() == Some(STUCK);
        let Finding {
            verdict,
            states,
            what,
            text,
        } = found;
        Ok(Report {
            case: self.name,
            variant: setup.variants.to_string(),
            nodes: setup.names.len(),
            keepers: setup.first,
            budget: setup.budget,
            partitions: setup.partitions,
            checks_progress: setup.checks_progress,
            verdict: if is_stuck { Verdict::Deadlock } else { verdict },
            states,
            what,
            text,
        })
    }

    /// A way to a violation as text, with its transcript.
    fn text(&self, actions: &[Action], violation: &str) -> String {
        let setup = &self.setup;
        let mut script = format!("# {violation}\n{}\n", text::head(setup));
        let mut state = State::new(setup);
        for action in actions {
            let _ = writeln!(script, "> {}", action.step(setup, &state));
            // Only the last step may break something.
            let _ = apply(setup, &mut state, *action);
        }
        if violation == STUCK {
            let _ = writeln!(script, "> finish");
        }
        text::replay(&script).expect("a way to a violation is a text")
    }
}

/// A state of the search.
#[derive(Clone)]
struct Search<'a> {
    setup: &'a Setup,
    progress: &'a Progress,
    state: State,
}

impl Space for Search<'_> {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        all(self.setup, &self.state)
    }

    fn apply(&mut self, action: Action) -> Result<(), String> {
        apply(self.setup, &mut self.state, action)
    }

    fn check(&self) -> Result<(), String> {
        let must_go_on = self.setup.checks_progress && progress::is_required(&self.state);
        match must_go_on && !self.progress.is_possible(&self.state) {
            true => Err(STUCK.to_owned()),
            false => Ok(()),
        }
    }

    fn fingerprint(&self) -> u128 {
        fingerprint(&self.state)
    }
}
