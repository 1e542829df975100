//! The list of all algorithms. No other place names them one by one.
//!
//! To add an algorithm: write a file with its [`Algorithm`], add its `mod` line in `lib.rs`, and
//! add a line to the list below.

use std::fmt;

use crate::{Algorithm, Info, VariantSet};

/// An operation on an algorithm that is known only by its [`Kind`].
pub trait Visitor {
    /// The operation's result.
    type Output;

    /// Runs the operation for the algorithm `A`.
    fn visit<A: Algorithm>(self) -> Self::Output;
}

/// Generates the enum, the list and the dispatch from one line per algorithm.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $module:ident::$Type:ident,)*) => {
        /// One of the algorithms.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $(#[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")] $Type,)*
        }

        impl Kind {
            /// All algorithms: those of the five papers first, then the others.
            pub const ALL: &'static [Kind] = &[$(Kind::$Type,)*];

            /// Metadata about the algorithm.
            pub fn info(self) -> &'static Info {
                match self { $(Kind::$Type => &crate::$module::$Type::INFO,)* }
            }

            /// Runs an operation on this algorithm.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self { $(Kind::$Type => visitor.visit::<crate::$module::$Type>(),)* }
            }
        }
    };
}

algorithms! {
    chaudhuri_karaata::ChaudhuriKaraata,
    maekawa::Maekawa,
    raymond::Raymond,
    neamatollahi::Neamatollahi,
    lodha_kshemkalyani::LodhaKshemkalyani,
    central::Central,
    ricart_agrawala::RicartAgrawala,
    suzuki_kasami::SuzukiKasami,
    naimi_trehel::NaimiTrehel,
    lamport::Lamport,
    carvalho_roucairol::CarvalhoRoucairol,
    neilsen_mizuno::NeilsenMizuno,
    le_lann::LeLann,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.info().name)
    }
}

/// An algorithm as chosen by a user: a name, an alias or a preset, with variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The algorithm.
    pub kind: Kind,
    /// The name in use: the algorithm's or a preset's.
    pub name: &'static str,
    /// The variants in use: the preset's and those the user added.
    pub variants: VariantSet,
}

impl Choice {
    /// Every algorithm and every preset, in the order of the list.
    pub fn all() -> impl Iterator<Item = Choice> {
        Kind::ALL.iter().flat_map(|&kind| {
            let plain = Choice {
                kind,
                name: kind.info().name,
                variants: VariantSet::default(),
            };
            let presets = kind.info().presets.iter().map(move |preset| Choice {
                kind,
                name: preset.name,
                variants: preset
                    .variants
                    .iter()
                    .fold(VariantSet::default(), |set, v| set.with(*v)),
            });
            std::iter::once(plain).chain(presets)
        })
    }

    /// Parses the name of an algorithm, and the names of additional variants separated by commas.
    ///
    /// ```
    /// # use soloist_algorithms::{Choice, Kind};
    /// assert_eq!(Choice::parse("ra", "").unwrap().kind, Kind::RicartAgrawala);
    /// assert!(Choice::parse("ricart-agravala", "").unwrap_err().to_string().contains("ricart-agrawala"));
    /// ```
    pub fn parse(name: &str, variants: &str) -> Result<Self, NameError> {
        let found = Self::all().find(|choice| {
            let info = choice.kind.info();
            choice.name == name || (choice.name == info.name && info.aliases.contains(&name))
        });
        let Some(choice) = found else {
            let aliases = Kind::ALL
                .iter()
                .flat_map(|kind| kind.info().aliases.iter().copied());
            let known = Self::all().map(|choice| choice.name).chain(aliases);
            return Err(NameError::unknown_algorithm(name, known));
        };
        let info = choice.kind.info();
        let all = format!("{},{variants}", choice.variants.names(info));
        Ok(Choice {
            variants: VariantSet::parse(&all, info)?,
            ..choice
        })
    }
}

/// An unknown name, or names that cannot be combined.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No algorithm has this name.
    #[error("unknown algorithm '{name}'{}; `soloist lab list` shows them all", did_you_mean(.nearest))]
    Algorithm {
        /// The unknown name.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
    },
    /// The algorithm has no variant of this name.
    #[error(
        "unknown variant '{name}' of {algorithm}{}; it has {}",
        did_you_mean(.nearest),
        if .known.is_empty() { "none" } else { .known }
    )]
    Variant {
        /// The unknown name.
        name: String,
        /// The algorithm.
        algorithm: &'static str,
        /// The most similar known name.
        nearest: Option<&'static str>,
        /// All known names.
        known: String,
    },
    /// A variant without the one that it changes.
    #[error("variant '{variant}' changes '{needed}': give both, as in {needed},{variant}")]
    Alone {
        /// The variant given.
        variant: &'static str,
        /// The variant to give with it.
        needed: &'static str,
    },
    /// Two variants that cannot be combined.
    #[error("variants '{one}' and '{other}' of {algorithm} contradict each other: choose one")]
    Contradiction {
        /// One of them.
        one: &'static str,
        /// The other.
        other: &'static str,
        /// The algorithm.
        algorithm: &'static str,
    },
}

impl NameError {
    fn unknown_algorithm(name: &str, known: impl Iterator<Item = &'static str>) -> Self {
        NameError::Algorithm {
            name: name.to_owned(),
            nearest: nearest(name, known),
        }
    }

    pub(crate) fn unknown_variant(
        name: &str,
        algorithm: &'static str,
        known: impl Iterator<Item = &'static str>,
    ) -> Self {
        let known: Vec<_> = known.collect();
        NameError::Variant {
            name: name.to_owned(),
            algorithm,
            nearest: nearest(name, known.iter().copied()),
            known: known.join(", "),
        }
    }
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
}

/// The known name most similar to `name`, or `None` if none is similar enough.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = &name.to_lowercase();
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
