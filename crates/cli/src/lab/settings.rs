//! Options that several subcommands share.

use std::str::FromStr;

use anyhow::{Context, Result, bail};
use soloist_algorithms::shape::NODES_MAX;
use soloist_algorithms::{Channels, Choice};
use soloist_core::rules::RuleSettings;
use soloist_lab::ShapeSpec;
use soloist_lab::simulate::{Delay, Hold, Load, SettingError, Setup};

/// The variants of an algorithm.
#[derive(clap::Args)]
pub(super) struct Variant {
    /// Variants of the rules, separated by commas, such as as-published
    #[arg(
        long,
        value_name = "V",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    variant: String,
}

impl Variant {
    /// The algorithm of this name, with these variants.
    pub(super) fn of(&self, algorithm: &str) -> Result<Choice> {
        Ok(Choice::parse(algorithm, &self.variant)?)
    }
}

/// The algorithm of the locks of a cluster.
#[derive(clap::Args)]
pub(super) struct LockAlgorithm {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    #[command(flatten)]
    variant: Variant,
}

impl LockAlgorithm {
    /// The algorithm with its variants.
    pub(super) fn choice(&self) -> Result<Choice> {
        self.variant.of(&self.algorithm)
    }
}

/// Behaviour of the simulated world.
#[derive(clap::Args, Clone)]
pub(super) struct World {
    #[arg(
        long,
        help = "Message delay: constant[:MEAN], uniform[:LOW..HIGH] or exponential[:MEAN]",
        value_name = "D",
        value_parser = setting::<Delay>, default_value = "exponential",
        allow_hyphen_values = true
    )]
    delay: Delay,

    /// How long a node stays inside, in message delays
    #[arg(
        long,
        value_name = "H",
        value_parser = setting::<Hold>,
        default_value = "1",
        allow_hyphen_values = true
    )]
    hold: Hold,

    /// Whether messages between two nodes keep their order: fifo or any [default: what the
    /// algorithm assumes]
    #[arg(long, value_name = "C", value_parser = Channels::from_str, allow_hyphen_values = true)]
    channels: Option<Channels>,

    /// Seed of the random generator; the same seed gives the same run, bit for bit
    #[arg(long, value_name = "S", value_parser = seed, default_value = "1", allow_hyphen_values = true)]
    seed: u64,
}

impl World {
    /// A setup in this world: default shape, token at node 0, no node inside.
    pub(super) fn setup(&self, choice: Choice, nodes: usize, load: Load, entries: u64) -> Setup {
        Setup {
            load,
            delay: self.delay,
            channels: self.channels,
            hold: self.hold,
            entries,
            seed: self.seed,
            ..Setup::new(choice, nodes)
        }
    }
}

/// Parses a setting. The error is only the reason, since clap names the value itself.
pub(super) fn setting<T: FromStr<Err = SettingError>>(given: &str) -> Result<T, String> {
    given
        .parse()
        .map_err(|error: SettingError| error.reason().to_owned())
}

/// Parses a seed.
pub(super) fn seed(given: &str) -> Result<u64, String> {
    given
        .parse()
        .map_err(|_| format!("use a whole number from 0 to {}", u64::MAX))
}

/// Parses the number of a node.
pub(super) fn node(given: &str) -> Result<u32, String> {
    given
        .parse()
        .map_err(|_| "nodes are numbered from 0".to_owned())
}

/// Number of entries of a run: the given one or the default. A burst has one entry per node.
pub(super) fn entries_for(
    load: Load,
    nodes: usize,
    given: Option<u64>,
    default: u64,
) -> Result<u64> {
    match (load, given) {
        (Load::Burst, Some(entries)) if entries != nodes as u64 => {
            bail!(
                "--entries {entries} does not fit a burst, which is one entry per node ({nodes}): \
                 remove --entries"
            )
        }
        (Load::Burst, _) => Ok(nodes as u64),
        (_, given) => Ok(given.unwrap_or(default)),
    }
}

/// Reads a shape: the name of a form, or a file that lists it.
pub(super) fn read_shape(given: Option<&str>) -> Result<ShapeSpec> {
    let Some(given) = given else {
        return Ok(ShapeSpec::Default);
    };
    let Some(path) = given.strip_prefix("file:") else {
        return Ok(ShapeSpec::Form(given.to_owned()));
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the shape from '{path}'"))?;
    Ok(ShapeSpec::Listing(text))
}

/// Parses a number of nodes.
pub(super) fn nodes(given: &str) -> Result<usize, String> {
    match given.parse() {
        Ok(nodes) if (1..=NODES_MAX).contains(&nodes) => Ok(nodes),
        _ => Err(format!("a cluster has 1 to {NODES_MAX} nodes")),
    }
}

/// Parses a number of entries or runs.
pub(super) fn count(given: &str) -> Result<u64, String> {
    match given.parse() {
        Ok(count) if count >= 1 => Ok(count),
        _ => Err("use a whole number from 1 up".to_owned()),
    }
}
