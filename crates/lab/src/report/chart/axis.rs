//! Axes: where a value is, and where the ticks are.

use serde::Serialize;

/// What an axis shows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Axis {
    /// The quantity and its unit.
    pub name: String,
    /// How values become positions.
    pub scale: Scale,
    /// Values that the axis covers in any case, such as 0.
    #[serde(skip)]
    pub covers: Vec<f64>,
}

/// How values become positions.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal ratios. Zero, if there is one, is below a gap.
    Logarithmic,
    /// Logarithmic if the values span a factor of eight, and linear otherwise.
    Auto,
    /// Names in a row: the value is the index of the name.
    Names(Vec<String>),
}

/// Factor from the least to the largest value above which an automatic axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 8.0;

/// Share of a logarithmic axis between zero and the least positive value.
const GAP: f64 = 0.1;

impl Axis {
    /// An axis with an automatic scale.
    pub fn new(name: impl Into<String>) -> Self {
        Axis {
            name: name.into(),
            scale: Scale::Auto,
            covers: Vec::new(),
        }
    }

    /// An axis with equal distances for equal differences.
    pub fn linear(name: impl Into<String>) -> Self {
        Axis {
            scale: Scale::Linear,
            ..Axis::new(name)
        }
    }

    /// A linear axis that starts at zero.
    pub fn from_zero(name: impl Into<String>) -> Self {
        Axis {
            covers: vec![0.0],
            ..Axis::linear(name)
        }
    }

    /// An axis of names in a row.
    pub fn names(name: impl Into<String>, names: Vec<String>) -> Self {
        Axis {
            scale: Scale::Names(names),
            ..Axis::new(name)
        }
    }

    /// The axis for these values. If `whole`, it begins and ends with a tick.
    pub(super) fn fit(&self, values: &[f64], whole: bool) -> Fitted {
        let all = values.iter().chain(&self.covers);
        let all = all.copied().filter(|value| value.is_finite());
        let (low, high) = bounds(all.clone());
        match &self.scale {
            Scale::Names(names) => Fitted::names(names),
            Scale::Logarithmic if all.clone().any(|value| value > 0.0) => {
                Fitted::logarithmic(all, whole)
            }
            Scale::Linear | Scale::Logarithmic => Fitted::linear(low, high, whole),
            Scale::Auto => {
                let (least, most) = bounds(all.clone().filter(|value| *value > 0.0));
                match low >= 0.0 && least > 0.0 && most >= LOGARITHMIC_FROM * least {
                    true => Fitted::logarithmic(all, whole),
                    false => Fitted::linear(low, high, whole),
                }
            }
        }
    }
}

/// The least and the largest value. Never empty, even if there are no values.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(start, |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// A tick, and the text beside it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

impl Tick {
    fn at(value: f64) -> Self {
        Tick {
            value,
            text: readable(value),
        }
    }
}

/// An axis with its range.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    low: f64,
    high: f64,
    kind: Kind,
    /// Ticks at round values.
    pub(super) ticks: Vec<Tick>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Linear,
    Logarithmic { zero: bool },
    Names,
}

impl Fitted {
    fn names(names: &[String]) -> Self {
        let ticks = names.iter().enumerate().map(|(index, name)| Tick {
            value: index as f64,
            text: name.clone(),
        });
        Fitted {
            low: -0.5,
            high: names.len().max(1) as f64 - 0.5,
            kind: Kind::Names,
            ticks: ticks.collect(),
        }
    }

    fn linear(low: f64, high: f64, whole: bool) -> Self {
        // Zero is shown if that costs less than half of the axis.
        let low = match whole && low > 0.0 && low < 0.5 * high {
            true => 0.0,
            false => low,
        };
        let span = match high - low {
            0.0 => high.abs().max(1.0),
            span => span,
        };
        let step = round_step(span / 5.0);
        let first = libm::floor(low / step);
        let last = libm::ceil(high / step).max(first + 1.0);
        let count = (last - first) as usize;
        let ticks = (0..=count).map(|index| (first + index as f64) * step);
        let (low, high) = match whole {
            true => (first * step, last * step),
            false => (low - 0.04 * span, high + 0.04 * span),
        };
        let inside = ticks.filter(|tick| (low..=high).contains(tick));
        Fitted {
            low,
            high,
            kind: Kind::Linear,
            ticks: inside.map(Tick::at).collect(),
        }
    }

    /// Values below zero have no place on such an axis and are left out.
    fn logarithmic(values: impl Iterator<Item = f64> + Clone, whole: bool) -> Self {
        let zero = values.clone().any(|value| value == 0.0);
        let (least, most) = bounds(values.filter(|value| *value > 0.0));
        let factors: &[f64] = match libm::log10(most / least) > 4.0 {
            true => &[1.0],
            false => &[1.0, 2.0, 5.0],
        };
        let powers =
            (libm::floor(libm::log10(least)) as i32)..=(libm::ceil(libm::log10(most)) as i32);
        let round = powers.flat_map(|power| {
            let unit = libm::pow(10.0, f64::from(power));
            factors.iter().map(move |factor| factor * unit)
        });
        let below = round
            .clone()
            .filter(|tick| *tick <= least)
            .fold(least, |_, tick| tick);
        let above = round.clone().find(|tick| *tick >= most).unwrap_or(most);
        let (low, high) = match whole {
            true if below < above => (below, above),
            _ => (least * 0.87, most * 1.15),
        };
        let ticks = round.filter(|tick| (low..=high).contains(tick));
        let ticks = zero.then_some(0.0).into_iter().chain(ticks);
        Fitted {
            low,
            high,
            kind: Kind::Logarithmic { zero },
            ticks: ticks.map(Tick::at).collect(),
        }
    }

    /// Puts ticks where the data are, if there are few enough of them.
    pub(super) fn tick_at(&mut self, values: &[f64], most: usize) {
        let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if self.kind != Kind::Names && !values.is_empty() && values.len() <= most {
            self.ticks = values.into_iter().map(Tick::at).collect();
        }
    }

    /// The position of a value, from 0 to 1. `None` if it has none.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        match self.kind {
            _ if !value.is_finite() => None,
            Kind::Linear | Kind::Names => Some((value - self.low) / (self.high - self.low)),
            Kind::Logarithmic { zero } if value == 0.0 => zero.then_some(0.0),
            Kind::Logarithmic { .. } if value < 0.0 => None,
            Kind::Logarithmic { zero } => {
                let share = libm::log(value / self.low) / libm::log(self.high / self.low);
                let gap = if zero { GAP } else { 0.0 };
                Some(gap + (1.0 - gap) * share)
            }
        }
    }

    /// Returns whether the axis has a gap above zero.
    pub(super) fn has_gap(&self) -> bool {
        self.kind == Kind::Logarithmic { zero: true }
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fits = |factor: &&f64| **factor * power >= step * 0.999;
    factors.iter().find(fits).copied().unwrap_or(10.0) * power
}

/// A number as people write it: "0.05", "2.5", "10,000".
pub(super) fn readable(value: f64) -> String {
    let decimals = match value.abs() {
        size if size == 0.0 || size >= 1000.0 => 0,
        size if size >= 1.0 => 2,
        size => (2.0 - libm::floor(libm::log10(size))) as usize,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest.to_owned()),
        None => ("", text),
    };
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(w, r)| (w, Some(r)));
    let digits = whole.len();
    let mut grouped = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (digits - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => format!("{grouped}.{rest}"),
        None => grouped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Fitted) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_cover_the_data() {
        let axis = Axis::linear("x").fit(&[2.1, 5.9], true);
        assert_eq!(texts(&axis), ["0", "2", "4", "6"]);
        let axis = Axis::linear("x").fit(&[4.2, 5.9], true);
        assert_eq!(texts(&axis), ["4", "4.5", "5", "5.5", "6"]);
        assert_eq!(axis.position(4.0), Some(0.0));
        assert_eq!(axis.position(6.0), Some(1.0));
        assert_eq!(axis.position(f64::NAN), None);
    }

    #[test]
    fn logarithmic_axes_have_a_place_for_zero_only_if_there_is_one() {
        let axis = Axis::new("x").fit(&[1.0, 100.0], true);
        assert_eq!(texts(&axis), ["1", "2", "5", "10", "20", "50", "100"]);
        let axis = Axis::new("x").fit(&[3.0, 85.0], true);
        assert_eq!(texts(&axis), ["2", "5", "10", "20", "50", "100"]);
        assert_eq!(axis.position(0.0), None);
        let axis = Axis::new("x").fit(&[0.0, 1.0, 100.0], false);
        assert_eq!(axis.position(0.0), Some(0.0));
        assert!(axis.position(1.0) > Some(GAP) && axis.position(100.0) < Some(1.0));
        assert!(axis.has_gap());
    }

    #[test]
    fn equal_values_and_no_values_have_an_axis() {
        for values in [&[][..], &[0.0], &[7.0, 7.0], &[-3.0]] {
            let axis = Axis::new("x").fit(values, true);
            for value in values {
                let position = axis.position(*value).unwrap();
                assert!((0.0..=1.0).contains(&position), "{values:?}: {position}");
            }
            assert!(axis.ticks.len() > 1);
        }
        let logarithmic = Axis {
            scale: Scale::Logarithmic,
            ..Axis::new("x")
        };
        assert!(logarithmic.fit(&[], true).ticks.len() > 1);
        assert!(logarithmic.fit(&[0.0], true).ticks.len() > 1);
    }

    #[test]
    fn few_data_get_a_tick_each() {
        let mut axis = Axis::new("x").fit(&[4.0, 16.0, 64.0], false);
        axis.tick_at(&[64.0, 4.0, 16.0, 4.0], 10);
        assert_eq!(texts(&axis), ["4", "16", "64"]);
        axis.tick_at(&[1.0, 2.0, 3.0], 2);
        assert_eq!(texts(&axis), ["4", "16", "64"]);
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let values = [
            0.0,
            0.05,
            0.00123,
            2.5,
            17.0,
            999.5,
            1000.0,
            1_234_567.0,
            -1500.0,
        ];
        let texts = [
            "0",
            "0.05",
            "0.00123",
            "2.5",
            "17",
            "999.5",
            "1,000",
            "1,234,567",
            "-1,500",
        ];
        assert_eq!(values.map(readable), texts);
    }
}
