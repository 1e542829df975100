//! The measures of several replications, each as a mean with its interval or as a maximum.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Estimate, Largest};
use crate::simulate::{Measures, Summary};

/// What replications measured: [`Measures`] with intervals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Number of entries that each replication measured.
    pub entries: u64,
    /// Messages per entry.
    pub messages_per_entry: Estimate,
    /// The same messages by the paper's names for them, per entry.
    pub messages_by_kind_per_entry: BTreeMap<&'static str, Estimate>,
    /// A restless token's moves while no node waits or is inside, per message delay of such time.
    pub idle_messages_per_time: Estimate,
    /// Encoded bytes of the messages per entry.
    pub bytes_per_entry: Estimate,
    /// From request to entry. Under an open load, from the arrival of the demand.
    pub response_time: SpanFigures,
    /// From a release while others wait to the next entry, in the replications that have such a
    /// hand-over. `None` if fewer than two have.
    pub sync_delay: Option<SpanFigures>,
    /// Number of replications without a hand-over, which the synchronisation delay leaves out.
    pub without_hand_over: u64,
    /// How evenly the nodes were served.
    pub fairness: FairnessFigures,
    /// Messages received per node, without idle moves.
    pub node_load: NodeLoadFigures,
}

/// Durations in message delays. Each replication gives one mean, one median, one percentile.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SpanFigures {
    /// The mean.
    pub mean: Estimate,
    /// The median.
    pub p50: Estimate,
    /// The 99th percentile.
    pub p99: Estimate,
    /// The maximum over all replications.
    pub max: Largest,
}

/// How evenly the nodes were served.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FairnessFigures {
    /// Jain's index of the nodes' entries, one per replication.
    pub jain: Estimate,
    /// The maximum number of times that a waiter was overtaken, of all entries.
    pub max_overtaken: Largest,
}

/// Messages received per node.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NodeLoadFigures {
    /// The average.
    pub mean: Estimate,
    /// The maximum, of all nodes in all replications.
    pub max: Largest,
}

impl Figures {
    /// Summarises what the replications measured.
    pub(super) fn of(singles: &[Measures], nodes: usize, level: f64) -> Self {
        let estimate = |measure: &dyn Fn(&Measures) -> f64| {
            let values: Vec<_> = singles.iter().map(measure).collect();
            Estimate::of(&values, level)
        };
        let response_times: Vec<_> = singles.iter().map(|m| m.response_time).collect();
        let sync_delays = singles.iter().map(|single| single.sync_delay);
        let sync_delays: Vec<_> = sync_delays.filter(|delay| delay.count > 0).collect();
        let kinds = singles[0].messages_by_kind.keys().map(|&kind| {
            let per_entry = estimate(&|single| {
                single.messages_by_kind[kind] as f64 / single.entries.max(1) as f64
            });
            (kind, per_entry)
        });
        Figures {
            entries: singles[0].entries,
            messages_per_entry: estimate(&|single| single.messages_per_entry),
            messages_by_kind_per_entry: kinds.collect(),
            idle_messages_per_time: estimate(&|single| single.idle_messages_per_time),
            bytes_per_entry: estimate(&|single| single.bytes_per_entry),
            response_time: spans(&response_times, level),
            sync_delay: (sync_delays.len() >= 2).then(|| spans(&sync_delays, level)),
            without_hand_over: (singles.len() - sync_delays.len()) as u64,
            fairness: FairnessFigures {
                jain: estimate(&|single| single.fairness.jain),
                max_overtaken: largest(singles, |single| {
                    (single.fairness.max_overtaken as f64, single.entries)
                }),
            },
            node_load: NodeLoadFigures {
                mean: estimate(&|single| single.node_load.mean),
                max: largest(singles, |single| {
                    (single.node_load.max as f64, nodes as u64)
                }),
            },
        }
    }
}

/// The durations of several replications, at least two.
fn spans(summaries: &[Summary], level: f64) -> SpanFigures {
    let estimate = |value: fn(&Summary) -> f64| {
        let values: Vec<_> = summaries.iter().map(value).collect();
        Estimate::of(&values, level)
    };
    SpanFigures {
        mean: estimate(|summary| summary.mean),
        p50: estimate(|summary| summary.p50),
        p99: estimate(|summary| summary.p99),
        max: largest(summaries, |summary| (summary.max, summary.count)),
    }
}

/// The largest of the replications' maxima, each given with the size of its sample.
fn largest<T>(singles: &[T], of: impl Fn(&T) -> (f64, u64)) -> Largest {
    let all = singles.iter().map(of);
    let start = Largest {
        value: 0.0,
        sample: 0,
    };
    all.fold(start, |largest, (value, sample)| Largest {
        value: largest.value.max(value),
        sample: largest.sample + sample,
    })
}
