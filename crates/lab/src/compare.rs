//! Compares algorithms under the same demand.

use rayon::prelude::*;
use serde::Serialize;

use crate::replicate::{Estimate, Plan, Replicated, replicate};
use crate::simulate::{Setup, SimulateError};

/// Replications of one setup, and how they differ from those of the first comparable one.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The replications.
    #[serde(flatten)]
    pub replicated: Replicated,
    /// The difference from the first run with as many nodes under the same load. `None` for that
    /// run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// How much larger means are than those of another algorithm. Runs of the same seed have the same
/// demand and are compared in pairs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The other algorithm, with its variants, and its shape.
    pub from: String,
    /// Difference of messages per entry.
    pub messages_per_entry: Estimate,
    /// Difference of mean response times.
    pub response_time_mean: Estimate,
    /// Difference of mean synchronisation delays, in the pairs in which both runs have a
    /// hand-over. `None` if fewer than two have.
    pub sync_delay_mean: Option<Estimate>,
}

impl Difference {
    fn between(own: &Replicated, other: &Replicated) -> Self {
        Difference {
            from: format!("{}, {}", other.report.label(), other.report.shape),
            messages_per_entry: own.difference(other, |m| m.messages_per_entry),
            response_time_mean: own.difference(other, |m| m.response_time.mean),
            sync_delay_mean: own.difference_if_any(other, |m| m.sync_delay.mean_if_any()),
        }
    }
}

/// Replicates all setups, on all cores, and returns the results in the order of the setups. Calls
/// `done` after each replication.
pub fn compare(
    setups: &[Setup],
    plan: &Plan,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Compared>, SimulateError> {
    let all: Result<Vec<_>, _> = setups
        .par_iter()
        .map(|setup| replicate(setup, plan, done))
        .collect();
    let all = all?;
    let comparable = |one: &Replicated, other: &Replicated| {
        one.report.nodes == other.report.nodes && one.report.load == other.report.load
    };
    let differences: Vec<_> = (0..all.len())
        .map(|index| {
            let earlier = all[..index].iter().find(|one| comparable(one, &all[index]));
            earlier.map(|earlier| Difference::between(&all[index], earlier))
        })
        .collect();
    let pairs = all.into_iter().zip(differences);
    let compared = pairs.map(|(replicated, difference)| Compared {
        replicated,
        difference,
    });
    Ok(compared.collect())
}
