//! Metadata about an algorithm, and the variants of its rules.

use std::fmt;
use std::str::FromStr;

use crate::NameError;

/// Metadata about an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name on the command line.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Authors, year and title.
    pub paper: &'static str,
    /// What it assumes about the channels between nodes.
    pub channels: Channels,
    /// Variants of its rules, all off by default.
    pub variants: &'static [Variant],
    /// Names for this algorithm with certain variants enabled.
    pub presets: &'static [Preset],
}

impl Info {
    /// Metadata without a paper, aliases, variants or presets.
    pub const fn new(name: &'static str, channels: Channels) -> Self {
        Info {
            name,
            aliases: &[],
            paper: "",
            channels,
            variants: &[],
            presets: &[],
        }
    }
}

/// What an algorithm assumes about the channels between nodes. Channels never lose or duplicate
/// messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    /// Messages from one node to another arrive in the order in which they were sent.
    Fifo,
    /// Messages may overtake each other.
    Any,
}

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Channels::Fifo => "fifo",
            Channels::Any => "any",
        })
    }
}

impl FromStr for Channels {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        match given {
            "fifo" => Ok(Channels::Fifo),
            "any" => Ok(Channels::Any),
            _ => Err("use fifo or any"),
        }
    }
}

/// A switch in an algorithm's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its bit in a [`VariantSet`]; unique within the algorithm.
    pub bit: u8,
    /// Its name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Names of variants that cannot be combined with it.
    pub excludes: &'static [&'static str],
    /// The variant without which this one means nothing.
    pub needs: Option<&'static str>,
    /// Whether it is known to break a promise of the algorithm. The lab runs it, a node does not.
    pub is_faulty: bool,
}

impl Variant {
    /// A variant that can be combined with all others.
    pub const fn new(bit: u8, name: &'static str, about: &'static str) -> Self {
        Variant {
            bit,
            name,
            about,
            excludes: &[],
            needs: None,
            is_faulty: false,
        }
    }

    /// A repair of the variant `as-published`, by itself.
    pub const fn repair(bit: u8, name: &'static str, about: &'static str) -> Self {
        Variant {
            needs: Some("as-published"),
            ..Variant::new(bit, name, about)
        }
    }

    /// The same variant, which cannot be combined with these.
    #[must_use]
    pub const fn excluding(self, excludes: &'static [&'static str]) -> Self {
        Variant { excludes, ..self }
    }

    /// The same variant, which is known to break a promise.
    #[must_use]
    pub const fn faulty(self) -> Self {
        Variant {
            is_faulty: true,
            ..self
        }
    }
}

/// A name for an algorithm with certain variants enabled.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// Authors, year and title.
    pub paper: &'static str,
    /// The variants it stands for.
    pub variants: &'static [Variant],
}

/// The variants in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VariantSet(u16);

impl VariantSet {
    /// Whether the variant is in the set.
    pub const fn has(self, variant: Variant) -> bool {
        self.0 & (1 << variant.bit) != 0
    }

    /// Returns this set with the variant added.
    #[must_use]
    pub const fn with(self, variant: Variant) -> Self {
        VariantSet(self.0 | (1 << variant.bit))
    }

    /// Parses names separated by commas. An empty string means no variants.
    ///
    /// ```
    /// # use soloist_algorithms::{Algorithm, VariantSet, raymond::{self, Raymond}};
    /// let set = VariantSet::parse("piggyback,greedy", &Raymond::INFO).unwrap();
    /// assert!(set.has(raymond::GREEDY));
    /// assert!(VariantSet::parse("gredy", &Raymond::INFO).unwrap_err().to_string().contains("greedy"));
    /// ```
    pub fn parse(names: &str, info: &Info) -> Result<Self, NameError> {
        let mut set = VariantSet::default();
        for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let found = info.variants.iter().find(|v| v.name == name);
            let Some(variant) = found else {
                let known = info.variants.iter().map(|v| v.name);
                return Err(NameError::unknown_variant(name, info.name, known));
            };
            set = set.with(*variant);
        }
        for variant in set.of(info) {
            if let Some(other) = set.of(info).find(|v| variant.excludes.contains(&v.name)) {
                return Err(NameError::Contradiction {
                    one: variant.name,
                    other: other.name,
                    algorithm: info.name,
                });
            }
            let is_needed = |needed: &&str| set.of(info).all(|v| v.name != *needed);
            if let Some(needed) = variant.needs.filter(is_needed) {
                return Err(NameError::Alone {
                    variant: variant.name,
                    needed,
                });
            }
        }
        Ok(set)
    }

    /// The algorithm's variants that are in this set.
    pub fn of(self, info: &Info) -> impl Iterator<Item = &'static Variant> + use<> {
        info.variants.iter().filter(move |v| self.has(**v))
    }

    /// The names of those variants, separated by commas.
    pub fn names(self, info: &Info) -> String {
        let names: Vec<_> = self.of(info).map(|v| v.name).collect();
        names.join(",")
    }
}
