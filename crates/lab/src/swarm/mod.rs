//! Runs whose every parameter is derived from a seed, and swarms of them.

mod many;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{
    Algorithm, Channels, Choice, Config, Kind, NodeId, Shape, Start, VariantSet,
};

use crate::ShapeSpec;
use crate::simulate::{Crashes, Delay, Distribution, Hold, Load, Random, Requesters, Setup};

pub use many::{Failure, Swarm, Tally, run};

const DELAYS: [Distribution; 3] = [
    Distribution::Constant(1.0),
    Distribution::Uniform(0.0, 2.0),
    Distribution::Exponential(1.0),
];

/// The largest cluster in a swarm.
const NODES_MAX: u64 = 64;

/// The algorithms that may run in a swarm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    /// Every algorithm in turn, with any variants except the rules as published.
    All,
    /// This algorithm, with any variants except the rules as published.
    Kind(Kind),
    /// This algorithm with these variants. If its recovery is not promised over any channels, nodes
    /// crash nevertheless, to demonstrate that.
    Choice(Choice),
}

/// The run for a seed, of any algorithm: see [`setup_among`].
pub fn setup(seed: u64) -> Setup {
    setup_among(Among::All, seed)
}

/// The run for a seed: algorithm, variants (repaired rules only), nodes, shape, start, load,
/// delays, channels, hold, and crashes if the algorithm recovers from them. Consecutive seeds go
/// through all algorithms under all loads with all delays; everything else is random.
pub fn setup_among(among: Among, seed: u64) -> Setup {
    let mut random = Random::new(seed, 3);
    let mut turn = seed;
    let mut take_turns = |among: usize| {
        let index = turn % among as u64;
        turn /= among as u64;
        index as usize
    };
    let kind = match among {
        Among::All => Kind::ALL[take_turns(Kind::ALL.len())],
        Among::Kind(kind) => kind,
        Among::Choice(choice) => choice.kind,
    };
    let nodes = 1 + random.below(NODES_MAX) as usize;
    let load = match take_turns(6) {
        0 => Load::Light,
        1 => Load::Heavy,
        2 => Load::Burst,
        3 => Load::Poisson(0.05 + random.unit() / 2.0),
        4 => Load::Think(random.unit() * nodes as f64),
        _ => Load::Think(random.unit() * 20.0 * nodes as f64),
    };
    let node = NodeId::from_index(random.below(nodes as u64) as usize);
    let assumed = kind.info().channels;
    let channels = *pick(&[assumed, Channels::Fifo], &mut random);
    let hold = *pick(&["0.01", "0.1", "1", "5"], &mut random);
    let by_chance = variants(kind, &mut random);
    let choice = match among {
        Among::All | Among::Kind(_) => Choice {
            kind,
            name: kind.info().name,
            variants: by_chance,
        },
        Among::Choice(choice) => choice,
    };
    let setup = Setup {
        choice,
        nodes,
        shape: kind.visit(PickShape(nodes, &mut random)),
        start: *pick(&[Start::idle(node), Start::inside(node)], &mut random),
        load,
        requesters: Requesters::All,
        delay: Delay::Same(DELAYS[take_turns(DELAYS.len())]),
        channels: Some(channels),
        hold: hold.parse::<Hold>().expect("a number"),
        entries: match load {
            Load::Burst => nodes as u64,
            _ => 50 + random.below(450),
        },
        warm_up: None,
        crashes: None,
        seed,
        distributions: false,
    };
    let may_crash = kind.visit(MayCrash {
        variants: choice.variants,
        channels,
        on_trial: matches!(among, Among::Choice(_)),
    });
    let crashes = Crashes {
        every: *pick(&[1.0, 5.0, 25.0, 100.0], &mut random),
        down: *pick(&[0.0, 1.0, 10.0], &mut random),
    };
    Setup {
        crashes: may_crash.then_some(crashes),
        ..setup
    }
}

/// The command that repeats a run.
pub fn command(setup: &Setup) -> String {
    let variants = setup.choice.variants.names(setup.choice.kind.info());
    let shape = match &setup.shape {
        ShapeSpec::Form(form) => format!(" --shape {form}"),
        ShapeSpec::Default | ShapeSpec::Listing(_) => String::new(),
    };
    let variant = if variants.is_empty() {
        String::new()
    } else {
        format!(" --variant {variants}")
    };
    let start = match setup.start.inside {
        Some(node) => format!(" --inside {node}"),
        None => format!(" --home {}", setup.start.home),
    };
    let channels = setup
        .channels
        .map_or_else(String::new, |channels| format!(" --channels {channels}"));
    let crashes = setup
        .crashes
        .map_or_else(String::new, |crashes| format!(" --crashes {crashes}"));
    format!(
        "soloist lab run --algorithm {} --nodes {}{shape}{variant}{start} --load {} --delay \
         {}{channels} --hold {} --entries {}{crashes} --seed {} --seeds 1",
        setup.choice.name,
        setup.nodes,
        setup.load,
        setup.delay,
        setup.hold,
        setup.entries,
        setup.seed
    )
}

fn pick<'a, T>(list: &'a [T], random: &mut Random) -> &'a T {
    &list[random.below(list.len() as u64) as usize]
}

/// Chooses each variant that is not known to be faulty with even odds, and of contradictory ones at
/// most one.
fn variants(kind: Kind, random: &mut Random) -> VariantSet {
    let info = kind.info();
    let mut names: Vec<&str> = Vec::new();
    for variant in info.variants {
        let clashes = variant.excludes.iter().any(|name| names.contains(name));
        let is_sound = !variant.is_faulty && variant.needs.is_none();
        if is_sound && !clashes && random.below(2) == 0 {
            names.push(variant.name);
        }
    }
    VariantSet::parse(&names.join(","), info)
        .expect("known variants that do not contradict each other")
}

/// Whether nodes may crash: if recovery is promised over these channels. With `on_trial`, also if
/// recovery is not promised over any channels.
struct MayCrash {
    variants: VariantSet,
    channels: Channels,
    on_trial: bool,
}

impl Visitor for MayCrash {
    type Output = bool;

    fn visit<A: Algorithm>(self) -> bool {
        let recovers = |channels| A::recovers(self.variants, channels);
        let has_recovery = A::recovering(&Config::first(1), 0).is_some();
        let never_sound = has_recovery && !recovers(Channels::Fifo) && !recovers(Channels::Any);
        recovers(self.channels) || self.on_trial && never_sound
    }
}

struct PickShape<'a>(usize, &'a mut Random);

impl Visitor for PickShape<'_> {
    type Output = ShapeSpec;

    fn visit<A: Algorithm>(self) -> ShapeSpec {
        let PickShape(nodes, random) = self;
        let forms = A::Shape::samples(nodes);
        ShapeSpec::Form(pick(&forms, random).clone())
    }
}
