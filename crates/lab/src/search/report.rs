//! Reports of searches.

use std::fmt::Write as _;

use serde::Serialize;

use super::Outcome;
use super::worst::{Aim, Worst};
use crate::report::{cost, label};
use crate::scenario;

/// What was searched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// The algorithm, or the preset that stands for it.
    pub algorithm: &'static str,
    /// The variants in use, separated by commas.
    pub variant: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The shape of the cluster.
    pub shape: String,
    /// Whether messages arrive in the order sent.
    pub channels: String,
    /// How often each node that requests may request at most; `None` for no limit.
    pub requests: Option<u8>,
    /// How often each node may request, if some of those that request may do so less often than
    /// others; `None` in the list for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_by_node: Option<Vec<Option<u8>>>,
    /// The nodes that request.
    pub requesters: Vec<usize>,
    /// Where the token starts.
    pub home: usize,
    /// The node that starts inside, if any.
    pub inside: Option<usize>,
    /// How many crashes there may be; `None` for no limit.
    pub crashes: Option<u8>,
    /// The nodes that may crash, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash_nodes: Option<Vec<usize>>,
    /// Whether messages that arrive at a crashed node may be lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub loses_messages: bool,
    /// Whether a crashed node restarts only when no message to it is in flight either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub long_wait: bool,
    /// Whether nodes know whether they will request again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub known_requests: bool,
    /// Whether quiescent nodes may be forgotten.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// What was searched.
    #[serde(flatten)]
    pub setting: Setting,
    /// The verdict.
    pub verdict: Verdict,
    /// Description of the violation, or of the limit that was reached; `None` if everything holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Number of states visited; `None` if a violation was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<usize>,
    /// Number of transitions between them; `None` unless all were visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transitions: Option<usize>,
    /// Whether endless runs were searched for as well.
    pub endless_runs: bool,
    /// Number of steps that were not followed because too many messages would be in flight.
    pub cut: usize,
    /// A scenario that reproduces the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

impl Setting {
    /// The algorithm with its variants for display: "raymond (greedy)".
    pub fn label(&self) -> String {
        label(self.algorithm, &self.variant)
    }

    /// How often the nodes may request, for display in a table: "2 by 0,1" or "2,1,0".
    pub fn quota(&self) -> String {
        let text = |requests: Option<u8>| match requests {
            Some(requests) => requests.to_string(),
            None => "endless".to_owned(),
        };
        if let Some(each) = &self.requests_by_node {
            let each: Vec<_> = each.iter().copied().map(text).collect();
            return each.join(",");
        }
        let requests = text(self.requests);
        if self.requesters.len() == self.nodes {
            return requests;
        }
        format!("{requests} by {}", join(&self.requesters))
    }

    /// The crashes that there may be, for display: "2 crashes of 0,1". Empty if there are none.
    pub fn crashes_text(&self) -> String {
        let mut text = match self.crashes {
            None => "endless crashes".to_owned(),
            Some(0) => return String::new(),
            Some(1) => "one crash".to_owned(),
            Some(crashes) => format!("{crashes} crashes"),
        };
        if let Some(nodes) = &self.crash_nodes {
            text += &format!(" of {}", join(nodes));
        }
        if self.loses_messages {
            text += " with losses";
        }
        if self.long_wait {
            text += ", a long wait before each restart";
        }
        text
    }
}

fn join(nodes: &[usize]) -> String {
    let nodes: Vec<_> = nodes.iter().map(usize::to_string).collect();
    nodes.join(",")
}

/// The verdict of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every state was visited, and everything holds.
    Holds,
    /// A safety property is violated.
    Broken,
    /// A node waits, and nothing more can happen.
    Deadlock,
    /// A node may wait forever while others continue.
    Starvation,
    /// No node wants to enter, and yet messages continue forever.
    Unrest,
    /// Not every state was visited; no violation so far.
    NotExhausted,
}

impl Verdict {
    /// Text for users.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Broken => "broken",
            Verdict::Deadlock => "deadlock",
            Verdict::Starvation => "starvation",
            Verdict::Unrest => "unrest",
            Verdict::NotExhausted => "not exhausted",
        }
    }

    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Holds { cut: 0, .. } => Verdict::Holds,
            Outcome::Holds { .. } => Verdict::NotExhausted,
            Outcome::NotExhausted { .. } => Verdict::NotExhausted,
            Outcome::Broken { fault, .. } if fault.is_deadlock() => Verdict::Deadlock,
            Outcome::Starved { cycle, .. } if cycle.is_empty() => Verdict::Deadlock,
            Outcome::Broken { .. } => Verdict::Broken,
            Outcome::Starved { .. } => Verdict::Starvation,
            Outcome::Restless { .. } => Verdict::Unrest,
        }
    }
}

/// The worst case that a search found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorstReport {
    /// What was searched.
    #[serde(flatten)]
    pub setting: Setting,
    /// What was to be as large as possible: messages or overtaking.
    pub aim: &'static str,
    /// What is known of the worst case.
    pub verdict: WorstVerdict,
    /// How often a waiter is overtaken at most, if there is a limit; or the messages of the
    /// complete run with the most messages per entry, or of the cycle if requests are endless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Number of entries on that run or cycle; with messages, 0 if no run is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Number of states visited; `None` if a node refused a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<usize>,
    /// Why nothing is known, or what was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// A scenario that reproduces the worst case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// What is known of the worst case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorstVerdict {
    /// The largest value over all runs: how often a waiter is overtaken, or the messages per entry
    /// of complete runs.
    Most,
    /// The largest number of messages per entry over all endless fair runs.
    PerEntry,
    /// There is no largest value.
    Unbounded,
    /// A node refused what a correct peer sent.
    Broken,
    /// Not every state was visited, so nothing is known.
    NotExhausted,
}

impl Aim {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Aim::Messages => "messages",
            Aim::Overtaking => "overtaking",
        }
    }
}

impl WorstReport {
    pub(super) fn new(setting: Setting, head: &str, aim: Aim, worst: Worst) -> Self {
        let mut report = WorstReport {
            setting,
            aim: aim.name(),
            verdict: WorstVerdict::NotExhausted,
            most: None,
            entries: None,
            states: None,
            what: None,
            transcript: None,
        };
        let (what, trace, cycle) = match worst {
            Worst::Most {
                most,
                entries,
                states,
                trace,
            } => {
                report.verdict = WorstVerdict::Most;
                (report.most, report.entries) = (Some(most), Some(entries));
                report.states = Some(states);
                let what = match aim {
                    Aim::Messages => cost(most, entries),
                    Aim::Overtaking => format!("one waiter is overtaken {most} times"),
                };
                (what, trace, Vec::new())
            }
            Worst::Ratio {
                messages,
                entries,
                states,
                trace,
                cycle,
            } => {
                report.verdict = WorstVerdict::PerEntry;
                (report.most, report.entries) = (Some(messages), Some(entries));
                report.states = Some(states);
                let what = format!("{}, over and over", cost(messages, entries));
                (what, trace, cycle)
            }
            Worst::Unbounded {
                states,
                trace,
                cycle,
            } => {
                report.verdict = WorstVerdict::Unbounded;
                report.states = Some(states);
                (format!("no bound on {}", aim.name()), trace, cycle)
            }
            Worst::Broken { fault, trace } => {
                report.verdict = WorstVerdict::Broken;
                report.what = Some(fault.to_string());
                (fault.to_string(), trace, Vec::new())
            }
            Worst::NotExhausted { states, limit } => {
                report.what = Some(limit.text().to_owned());
                report.states = Some(states);
                return report;
            }
        };
        report.transcript = Some(transcript(head, &what, &trace, &cycle));
        report
    }
}

/// Builds the scenario of a trace, with the transcript of each step.
pub(super) fn transcript(head: &str, what: &str, trace: &[String], cycle: &[String]) -> String {
    let script = script(head, what, trace, cycle);
    scenario::replay(&script).expect("a trace can be replayed")
}

/// Like [`transcript`], for a search with reduced counters. If the order of the real counters
/// departs from that of the reduced ones, it returns the steps alone.
pub(super) fn reduced_transcript(
    head: &str,
    what: &str,
    trace: &[String],
    cycle: &[String],
) -> String {
    let script = script(head, what, trace, cycle);
    scenario::replay(&script).unwrap_or_else(|_| {
        format!("# With counters reduced to their differences; a replay departs from it.\n{script}")
    })
}

fn script(head: &str, what: &str, trace: &[String], cycle: &[String]) -> String {
    let mut script = format!("# {what}\n{head}\n> start\n");
    for step in trace {
        let _ = writeln!(script, "> {step}");
    }
    if !cycle.is_empty() {
        script.push_str("# from here on, repeated forever:\n");
        for step in cycle {
            let _ = writeln!(script, "> {step}");
        }
    }
    let _ = writeln!(script, "# {what}");
    script
}
