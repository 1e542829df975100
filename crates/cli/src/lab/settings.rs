//! Options that several subcommands share.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use soloist_algorithms::shape::NODES_MAX;
use soloist_algorithms::{Channels, Choice};
use soloist_core::rules::RuleSettings;
use soloist_lab::ShapeSpec;
use soloist_lab::replicate::Plan;
use soloist_lab::simulate::{Delay, DelayMatrix, Hold, Load, Requesters, SettingError, Setup};

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
        help = "Message delay: constant[:MEAN], uniform[:LOW..HIGH], exponential[:MEAN], \
                zones:COUNT:NEAR/FAR or file:PATH",
        value_name = "D",
        value_parser = delay,
        default_value = "exponential",
        allow_hyphen_values = true
    )]
    delay: Delay,

    #[arg(
        long,
        help = "How long a node stays inside, in message delays: a number, constant[:MEAN], \
                uniform[:LOW..HIGH] or exponential[:MEAN]",
        value_name = "H",
        value_parser = setting::<Hold>,
        default_value = "1",
        allow_hyphen_values = true
    )]
    hold: Hold,

    /// Which nodes request: all, zipf:S, or nodes such as 0,4,8-11
    #[arg(
        long,
        value_name = "R",
        value_parser = setting::<Requesters>,
        default_value = "all",
        allow_hyphen_values = true
    )]
    requesters: Requesters,

    /// Whether messages between two nodes keep their order: fifo or any [default: what the
    /// algorithm assumes]
    #[arg(long, value_name = "C", value_parser = Channels::from_str, allow_hyphen_values = true)]
    channels: Option<Channels>,

    /// First seed of the random generator; the same seed gives the same run, bit for bit
    #[arg(long, value_name = "S", value_parser = seed, default_value = "1", allow_hyphen_values = true)]
    seed: u64,
}

impl World {
    /// A setup in this world: default shape, token at node 0, no node inside.
    pub(super) fn setup(&self, choice: Choice, nodes: usize, load: Load, entries: u64) -> Setup {
        Setup {
            load,
            requesters: self.requesters.clone(),
            delay: self.delay.clone(),
            channels: self.channels,
            hold: self.hold,
            entries,
            seed: self.seed,
            ..Setup::new(choice, nodes)
        }
    }

    /// Number of entries of a run: the given one or the default. A burst has one entry per node
    /// that requests.
    pub(super) fn entries_for(
        &self,
        load: Load,
        nodes: usize,
        given: Option<u64>,
        default: u64,
    ) -> Result<u64> {
        let requesters = self.requesters.count(nodes) as u64;
        match (load, given) {
            (Load::Burst, Some(entries)) if entries != requesters => {
                bail!(
                    "--entries {entries} does not fit a burst, which is one entry per node \
                     ({requesters}): remove --entries"
                )
            }
            (Load::Burst, _) => Ok(requesters),
            (_, given) => Ok(given.unwrap_or(default)),
        }
    }
}

/// How many replications to run.
#[derive(clap::Args, Clone)]
pub(super) struct Replications {
    #[arg(
        long,
        value_name = "N",
        value_parser = count,
        allow_hyphen_values = true,
        help = format!(
            "Number of replications, with consecutive seeds, at least {}; with --precision, the \
             maximum [default: {}; with --precision, {}]",
            Plan::SEEDS_MIN, Plan::SEEDS_MIN, Plan::SEEDS_MAX
        )
    )]
    seeds: Option<u64>,

    /// Replicate until the intervals of messages per entry and of the mean response time reach at
    /// most this far to either side, such as 1%
    #[arg(long, value_name = "P%", value_parser = percentage, allow_hyphen_values = true)]
    precision: Option<f64>,

    /// Confidence level of the intervals
    #[arg(
        long,
        value_name = "L%",
        value_parser = percentage,
        default_value = "95%",
        allow_hyphen_values = true
    )]
    level: f64,

    /// Entries before the measurement starts [default: 10 per node, at least 500; with burst and
    /// with crashes, the whole run is measured]
    #[arg(long, value_name = "W", value_parser = warm_up, allow_hyphen_values = true)]
    warm_up: Option<u64>,
}

impl Replications {
    /// The plan, or `None` for a single run without intervals (`--seeds 1`).
    pub(super) fn plan(&self) -> Result<Option<Plan>> {
        let default = match self.precision {
            None => Plan::SEEDS_MIN,
            Some(_) => Plan::SEEDS_MAX,
        };
        let seeds = self.seeds.unwrap_or(default);
        if seeds == 1 {
            if self.precision.is_some() || self.warm_up.is_some() {
                bail!("--seeds 1 measures one whole run: leave out --precision and --warm-up");
            }
            return Ok(None);
        }
        if seeds < Plan::SEEDS_MIN {
            bail!(
                "--seeds {seeds}: intervals need at least {} replications",
                Plan::SEEDS_MIN
            );
        }
        Ok(Some(Plan {
            seeds,
            precision: self.precision,
            level: self.level,
            warm_up: self.warm_up,
        }))
    }
}

/// Parses a delay. Reads the matrix of a `file:PATH`.
fn delay(given: &str) -> Result<Delay, String> {
    let Some(path) = given.strip_prefix("file:") else {
        return setting(given);
    };
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let matrix = DelayMatrix::parse(path, &text).map_err(|error| error.to_string())?;
    Ok(Delay::Matrix(Arc::new(matrix)))
}

/// Parses a percentage between 0 and 100, exclusive, as a share.
fn percentage(given: &str) -> Result<f64, String> {
    // Not divided by 100, which would make 99.9% a little more than 0.999.
    let share = |text: &str| format!("{text}e-2").parse::<f64>().ok();
    match given.strip_suffix('%').and_then(share) {
        Some(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("use a percentage between 0% and 100%, such as 1%".to_owned()),
    }
}

/// Parses a number of entries, possibly 0.
fn warm_up(given: &str) -> Result<u64, String> {
    // Twice as many, and the entries themselves, must be countable.
    match given.parse() {
        Ok(entries) if entries <= 1 << 60 => Ok(entries),
        _ => Err("use a whole number from 0 up".to_owned()),
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
