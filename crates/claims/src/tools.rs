//! Tools for examining claims: runs and searches that know the command that repeats them.

use soloist_algorithms::{Algorithm, Channels, Choice, NodeId, Shape, Start, Variant};
use soloist_lab::ShapeSpec;
use soloist_lab::scenario::{first_difference, replay};
use soloist_lab::search::{Bounds, Crashes, ENDLESS, Limits, Outcome, search};
use soloist_lab::simulate::{Report, Setup, simulate};
use soloist_lab::world::Fault;

use super::{Finding, Verdict};

/// A run to be measured, and the command that repeats it.
#[derive(Clone)]
pub(super) struct Run {
    setup: Setup,
    options: Vec<String>,
}

impl Run {
    /// A run under heavy load, with the other defaults of `lab run`. Variants follow a plus sign:
    /// `raymond+piggyback`.
    pub(super) fn of(algorithm: &str, nodes: usize) -> Self {
        let (name, variants) = algorithm.split_once('+').unwrap_or((algorithm, ""));
        let variants = variants.replace('+', ",");
        let choice = Choice::parse(name, &variants).expect("a known algorithm");
        let mut run = Run {
            setup: Setup::new(choice, nodes),
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

    /// Runs the simulation, and returns its report, well or not.
    pub(super) fn report(&self) -> Report {
        simulate(&self.setup, &mut |_| ()).expect("a run that can be simulated")
    }

    /// Messages per entry. Panics if the run does not go well.
    pub(super) fn messages(&self) -> f64 {
        let report = self.report();
        assert!(report.is_well(), "{}: {report:#?}", self.command());
        report.measures.messages_per_entry
    }

    /// The command that repeats this run.
    pub(super) fn command(&self) -> String {
        format!("soloist lab run {}", self.options.join(" "))
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
            Searched::Restless => "messages go on forever though nobody wants in".to_owned(),
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

impl<A: Algorithm> Search<A> {
    /// Larger searches are abandoned, so that examining all claims ends in reasonable time.
    const STATES_MAX: usize = 1_000_000;

    /// A search in which node i makes `requests[i]` requests.
    pub(super) fn of(requests: &[u8]) -> Self {
        let text = |requests: &u8| match *requests {
            ENDLESS => "endless".to_owned(),
            often => often.to_string(),
        };
        let mut quotas: Vec<_> = requests.iter().map(text).collect();
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
        self.bounds.shape = shape.expect("a shape that there is").into();
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
        self.options.push(format!("--crashes {most}"));
        self
    }

    /// Allows neighbours to be down together as well.
    pub(super) fn neighbours(mut self) -> Self {
        self.bounds.limits.crashes.neighbours_too = true;
        self.options.push("--neighbours".to_owned());
        self
    }

    /// Searches every interleaving.
    pub(super) fn run(&self) -> Searched {
        match search::<A>(&self.bounds) {
            Outcome::Holds { cut: 0, .. } => Searched::Well,
            Outcome::Broken { fault, .. } => Searched::of_fault(&fault),
            Outcome::Starved { .. } => Searched::Starved,
            Outcome::Restless { .. } => Searched::Restless,
            Outcome::Holds { .. } | Outcome::NotExhausted { .. } => Searched::Unknown,
        }
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

/// The text for what is proved for any number of nodes, by its theorem (docs/proofs.md).
pub(crate) fn proved(theorem: &str) -> String {
    format!("proved for any number of nodes (theorem `{theorem}`)")
}

/// Path of a scenario's file.
pub(super) fn scenario(name: &str) -> String {
    format!("crates/lab/tests/scenarios/{name}.txt")
}

/// Returns whether a measured value is within this share of the expected one.
pub(super) fn is_close(measured: f64, expected: f64, share: f64) -> bool {
    (measured - expected).abs() <= share * expected.abs()
}

/// The largest of these values.
pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
