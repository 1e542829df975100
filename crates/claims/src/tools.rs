//! Tools for examining claims: runs and searches that know the command that repeats them.

use soloist_algorithms::{Algorithm, Channels, Choice, NodeId, Shape, Start, Variant};
use soloist_lab::ShapeSpec;
use soloist_lab::replicate::{Estimate, Plan, Replicated, replicate};
use soloist_lab::scenario::{first_difference, replay};
use soloist_lab::search::{Bounds, Crashes, ENDLESS, Limits, Outcome, search};
use soloist_lab::simulate::{Load, Measures, Report, Setup, simulate};
use soloist_lab::world::Fault;

use super::{Finding, Verdict};
pub(super) use crate::evidence::{examined_again, proved, scenario};

/// A run to be measured, and the commands that repeat it: one whole run, or replications with
/// intervals at the level of verdicts.
#[derive(Clone)]
pub(super) struct Run {
    setup: Setup,
    plan: Plan,
    options: Vec<String>,
}

/// Default number of measured entries of a replication.
const ENTRIES: u64 = 1000;

/// Replications for verdicts. The warm-up is short, so that examining all claims ends in reasonable
/// time; a run that is not steady after it is refused.
pub(super) const PLAN: Plan = Plan {
    seeds: Plan::SEEDS_MIN,
    precision: None,
    level: Plan::VERDICT_LEVEL,
    warm_up: Some(WARM_UP_MIN),
};

/// Entries before the measured ones, per node and at least.
const WARM_UP_PER_NODE: u64 = 4;
const WARM_UP_MIN: u64 = 500;

impl Run {
    /// A run under heavy load, with the other defaults of `lab run`. Variants follow a plus sign:
    /// `raymond+piggyback`.
    pub(super) fn of(algorithm: &str, nodes: usize) -> Self {
        let (name, variants) = algorithm.split_once('+').unwrap_or((algorithm, ""));
        let variants = variants.replace('+', ",");
        let choice = Choice::parse(name, &variants).expect("a known algorithm");
        let mut run = Run {
            setup: Setup::new(choice, nodes),
            plan: Plan {
                warm_up: Some(WARM_UP_MIN.max(WARM_UP_PER_NODE * nodes as u64)),
                ..PLAN
            },
            options: vec![format!("--algorithm {name}")],
        };
        if !variants.is_empty() {
            run.options.push(format!("--variant {variants}"));
        }
        run.option("nodes", nodes)
    }

    fn option(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.options.push(format!("--{name} {value}"));
        self
    }

    /// Sets the arrangement of the nodes: a form of the shape.
    pub(super) fn shape(mut self, form: &str) -> Self {
        self.setup.shape = ShapeSpec::Form(form.to_owned());
        self.option("shape", form)
    }

    /// Sets the load. A burst has one entry per node.
    pub(super) fn load(mut self, load: &str) -> Self {
        self.setup.load = load.parse().expect("a valid load");
        if load == "burst" {
            self.setup.entries = self.setup.nodes as u64;
        }
        self.option("load", load)
    }

    /// Sets the delay of messages.
    pub(super) fn delay(mut self, delay: &str) -> Self {
        self.setup.delay = delay.parse().expect("a valid delay");
        self.option("delay", delay)
    }

    /// Sets how long a node stays inside.
    pub(super) fn hold(mut self, hold: &str) -> Self {
        self.setup.hold = hold.parse().expect("a valid hold");
        self.option("hold", hold)
    }

    /// Sets the number of entries. A burst has its own.
    pub(super) fn entries(mut self, entries: u64) -> Self {
        self.setup.entries = entries;
        self.option("entries", entries)
    }

    /// Sets the number of entries before the measured ones.
    pub(super) fn warm_up(mut self, entries: u64) -> Self {
        self.plan.warm_up = Some(entries);
        self
    }

    /// Sets the node where the token starts.
    pub(super) fn home(mut self, home: usize) -> Self {
        self.setup.start = Start::idle(NodeId::from_index(home));
        self.option("home", home)
    }

    /// Sets the seed of all randomness.
    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        self.option("seed", seed)
    }

    /// Runs the simulation once, from start to end, and returns its report, well or not.
    pub(super) fn report(&self) -> Report {
        simulate(&self.setup, &mut |_| ()).expect("a run that can be simulated")
    }

    /// Messages per entry of one run from start to end. Panics if it does not go well.
    pub(super) fn cost(&self) -> f64 {
        let report = self.report();
        assert!(report.is_well(), "{}: {report:#?}", self.command());
        report.measures.messages_per_entry
    }

    /// One value for each of the first ten seeds, each of a run from start to end. Panics if a run
    /// does not go well.
    pub(super) fn per_seed(&self, value: impl Fn(&Report) -> f64) -> Vec<f64> {
        let run = |seed| {
            let report = self.clone().seed(seed).report();
            assert!(report.is_well(), "{}: {report:#?}", self.command());
            value(&report)
        };
        (1..=self.plan.seeds).map(run).collect()
    }

    /// The command that repeats one run.
    pub(super) fn command(&self) -> String {
        format!("soloist lab run {} --seeds 1", self.options.join(" "))
    }

    /// Replicates the run. Panics if one replication does not go well, or if the load is not
    /// steady after the warm-up.
    pub(super) fn replicated(&self) -> Replicated {
        let replicated = replicate(&self.steady_setup(), &self.plan, &|| ());
        let replicated = replicated.expect("a run that can be simulated");
        let warnings = replicated.warnings();
        let command = self.steady_command();
        assert!(replicated.is_well(), "{command}: {:#?}", replicated.report);
        assert!(warnings.is_empty(), "{command}: {warnings:?}");
        replicated
    }

    /// Messages per entry.
    pub(super) fn messages(&self) -> Estimate {
        self.replicated().report.measures.messages_per_entry
    }

    /// A measure that each replication has one value of.
    pub(super) fn measure(&self, measure: impl Fn(&Measures) -> f64) -> Estimate {
        self.replicated().estimate(measure)
    }

    /// The command that repeats the replications.
    pub(super) fn steady_command(&self) -> String {
        let mut options = self.options.clone();
        if self.needs_entries() {
            options.push(format!("--entries {ENTRIES}"));
        }
        if let Some(warm_up) = self.plan.warm_up.filter(|_| self.setup.load != Load::Burst) {
            options.push(format!("--warm-up {warm_up}"));
        }
        format!("soloist lab run {} --level 99.9%", options.join(" "))
    }

    /// The setup of a replication: with its own default number of entries, since there are several.
    fn steady_setup(&self) -> Setup {
        let mut setup = self.setup.clone();
        if self.needs_entries() {
            setup.entries = ENTRIES;
        }
        setup
    }

    fn needs_entries(&self) -> bool {
        let is_given = |option: &String| option.starts_with("--entries ");
        self.setup.load != Load::Burst && !self.options.iter().any(is_given)
    }
}

/// A search of every interleaving, and the command that repeats it.
pub(super) struct Search<A: Algorithm> {
    bounds: Bounds<A::Shape>,
    options: Vec<String>,
}

/// Result of a search or of a check of fairness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Searched {
    /// Every interleaving was visited, and there is no fault.
    Well,
    /// Two nodes are inside.
    TwoInside,
    /// Another fault, as text. The search ended there.
    Broken(String),
    /// Another fault, as text. The search continued and never found two nodes inside.
    Amiss(String),
    /// No step is possible, and a node waits.
    Deadlock,
    /// A node may wait forever while others enter and leave.
    Starved,
    /// Never quiescent: no node wants to enter, yet messages are sent forever.
    Restless,
    /// Too large to be searched, so nothing is known.
    Unknown,
}

impl Searched {
    /// Returns whether two nodes are never inside: the search was exhaustive, whatever else it
    /// found.
    pub(super) fn is_safe(&self) -> bool {
        !matches!(
            self,
            Searched::TwoInside | Searched::Broken(_) | Searched::Unknown
        )
    }

    /// Returns whether there is no fault and every request is served.
    pub(super) fn is_well(&self) -> bool {
        *self == Searched::Well
    }

    /// Text for people.
    pub(super) fn text(&self) -> String {
        match self {
            Searched::Well => "all well".to_owned(),
            Searched::TwoInside => "two nodes inside".to_owned(),
            Searched::Broken(what) | Searched::Amiss(what) => what.clone(),
            Searched::Deadlock => "a deadlock".to_owned(),
            Searched::Starved => "a node waits forever".to_owned(),
            Searched::Restless => "messages never stop although no node requests".to_owned(),
            Searched::Unknown => "too large to be searched".to_owned(),
        }
    }

    fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::TwoInside { .. } => Searched::TwoInside,
            Fault::Deadlock(_) => Searched::Deadlock,
            other if other.is_minor() => Searched::Amiss(other.to_string()),
            other => Searched::Broken(other.to_string()),
        }
    }
}

impl From<Outcome> for Searched {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Holds { cut: 0, .. } => Searched::Well,
            Outcome::Broken { fault, .. } => Searched::of_fault(&fault),
            Outcome::Starved { .. } => Searched::Starved,
            Outcome::Restless { .. } => Searched::Restless,
            Outcome::Holds { .. } | Outcome::NotExhausted { .. } => Searched::Unknown,
        }
    }
}

/// A number of requests or crashes, as an option has it.
fn often(number: u8) -> String {
    match number {
        ENDLESS => "endless".to_owned(),
        number => number.to_string(),
    }
}

impl<A: Algorithm> Search<A> {
    /// Larger searches are abandoned, so that examining all claims ends in reasonable time.
    const STATES_MAX: usize = 1_000_000;

    /// A search in which node i makes `requests[i]` requests.
    pub(super) fn of(requests: &[u8]) -> Self {
        let mut quotas: Vec<_> = requests.iter().copied().map(often).collect();
        if quotas.iter().all(|quota| *quota == quotas[0]) {
            quotas.truncate(1);
        }
        let options = vec![
            format!("--algorithm {}", A::INFO.name),
            format!("--nodes {}", requests.len()),
            format!("--requests {}", quotas.join(",")),
        ];
        Search {
            bounds: Bounds {
                limits: Limits {
                    states_max: Self::STATES_MAX,
                    ..Limits::new(A::INFO.channels)
                },
                ..Bounds::of::<A>(requests)
            },
            options,
        }
    }

    /// Sets the arrangement of the nodes: a form of the shape.
    pub(super) fn shape(mut self, form: &str) -> Self {
        let shape = A::Shape::parse(form, self.bounds.requests.len());
        self.bounds.shape = shape.expect("a valid shape").into();
        self.options.push(format!("--shape {form}"));
        self
    }

    /// Sets the shape in full. The command names a file that has this listing.
    pub(super) fn listing(mut self, (file, listing): &(&str, String)) -> Self {
        let shape = A::Shape::from_listing(listing, self.bounds.requests.len());
        self.bounds.shape = shape.expect("a valid shape").into();
        self.options.push(format!("--shape file:{file}"));
        self
    }

    /// Adds variants of the rules. Call it once.
    pub(super) fn variants(mut self, variants: &[Variant]) -> Self {
        for &variant in variants {
            self.bounds.variants = self.bounds.variants.with(variant);
        }
        let names = self.bounds.variants.names(&A::INFO);
        if !names.is_empty() {
            self.options.push(format!("--variant {names}"));
        }
        self
    }

    /// Sets whether messages keep their order. The default is what the algorithm assumes.
    pub(super) fn channels(mut self, channels: Channels) -> Self {
        self.bounds.limits.channels = channels;
        self.options.push(format!("--channels {channels}"));
        self
    }

    /// Sets the node where the token starts.
    pub(super) fn home(mut self, home: usize) -> Self {
        self.bounds.start = Start::idle(NodeId::from_index(home));
        self.options.push(format!("--home {home}"));
        self
    }

    /// Allows this many crashes. Neighbours are never down together.
    pub(super) fn crashes(mut self, most: u8) -> Self {
        self.bounds.limits.crashes = Crashes {
            most,
            neighbours_too: false,
            ..Crashes::default()
        };
        self.options.push(format!("--crashes {}", often(most)));
        self
    }

    /// Lets only these nodes crash. Call it after [`crashes`](Search::crashes).
    pub(super) fn crash_only(mut self, nodes: &[u32]) -> Self {
        let bits = nodes.iter().fold(0, |bits, node| bits | 1 << node);
        self.bounds.limits.crashes.nodes = Some(bits);
        let nodes: Vec<_> = nodes.iter().map(u32::to_string).collect();
        self.options.push(format!("--crash {}", nodes.join(",")));
        self
    }

    /// Allows neighbours to be down together as well.
    pub(super) fn neighbours(mut self) -> Self {
        self.bounds.limits.crashes.neighbours_too = true;
        self.options.push("--neighbours".to_owned());
        self
    }

    /// Tells nodes that leave whether they will request again.
    pub(super) fn known_requests(mut self) -> Self {
        self.bounds.limits.known_requests = true;
        self.options.push("--known-requests".to_owned());
        self
    }

    /// Searches every interleaving.
    pub(super) fn run(&self) -> Searched {
        search::<A>(&self.bounds).into()
    }

    /// The command that repeats this search.
    pub(super) fn command(&self) -> String {
        format!("soloist lab check {}", self.options.join(" "))
    }
}

/// Results for the printed and for the repaired rules.
pub(super) struct Both {
    pub(super) published: Searched,
    pub(super) repaired: Searched,
}

impl Both {
    /// Searches by the printed rules, which this variant selects, and by the repaired ones.
    pub(super) fn search<A: Algorithm>(
        search: impl Fn() -> Search<A>,
        as_published: Variant,
    ) -> Self {
        Both {
            published: search().variants(&[as_published]).run(),
            repaired: search().run(),
        }
    }

    /// Verdict from whether each result satisfies the condition.
    pub(super) fn verdict(&self, is_so: impl Fn(&Searched) -> bool) -> Verdict {
        Verdict::of(is_so(&self.published), is_so(&self.repaired))
    }

    /// Text for people.
    pub(super) fn text(&self) -> String {
        format!(
            "as printed: {}; repaired: {}",
            self.published.text(),
            self.repaired.text()
        )
    }
}

/// A finding about something that repairs do not change.
pub(super) fn finding(holds: bool, found: String, evidence: String) -> Finding {
    Finding::new(Verdict::of(holds, holds), found, evidence)
}

impl Finding {
    /// A finding that decides the claim.
    pub(super) fn new(verdict: Verdict, found: String, evidence: String) -> Self {
        assert!(!verdict.is_open(), "say what would decide it");
        Finding {
            verdict,
            found,
            evidence,
            decided_by: None,
        }
    }

    /// This finding, with "withstood" for "holds" if its evidence is a measurement.
    pub(super) fn not_rounded_up(mut self) -> Self {
        let measured = ["soloist lab run ", "soloist lab compare "];
        let is_measured = measured
            .iter()
            .any(|start| self.evidence.starts_with(start));
        if is_measured && self.verdict == Verdict::Holds {
            self.verdict = Verdict::Withstood;
        }
        self
    }

    /// A finding that leaves the claim open, and what would decide it.
    pub(super) fn open(
        verdict: Verdict,
        found: String,
        decided_by: &str,
        evidence: String,
    ) -> Self {
        assert!(verdict.is_open(), "nothing is left to decide");
        Finding {
            verdict,
            found,
            evidence,
            decided_by: Some(decided_by.to_owned()),
        }
    }
}

/// Whether replaying a scenario changes nothing.
pub(super) fn is_replayed(text: &str) -> bool {
    replay(text).is_ok_and(|replayed| first_difference(text, &replayed).is_none())
}

/// Returns whether the whole interval is within this share of the expected value.
pub(super) fn is_within(measured: Estimate, expected: f64, share: f64) -> bool {
    is_close(measured.low(), expected, share) && is_close(measured.high(), expected, share)
}

/// Returns whether the whole interval is below the other one.
pub(super) fn is_less(one: &Estimate, other: &Estimate) -> bool {
    one.high() < other.low()
}

/// The upper end of the highest of these intervals.
pub(super) fn highest<'a>(estimates: impl IntoIterator<Item = &'a Estimate>) -> f64 {
    largest(estimates.into_iter().map(Estimate::high))
}

/// Returns whether a value is within this share of the expected one.
pub(super) fn is_close(measured: f64, expected: f64, share: f64) -> bool {
    (measured - expected).abs() <= share * expected.abs()
}

/// The largest of these values.
pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
