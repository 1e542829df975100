//! Options that `lab run` and `lab compare` share.

use std::str::FromStr;

use soloist_algorithms::shape::NODES_MAX;
use soloist_algorithms::{Channels, Choice, NodeId, Start};
use soloist_lab::ShapeGiven;
use soloist_lab::simulate::{Delay, Hold, Load, SettingError, Setup};

/// How the simulated world behaves.
#[derive(clap::Args, Clone)]
pub struct World {
    #[arg(
        long,
        help = "How long messages are under way: constant[:MEAN], uniform[:LOW..HIGH] or exponential[:MEAN]",
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

    /// Whether messages between two nodes keep their order: fifo or any [default: what the algorithm assumes]
    #[arg(long, value_name = "C", value_parser = channels)]
    channels: Option<Channels>,

    /// Where all chance comes from: the same seed gives the same run, bit for bit
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

impl World {
    /// A setup in this world, of the default shape, with the token at node 0 and nobody inside.
    pub fn setup(&self, choice: Choice, nodes: usize, load: Load, entries: u64) -> Setup {
        Setup {
            choice,
            nodes,
            shape: ShapeGiven::Default,
            start: Start::idle(NodeId::new(0)),
            load,
            delay: self.delay,
            channels: self.channels,
            hold: self.hold,
            entries,
            seed: self.seed,
        }
    }
}

fn channels(given: &str) -> Result<Channels, String> {
    match given {
        "fifo" => Ok(Channels::Fifo),
        "any" => Ok(Channels::Any),
        _ => Err("use fifo or any".to_owned()),
    }
}

/// Reads a setting; the command line's own message names the value already.
pub fn setting<T: FromStr<Err = SettingError>>(given: &str) -> Result<T, String> {
    given
        .parse()
        .map_err(|error: SettingError| error.reason().to_owned())
}

/// Reads a number of nodes.
pub fn nodes(given: &str) -> Result<usize, String> {
    match given.parse() {
        Ok(nodes) if (1..=NODES_MAX).contains(&nodes) => Ok(nodes),
        _ => Err(format!("a cluster has 1 to {NODES_MAX} nodes")),
    }
}

/// Reads a number of entries.
pub fn entries(given: &str) -> Result<u64, String> {
    match given.parse() {
        Ok(entries) if entries >= 1 => Ok(entries),
        _ => Err("use a whole number from 1 up".to_owned()),
    }
}
