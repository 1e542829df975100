//! Parameters of a run, such as delays and loads, and their text form.

use std::fmt;
use std::str::FromStr;

use super::{Distribution, Random, Time};

/// Accepted range of numbers of message delays, and of requests per delay. Smaller numbers would be
/// less than a tick of virtual time; with larger ones, time would soon overflow.
const NUMBER_MIN: f64 = 1e-6;
const NUMBER_MAX: f64 = 1e9;

/// An invalid setting.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{what} '{given}': {reason}")]
pub struct SettingError {
    what: &'static str,
    given: String,
    reason: String,
}

impl SettingError {
    pub(super) fn new(what: &'static str, given: &str, reason: impl Into<String>) -> Self {
        SettingError {
            what,
            given: given.to_owned(),
            reason: reason.into(),
        }
    }

    /// Why the setting is invalid, and what is allowed.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Parses a number within these bounds, or 0 if that is allowed.
pub(super) fn number(
    what: &'static str,
    given: &str,
    text: &str,
    zero: bool,
) -> Result<f64, SettingError> {
    let bad = |reason: &str| SettingError::new(what, given, reason);
    let value: f64 = text
        .parse()
        .map_err(|_| bad(&format!("'{text}' is not a number")))?;
    match zero {
        _ if (NUMBER_MIN..=NUMBER_MAX).contains(&value) => Ok(value),
        true if value == 0.0 => Ok(0.0), // also for -0
        true => Err(bad("use 0, or a number from 1e-6 to 1e9")),
        false => Err(bad("use a number above 0, from 1e-6 to 1e9")),
    }
}

/// Which nodes request, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// One request at a time: when no node waits or is inside and at most a restless token is in
    /// flight, a random node requests after a random pause.
    Light,
    /// Every node requests again as soon as it leaves.
    Heavy,
    /// All nodes request simultaneously, one entry each.
    Burst,
    /// Demands arise at random nodes at this total rate, however many are unserved. A busy node
    /// requests again when it leaves.
    Poisson(f64),
    /// Every node pauses for a random time of this mean before it requests again.
    Think(f64),
}

impl FromStr for Load {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        const WHAT: &str = "load";
        match given.split_once(':') {
            None => match given {
                "light" => Ok(Load::Light),
                "heavy" => Ok(Load::Heavy),
                "burst" => Ok(Load::Burst),
                _ => {
                    let allowed = "use light, heavy, burst, poisson:RATE or think:MEAN";
                    Err(SettingError::new(WHAT, given, allowed))
                }
            },
            Some(("poisson", rate)) => Ok(Load::Poisson(number(WHAT, given, rate, false)?)),
            Some(("think", mean)) => Ok(Load::Think(number(WHAT, given, mean, true)?)),
            Some(_) => {
                let allowed = "use light, heavy, burst, poisson:RATE or think:MEAN";
                Err(SettingError::new(WHAT, given, allowed))
            }
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Light => f.write_str("light"),
            Load::Heavy => f.write_str("heavy"),
            Load::Burst => f.write_str("burst"),
            Load::Poisson(rate) => write!(f, "poisson:{rate}"),
            Load::Think(mean) => write!(f, "think:{mean}"),
        }
    }
}

/// How often nodes crash, and how long they stay down.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Crashes {
    /// Mean time from one crash, of any node, to the next, in message delays.
    pub every: f64,
    /// Minimum downtime of a node, in message delays.
    pub down: f64,
}

impl Crashes {
    /// Default downtime.
    pub const DOWN: f64 = 5.0;
}

impl FromStr for Crashes {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        const WHAT: &str = "crashes";
        let (every, down) = match given.split_once(':') {
            None => (given, None),
            Some((every, down)) => (every, Some(down)),
        };
        Ok(Crashes {
            every: number(WHAT, given, every, false)?,
            down: match down {
                None => Self::DOWN,
                Some(down) => number(WHAT, given, down, true)?,
            },
        })
    }
}

impl fmt::Display for Crashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.every, self.down)
    }
}

/// How long a node stays inside, in message delays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hold(Distribution);

impl Hold {
    /// One message delay.
    pub const ONE: Hold = Hold(Distribution::Constant(1.0));

    /// Draws the duration of a hold.
    pub(super) fn draw(self, random: &mut Random) -> Time {
        self.0.draw(random)
    }

    /// The duration of a hold, if all are the same.
    #[inline]
    pub(super) fn constant(self) -> Option<Time> {
        match self.0 {
            Distribution::Constant(span) => Some(Time::from_delays(span)),
            _ => None,
        }
    }
}

impl FromStr for Hold {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        Ok(Hold(Distribution::number_or_name(
            "hold", given, given, true,
        )?))
    }
}

/// A constant is shown as a number.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Distribution::Constant(span) => span.fmt(f),
            distribution => distribution.fmt(f),
        }
    }
}
