//! What examining takes: runs and searches that know the command that repeats them.

use soloist_algorithms::{Algorithm, Channels, Choice, NodeId, Shape, Start, Variant};

use super::{Finding, Verdict};
use crate::ShapeSpec;
use crate::check::{Bounds, Crashes, ENDLESS, Outcome, search};
use crate::simulate::{Report, Setup, simulate};
use crate::world::Fault;

/// A run to be measured, and the command that repeats it.
#[derive(Clone)]
pub(super) struct Run {
    setup: Setup,
    options: Vec<String>,
}

impl Run {
    /// Under heavy load unless told otherwise, with all else as `lab run` has it by default. Variants are given
    /// after a plus: `raymond+piggyback`.
    pub(super) fn of(algorithm: &str, nodes: usize) -> Self {
        let (name, variants) = algorithm.split_once('+').unwrap_or((algorithm, ""));
        let variants = variants.replace('+', ",");
        let choice = Choice::parse(name, &variants).expect("an algorithm that there is");
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

    /// How the nodes are arranged: a form of the shape.
    pub(super) fn shape(mut self, form: &str) -> Self {
        self.setup.shape = ShapeSpec::Form(form.to_owned());
        self.option("shape", form)
    }

    /// Who asks, and when. A burst is one entry a node.
    pub(super) fn load(mut self, load: &str) -> Self {
        self.setup.load = load.parse().expect("a load that there is");
        if load == "burst" {
            self.setup.entries = self.setup.nodes as u64;
        }
        self.option("load", load)
    }

    /// How long messages are under way.
    pub(super) fn delay(mut self, delay: &str) -> Self {
        self.setup.delay = delay.parse().expect("a delay that there is");
        self.option("delay", delay)
    }

    /// How long a node stays inside.
    pub(super) fn hold(mut self, hold: &str) -> Self {
        self.setup.hold = hold.parse().expect("a hold that there is");
        self.option("hold", hold)
    }

    /// How many entries; a burst has its own number.
    pub(super) fn entries(mut self, entries: u64) -> Self {
        self.setup.entries = entries;
        self.option("entries", entries)
    }

    /// Where the token starts.
    pub(super) fn home(mut self, home: usize) -> Self {
        self.setup.start = Start::idle(NodeId::from_index(home));
        self.option("home", home)
    }

    /// Where all chance comes from.
    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        self.option("seed", seed)
    }

    /// What comes of the run, well or not.
    pub(super) fn report(&self) -> Report {
        simulate(&self.setup, &mut |_| ()).expect("a run that can be simulated")
    }

    /// Messages for each entry, of a run that goes well.
    pub(super) fn messages(&self) -> f64 {
        let report = self.report();
        assert!(report.is_well(), "{}: {report:#?}", self.command());
        report.measures.messages_per_entry
    }

    /// The command that repeats it.
    pub(super) fn command(&self) -> String {
        format!("soloist lab run {}", self.options.join(" "))
    }
}

/// A search of every interleaving, and the command that repeats it.
pub(super) struct Search<A: Algorithm> {
    bounds: Bounds<A::Shape>,
    options: Vec<String>,
}

/// What a search or a check of fairness came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Searched {
    /// Every interleaving was visited, and all is well in it.
    Well,
    /// Two nodes inside.
    TwoInside,
    /// Something else that must not happen, in words: the search ended there.
    Broken(String),
    /// Something else that must not happen, in words: the search went on and never saw two inside.
    Amiss(String),
    /// Nothing more can happen, and somebody waits.
    Deadlock,
    /// A node may wait for ever while others come and go.
    Starved,
    /// Nobody wants in, and yet messages go on for ever.
    Restless,
    /// Too large to be searched: nothing is known.
    Unknown,
}

impl Searched {
    /// Whether there never are two inside: all of it was searched, whatever else was found.
    pub(super) fn is_safe(&self) -> bool {
        !matches!(
            self,
            Searched::TwoInside | Searched::Broken(_) | Searched::Unknown
        )
    }

    /// Whether all is well: nothing breaks and everybody is served.
    pub(super) fn is_well(&self) -> bool {
        *self == Searched::Well
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match self {
            Searched::Well => "all well".to_owned(),
            Searched::TwoInside => "two nodes inside".to_owned(),
            Searched::Broken(what) | Searched::Amiss(what) => what.clone(),
            Searched::Deadlock => "a deadlock".to_owned(),
            Searched::Starved => "a node waits for ever".to_owned(),
            Searched::Restless => "messages go on for ever though nobody wants in".to_owned(),
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
    /// Larger searches are given up: whoever runs all claims wants to see the end of it.
    const STATES_MAX: usize = 1_000_000;

    /// Node i asks `requests[i]` times. Those that ask at all ask equally often, as `lab check` has it.
    pub(super) fn of(requests: &[u8]) -> Self {
        let often = requests.iter().copied().max().unwrap_or(0);
        let asking: Vec<usize> = (0..requests.len()).filter(|&i| requests[i] > 0).collect();
        assert!(asking.iter().all(|&i| requests[i] == often));
        let mut options = vec![
            format!("--algorithm {}", A::INFO.name),
            format!("--nodes {}", requests.len()),
            match often {
                ENDLESS => "--requests endless".to_owned(),
                often => format!("--requests {often}"),
            },
        ];
        if asking.len() < requests.len() {
            let asking: Vec<_> = asking.iter().map(usize::to_string).collect();
            options.push(format!("--requesters {}", asking.join(",")));
        }
        Search {
            bounds: Bounds {
                states_max: Self::STATES_MAX,
                ..Bounds::of::<A>(requests)
            },
            options,
        }
    }

    /// How the nodes are arranged: a form of the shape.
    pub(super) fn shape(mut self, form: &str) -> Self {
        let shape = A::Shape::parse(form, self.bounds.requests.len());
        self.bounds.shape = shape.expect("a shape that there is").into();
        self.options.push(format!("--shape {form}"));
        self
    }

    /// With variants of the rules; once.
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

    /// Whether messages keep their order; by default what the algorithm assumes.
    pub(super) fn channels(mut self, channels: Channels) -> Self {
        self.bounds.channels = channels;
        self.options.push(format!("--channels {channels}"));
        self
    }

    /// Where the token starts.
    pub(super) fn home(mut self, home: usize) -> Self {
        self.bounds.start = Start::idle(NodeId::from_index(home));
        self.options.push(format!("--home {home}"));
        self
    }

    /// With so many crashes, never of neighbours together.
    pub(super) fn crashes(mut self, most: u8) -> Self {
        self.bounds.crashes = Crashes {
            most,
            neighbours_too: false,
        };
        self.options.push(format!("--crashes {most}"));
        self
    }

    /// Neighbours may be down together as well.
    pub(super) fn neighbours(mut self) -> Self {
        self.bounds.crashes.neighbours_too = true;
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

    /// The command that repeats it.
    pub(super) fn command(&self) -> String {
        format!("soloist lab check {}", self.options.join(" "))
    }
}

/// By the printed rules and by the repaired ones.
pub(super) struct Both {
    pub(super) published: Searched,
    pub(super) repaired: Searched,
}

impl Both {
    /// Searches by the rules as printed, which this variant selects, and by the repaired ones.
    pub(super) fn search<A: Algorithm>(
        search: impl Fn() -> Search<A>,
        as_published: Variant,
    ) -> Self {
        Both {
            published: search().variants(&[as_published]).run(),
            repaired: search().run(),
        }
    }

    /// What is so by the printed rules and by the repaired ones.
    pub(super) fn verdict(&self, is_so: impl Fn(&Searched) -> bool) -> Verdict {
        Verdict::of(is_so(&self.published), is_so(&self.repaired))
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        format!(
            "as printed: {}; repaired: {}",
            self.published.text(),
            self.repaired.text()
        )
    }
}

/// A finding about something that repairs do not touch.
pub(super) fn finding(holds: bool, found: String, evidence: String) -> Finding {
    Finding {
        verdict: Verdict::of(holds, holds),
        found,
        evidence,
    }
}

/// Where a scenario's file is.
pub(super) fn scenario(name: &str) -> String {
    format!("crates/lab/tests/scenarios/{name}.txt")
}

/// Whether a measured value is what was expected, give or take this share of it.
pub(super) fn is_close(measured: f64, expected: f64, share: f64) -> bool {
    (measured - expected).abs() <= share * expected.abs()
}

/// The largest of these.
pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
