//! Parameters of a run, such as delays and loads, and their text form.

use std::fmt;
use std::str::FromStr;

use super::{Random, Time};

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
    fn new(what: &'static str, given: &str, reason: impl Into<String>) -> Self {
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
fn number(what: &'static str, given: &str, text: &str, zero: bool) -> Result<f64, SettingError> {
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

/// How long a message is in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Delay {
    /// Always the same.
    Constant(f64),
    /// Uniformly distributed between two bounds.
    Uniform(f64, f64),
    /// Exponentially distributed with this mean.
    Exponential(f64),
}

impl Delay {
    /// Draws the delay of one message.
    pub fn draw(self, random: &mut Random) -> Time {
        let delay = match self {
            Delay::Constant(delay) => Time::from_delays(delay),
            Delay::Uniform(low, high) => Time::from_delays(low + (high - low) * random.unit()),
            Delay::Exponential(mean) => random.exponential(mean),
        };
        delay.max(Time::TICK)
    }
}

impl FromStr for Delay {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        const WHAT: &str = "delay";
        let (name, parameter) = given.split_once(':').unwrap_or((given, ""));
        let mean = || match parameter {
            "" => Ok(1.0),
            _ => number(WHAT, given, parameter, false),
        };
        match name {
            "constant" => Ok(Delay::Constant(mean()?)),
            "exponential" => Ok(Delay::Exponential(mean()?)),
            "uniform" if parameter.is_empty() => Ok(Delay::Uniform(0.5, 1.5)),
            "uniform" => {
                let (low, high) = parameter.split_once("..").ok_or_else(|| {
                    SettingError::new(WHAT, given, "write the bounds as uniform:LOW..HIGH")
                })?;
                let low = number(WHAT, given, low, true)?;
                let high = number(WHAT, given, high, false)?;
                if low > high {
                    return Err(SettingError::new(WHAT, given, "the bounds are reversed"));
                }
                Ok(Delay::Uniform(low, high))
            }
            _ => {
                let allowed = "use constant[:MEAN], uniform[:LOW..HIGH] or exponential[:MEAN]";
                Err(SettingError::new(WHAT, given, allowed))
            }
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay::Constant(mean) => write!(f, "constant:{mean}"),
            Delay::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Delay::Exponential(mean) => write!(f, "exponential:{mean}"),
        }
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
pub struct Hold(f64);

impl Hold {
    /// One message delay.
    pub const ONE: Hold = Hold(1.0);

    /// The duration as virtual time.
    pub fn span(self) -> Time {
        Time::from_delays(self.0)
    }

    /// The duration in message delays.
    pub fn delays(self) -> f64 {
        self.0
    }
}

impl FromStr for Hold {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        Ok(Hold(number("hold", given, given, true)?))
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
