//! Random durations, in message delays.

use std::fmt;

use super::settings::{SettingError, number};
use super::{Random, Time};

/// How a duration is distributed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Uniformly distributed between two bounds.
    Uniform(f64, f64),
    /// Exponentially distributed with this mean.
    Exponential(f64),
}

impl Distribution {
    /// The forms for error messages.
    pub(super) const FORMS: &str = "constant[:MEAN], uniform[:LOW..HIGH] or exponential[:MEAN]";

    /// Draws a duration.
    pub fn draw(self, random: &mut Random) -> Time {
        match self {
            Distribution::Constant(span) => Time::from_delays(span),
            Distribution::Uniform(low, high) => {
                Time::from_delays(low + (high - low) * random.unit())
            }
            Distribution::Exponential(mean) => random.exponential(mean),
        }
    }

    /// Parses a distribution by name, such as `uniform:0.5..1.5`. Returns `None` if the name is
    /// not known.
    pub(super) fn by_name(
        what: &'static str,
        given: &str,
        text: &str,
    ) -> Result<Option<Self>, SettingError> {
        let (name, parameter) = text.split_once(':').unwrap_or((text, ""));
        let mean = || match parameter {
            "" => Ok(1.0),
            _ => number(what, given, parameter, false),
        };
        Ok(Some(match name {
            "constant" => Distribution::Constant(mean()?),
            "exponential" => Distribution::Exponential(mean()?),
            "uniform" if parameter.is_empty() => Distribution::Uniform(0.5, 1.5),
            "uniform" => {
                let (low, high) = parameter.split_once("..").ok_or_else(|| {
                    SettingError::new(what, given, "write the bounds as uniform:LOW..HIGH")
                })?;
                let low = number(what, given, low, true)?;
                let high = number(what, given, high, false)?;
                if low > high {
                    return Err(SettingError::new(what, given, "the bounds are reversed"));
                }
                Distribution::Uniform(low, high)
            }
            _ => return Ok(None),
        }))
    }

    /// Parses a number, which is a constant, or a distribution by name.
    pub(super) fn number_or_name(
        what: &'static str,
        given: &str,
        text: &str,
        zero: bool,
    ) -> Result<Self, SettingError> {
        if let Some(distribution) = Self::by_name(what, given, text)? {
            return Ok(distribution);
        }
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) || text.parse::<f64>().is_ok() {
            return Ok(Distribution::Constant(number(what, given, text, zero)?));
        }
        let allowed = format!("use a number, {}", Self::FORMS);
        Err(SettingError::new(what, given, allowed))
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Constant(span) => write!(f, "constant:{span}"),
            Distribution::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Distribution::Exponential(mean) => write!(f, "exponential:{mean}"),
        }
    }
}
