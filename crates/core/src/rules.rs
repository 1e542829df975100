//! Which algorithm a lock uses, by its name.

mod pattern;

use std::fmt::{self, Write as _};
use std::sync::Arc;

use soloist_algorithms::{ByteOutbox, Choice, Cluster, NameError, NodeId, ShapeError, Start};

use pattern::Patterns;

pub use pattern::PatternError;

/// How a lock is run, as written in the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSettings {
    /// The algorithm's name, alias or preset.
    pub algorithm: String,
    /// Variants, separated by commas. Empty for those that suit a network best.
    pub variant: String,
    /// The form of the shape. Empty for the algorithm's own.
    pub shape: String,
    /// Number of its own waiters that a node serves before it passes the lock on.
    pub max_local_turns: u32,
}

impl Default for RuleSettings {
    fn default() -> Self {
        RuleSettings {
            algorithm: Self::ALGORITHM.to_owned(),
            variant: String::new(),
            shape: String::new(),
            max_local_turns: Self::LOCAL_TURNS,
        }
    }
}

impl RuleSettings {
    /// The algorithm of locks without a rule of their own: few messages whatever the number of
    /// nodes, few links, and an idle lock leaves nothing behind.
    pub const ALGORITHM: &str = "raymond";

    /// The `max_local_turns` of locks without a rule of their own. With many clients per node, more
    /// turns save messages; each turn also lets one more entry overtake the waiters of other nodes.
    pub const LOCAL_TURNS: u32 = 4;

    /// The largest `max_local_turns`.
    pub const TURNS_MOST: u32 = 1_000_000;
}

/// How a lock is run.
#[derive(Clone)]
pub struct Rule {
    choice: Choice,
    shape: Option<String>,
    max_local_turns: u32,
    cluster: Arc<dyn Cluster>,
}

impl Rule {
    /// The algorithm and its variants.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The form of the shape, or `None` for the algorithm's own.
    pub fn shape(&self) -> Option<&str> {
        self.shape.as_deref()
    }

    /// Number of its own waiters that a node serves before it passes the lock on; at least 1.
    pub fn max_local_turns(&self) -> u32 {
        self.max_local_turns
    }

    /// Creates the nodes' state machines. Rules with the same algorithm and shape share it.
    pub fn cluster(&self) -> &Arc<dyn Cluster> {
        &self.cluster
    }

    fn same_cluster(&self, choice: Choice, shape: Option<&str>) -> bool {
        self.choice.kind == choice.kind
            && self.choice.variants == choice.variants
            && self.shape.as_deref() == shape
    }

    fn sized(&self, nodes: usize, before: &[Rule]) -> Rule {
        let (choice, shape) = (self.choice, self.shape.as_deref());
        let same = before.iter().find(|rule| rule.same_cluster(choice, shape));
        let cluster = match same {
            Some(rule) => Arc::clone(&rule.cluster),
            None => {
                let own = || choice.cluster(None, nodes);
                let cluster = choice.cluster(shape, nodes).or_else(|_| own());
                cluster
                    .expect("every algorithm has a shape for every number of nodes")
                    .into()
            }
        };
        Rule {
            cluster,
            ..self.clone()
        }
    }

    /// Writes the resolved names: `fair` and `lodha-kshemkalyani` are the same.
    fn agree(&self, text: &mut String) {
        let info = self.choice.kind.info();
        let variants = self.choice.variants.names(info);
        let shape = self.shape.as_deref().unwrap_or_default();
        let turns = self.max_local_turns;
        let _ = writeln!(
            text,
            " algorithm={} variant={variants} shape={shape} max_local_turns={turns}",
            info.name
        );
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("choice", &self.choice)
            .field("shape", &self.shape)
            .field("max_local_turns", &self.max_local_turns)
            .finish_non_exhaustive()
    }
}

/// An invalid rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}")]
pub struct RuleError {
    /// Index of the rule's pattern, or `None` for the default rule.
    pub place: Option<usize>,
    /// Description of the problem.
    pub problem: RuleProblem,
}

/// What is wrong with a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleProblem {
    /// An unknown algorithm or variant.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A shape that does not exist for this algorithm and number of nodes.
    #[error("{error} (with {nodes} nodes)")]
    Shape {
        /// Description of the problem.
        error: ShapeError,
        /// Number of nodes.
        nodes: usize,
    },
    /// An invalid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Rules as printed, with their faults.
    #[error(
        "{algorithm} with '{variant}' can let two nodes inside or leave a waiter unserved: use it in \
         the lab only"
    )]
    Faulty {
        /// The algorithm.
        algorithm: &'static str,
        /// The variant.
        variant: &'static str,
    },
    /// A shape that does not exist for this algorithm with any number of nodes.
    #[error("{error} (tried with 1 to {} nodes)", Rules::TRIED_MOST)]
    NoShape {
        /// The error for one of these numbers.
        error: ShapeError,
    },
    /// The algorithm sends messages before a lock is first used.
    #[error(
        "{0} with this variant sends messages before any request, but a lock does not exist \
         before its first request: choose another variant"
    )]
    Restless(&'static str),
    /// Too few or too many turns.
    #[error("invalid number of turns {0}: use 1 to {max}", max = RuleSettings::TURNS_MOST)]
    Turns(i64),
}

impl RuleProblem {
    /// The setting with the problem.
    pub fn key(&self) -> &'static str {
        match self {
            RuleProblem::Name(NameError::Algorithm { .. }) => "algorithm",
            RuleProblem::Name(_) | RuleProblem::Faulty { .. } | RuleProblem::Restless(_) => {
                "variant"
            }
            RuleProblem::Shape { .. } | RuleProblem::NoShape { .. } => "shape",
            RuleProblem::Pattern(_) => "pattern",
            RuleProblem::Turns(_) => "max_local_turns",
        }
    }
}

/// Which algorithm each lock uses: the rule of the first pattern that matches its name, or the
/// default. Cheap to clone.
///
/// ```
/// use soloist_core::rules::{RuleSettings, Rules};
///
/// let fair = RuleSettings { algorithm: "fair".into(), ..Default::default() };
/// let locks = [("billing/*".to_owned(), fair)];
/// let rules = Rules::new(2, &RuleSettings::default(), &locks).unwrap();
/// assert_eq!(rules.rule("billing/eu").choice().name, "lodha-kshemkalyani");
/// assert_eq!(rules.rule("nightly").choice().name, RuleSettings::ALGORITHM);
/// ```
#[derive(Clone, Debug)]
pub struct Rules {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    patterns: Patterns,
    /// One per pattern, then the default.
    rules: Vec<Rule>,
    agreement: String,
}

/// The number of nodes that rules are made for.
#[derive(Clone, Copy)]
enum Number {
    Known(usize),
    /// Nodes join and leave.
    Any,
}

impl Rules {
    /// Maximum number of nodes to try a shape with, if the number is unknown.
    pub const TRIED_MOST: usize = 64;

    /// Rules for this many nodes: the default, and patterns with their rules. The first that
    /// matches counts.
    pub fn new(
        nodes: usize,
        default: &RuleSettings,
        locks: &[(String, RuleSettings)],
    ) -> Result<Self, RuleError> {
        Self::compiled(Number::Known(nodes), default, locks)
    }

    /// Like [`new`](Self::new), for nodes that join and leave. A shape must fit some number of
    /// nodes up to [`TRIED_MOST`](Self::TRIED_MOST), and each rule is made for a number that fits.
    /// [Size](Self::sized) the rules before using them.
    pub fn for_any(
        default: &RuleSettings,
        locks: &[(String, RuleSettings)],
    ) -> Result<Self, RuleError> {
        Self::compiled(Number::Any, default, locks)
    }

    fn compiled(
        nodes: Number,
        default: &RuleSettings,
        locks: &[(String, RuleSettings)],
    ) -> Result<Self, RuleError> {
        let mut rules = Vec::with_capacity(locks.len() + 1);
        let given = locks.iter().map(|(_, settings)| settings);
        for (place, settings) in given.chain([default]).enumerate() {
            let place = Some(place).filter(|place| *place < locks.len());
            let rule = compile(settings, nodes, &rules);
            rules.push(rule.map_err(|problem| RuleError { place, problem })?);
        }
        for (place, (pattern, _)) in locks.iter().enumerate() {
            pattern::check(pattern).map_err(|error| RuleError {
                place: Some(place),
                problem: error.into(),
            })?;
        }
        let patterns: Vec<&str> = locks.iter().map(|(pattern, _)| pattern.as_str()).collect();
        let agreement = agreement(&patterns, &rules);
        let patterns = Patterns::new(&patterns).map_err(|error| RuleError {
            place: Some(0),
            problem: error.into(),
        })?;
        Ok(Rules {
            inner: Arc::new(Inner {
                patterns,
                rules,
                agreement,
            }),
        })
    }

    /// The same rules for this many nodes. A shape that does not exist for this number is replaced
    /// by the algorithm's own.
    pub fn sized(&self, nodes: usize) -> Self {
        let inner = &*self.inner;
        // Rules for any number of nodes may have been made for different numbers.
        if inner.rules.iter().all(|rule| rule.cluster.nodes() == nodes) {
            return self.clone();
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(inner.rules.len());
        for rule in &inner.rules {
            rules.push(rule.sized(nodes, &rules));
        }
        Rules {
            inner: Arc::new(Inner {
                patterns: inner.patterns.clone(),
                rules,
                agreement: inner.agreement.clone(),
            }),
        }
    }

    /// The rule of the lock with this name. Takes time proportional to the name's length.
    pub fn rule(&self, lock_name: &str) -> &Rule {
        let Inner {
            patterns, rules, ..
        } = &*self.inner;
        let place = patterns.first_match(lock_name);
        &rules[place.unwrap_or(rules.len() - 1)]
    }

    /// All rules, in the order of the patterns; the default is the last.
    pub fn all(&self) -> &[Rule] {
        &self.inner.rules
    }

    /// The text of everything about the rules that all nodes must agree on, for a person who looks
    /// for the difference.
    pub fn agreement(&self) -> &str {
        &self.inner.agreement
    }
}

fn compile(settings: &RuleSettings, nodes: Number, before: &[Rule]) -> Result<Rule, RuleProblem> {
    let turns = settings.max_local_turns;
    if !(1..=RuleSettings::TURNS_MOST).contains(&turns) {
        return Err(RuleProblem::Turns(turns.into()));
    }
    let choice = choose(&settings.algorithm, &settings.variant)?;
    let shape = Some(settings.shape.trim()).filter(|shape| !shape.is_empty());
    let same = before.iter().find(|rule| rule.same_cluster(choice, shape));
    let cluster = match same {
        Some(rule) => Arc::clone(&rule.cluster),
        None => cluster(choice, shape, nodes)?.into(),
    };
    let info = choice.kind.info();
    if let Some(faulty) = choice.variants.of(info).find(|variant| variant.is_faulty) {
        return Err(RuleProblem::Faulty {
            algorithm: info.name,
            variant: faulty.name,
        });
    }
    // With a shape of one node it would send nothing; with more nodes it would have its own shape.
    let speaks_later = match nodes {
        Number::Known(_) => false,
        Number::Any => {
            let own = choice.cluster(None, TRIED_FIRST);
            own.is_ok_and(|own| !begins_in_silence(&*own))
        }
    };
    if speaks_later || !begins_in_silence(&*cluster) {
        return Err(RuleProblem::Restless(info.name));
    }
    Ok(Rule {
        choice,
        shape: shape.map(str::to_owned),
        max_local_turns: turns,
        cluster,
    })
}

/// The number of nodes that is tried first: enough for messages between any two, and for a node
/// between them.
const TRIED_FIRST: usize = 4;

fn cluster(
    choice: Choice,
    shape: Option<&str>,
    nodes: Number,
) -> Result<Box<dyn Cluster>, RuleProblem> {
    match nodes {
        Number::Known(nodes) => {
            let made = choice.cluster(shape, nodes);
            made.map_err(|error| RuleProblem::Shape { error, nodes })
        }
        Number::Any => choice.cluster(shape, TRIED_FIRST).or_else(|error| {
            let mut tried = (1..=Rules::TRIED_MOST).map(|nodes| choice.cluster(shape, nodes));
            let fits = tried.find_map(Result::ok);
            fits.ok_or(RuleProblem::NoShape { error })
        }),
    }
}

/// Whether no node sends anything before the first request, not even a lock's home.
fn begins_in_silence(cluster: &dyn Cluster) -> bool {
    let first = NodeId::new(0);
    let mut out = ByteOutbox::new();
    cluster
        .machine(first, Start::idle(first), 0)
        .start(&mut out);
    out.sends().next().is_none()
}

/// Chooses the algorithm and its variants. A token that circulates forever would keep the network
/// and every idle lock busy. So an algorithm that can let its token rest does, unless a variant is
/// given.
fn choose(algorithm: &str, variant: &str) -> Result<Choice, NameError> {
    let choice = Choice::parse(algorithm, variant)?;
    let mut can = choice.kind.info().variants.iter();
    if variant.trim().is_empty() && can.any(|variant| variant.name == "resting") {
        return Choice::parse(algorithm, "resting");
    }
    Ok(choice)
}

fn agreement(patterns: &[&str], rules: &[Rule]) -> String {
    let mut text = String::new();
    for (pattern, rule) in patterns.iter().zip(rules) {
        // A pattern may contain any character. With its length in front, the text is unambiguous.
        let _ = write!(text, "lock {}:{pattern}", pattern.len());
        rule.agree(&mut text);
    }
    text.push_str("default");
    rules[rules.len() - 1].agree(&mut text);
    text
}
