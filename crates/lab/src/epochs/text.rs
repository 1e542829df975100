//! Runs of a small cluster as text: a script, and the full transcript of what happens.
//!
//! A text has the form of a [scenario](crate::scenario): a head, then steps after `> `, each with
//! its transcript. What runs is a [`State`]: the nodes' and the leader's own state machines.
//!
//! | head | |
//! |---|---|
//! | `algorithm NAME` | required |
//! | `variant A,B` | |
//! | `names A B C` or `nodes N` | one is required; `nodes 3` stands for `names n0 n1 n2` |
//! | `down A` | nodes that are down at first; all others are members of epoch 1 |
//! | `lease TIME`, `drift PERCENT` | 3s and 5 unless given |
//! | `losses faulty` | a hold may be lost only on a node that a fault has hit |
//! | `elections N` | N elections may come, so leaders wait for a `confirm` |
//!
//! | step | |
//! |---|---|
//! | `request A`, `release A` | a client of node A requests the lock, or releases it |
//! | `wait TIME` | lets time pass; timers fire when they are due, and messages arrive at once |
//! | `run` | delivers everything in flight; no time passes |
//! | `deliver A B` | delivers the next message from A to B; a leader is L and its term |
//! | `commit L1`, `confirm L1` | lets the keepers answer a leader's proposal, or its question |
//! | `tick` | lets a second pass, after which all look at their clocks once |
//! | `crash A`, `start A` | A goes down; A starts as a new incarnation |
//! | `stop A` | A is told to stop: it drains, and leaves |
//! | `pause A`, `resume A` | A does nothing at all; A goes on |
//! | `stall A` | A's timers do not fire until it is resumed |
//! | `cut A`, `heal A` | messages between A and the keepers are lost; they arrive again |
//! | `cut A B`, `heal A B` | messages between A and B wait; they arrive again |
//! | `slow A renewal\|grant` | A's next renewal, or its answer, arrives when it is delivered |
//! | `suspect A` | A reports that a message was lost |
//! | `miss A B` | A reports that it cannot reach B |
//! | `elect [without A B]` | the keepers elect another leader; A and B stay with the old one |
//! | `isolate [A B]` | the same, and the old leader cannot reach the other keepers |
//! | `reunite` | it can reach them again |
//! | `show` | shows all nodes and leaders |
//! | `finish` | checks that every request is served if there are no more faults |
//!
//! Leases are renewed all the time and without delay, unless a fault prevents it. The transcript
//! mentions a renewal only by the lease that follows from it.

use std::fmt::Write as _;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::{NodeName, parse_duration};
use soloist_core::epochs::lease::Lease;
use soloist_core::{Term, Tuning};

use super::setup::names;
use super::state::{Plan, Renewal, State};
use super::under_way::Way;
use super::witness::Violation;
use crate::keepers;
use crate::scenario::ScenarioError;
use crate::script;

/// Maximum number of nodes.
pub const NODES_MAX: usize = 16;

/// Maximum time that a `wait` may take.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The steps, as an error lists them.
const STEPS: [&str; 26] = [
    "request NODE",
    "release NODE",
    "wait TIME",
    "run",
    "deliver FROM TO",
    "commit LEADER",
    "confirm LEADER",
    "tick",
    "crash NODE",
    "start NODE",
    "stop NODE",
    "pause NODE",
    "resume NODE",
    "stall NODE",
    "cut NODE [NODE]",
    "heal NODE [NODE]",
    "slow NODE renewal",
    "slow NODE grant",
    "suspect NODE",
    "miss NODE NODE",
    "elect",
    "elect without NODE...",
    "isolate [NODE...]",
    "reunite",
    "show",
    "finish",
];

/// Runs a text and returns it with the actual transcript under each step. A text whose head has
/// `keepers` is one of [the keepers](keepers::text).
///
/// ```
/// let script = "algorithm central\nnodes 2\n\n> request n0\n";
/// let text = format!("{script}0.000s n0 waits\n0.000s n0 -> n1 REQUEST\n");
/// assert_eq!(soloist_lab::epochs::text::replay(&text).unwrap(), text);
/// ```
pub fn replay(text: &str) -> Result<String, ScenarioError> {
    replay_tuned(text, Tuning::default())
}

/// As [`replay`], with changes for tests.
pub fn replay_tuned(text: &str, tuning: Tuning) -> Result<String, ScenarioError> {
    if script::Head::has(text, keepers::text::KEY) {
        return keepers::text::replay(text);
    }
    let mut stage = Stage::new(text, tuning)?;
    script::play(text, |step| stage.step(step))
}

struct Stage {
    state: State,
    names: Vec<NodeName>,
}

impl Stage {
    fn new(text: &str, tuning: Tuning) -> Result<Self, ScenarioError> {
        let mut head = Head::read(text)?;
        head.plan.tuning = tuning;
        head.plan.rules()?;
        let names = head.plan.names.clone();
        let mut state = State::formed(head.plan, &head.down);
        state.expect_elections(head.elections);
        state.record();
        Ok(Stage { state, names })
    }

    /// Takes a step and returns its transcript. The error is the reason why the step is invalid.
    fn step(&mut self, step: &str) -> Result<String, String> {
        let done = self.take(step)?;
        let done = done.and_then(|()| self.state.look());
        self.state.end_left();
        self.state.note_leases();
        let mut transcript = String::new();
        for line in self.state.take_lines() {
            let _ = writeln!(transcript, "{line}");
        }
        if let Err(violation) = done {
            let _ = writeln!(transcript, "FAULT {violation}");
        }
        Ok(transcript)
    }

    fn take(&mut self, step: &str) -> Result<Result<(), Violation>, String> {
        let words: Vec<&str> = step.split_whitespace().collect();
        let done = match words[..] {
            ["request", node] => {
                let node = self.awake(node)?;
                if self.state.is_draining(node) {
                    return Err("this node is stopping and accepts no requests".to_owned());
                }
                self.state.request(node)
            }
            ["release", node] => {
                let node = self.awake(node)?;
                if self.state.witness().hold(node).is_none() {
                    return Err("no client is inside on this node".to_owned());
                }
                self.state.release(node)
            }
            ["wait", time] => self.state.wait(wait(time)?),
            ["run"] => self.state.deliver_all(),
            ["deliver", from, to] => {
                let way = self.way(from, to)?;
                self.deliver(way)?
            }
            ["commit", leader] => {
                let term = self.leader(leader)?;
                self.deliver(Way::Commit { term })?
            }
            ["confirm", leader] => {
                let term = self.leader(leader)?;
                self.deliver(Way::Confirm { term })?
            }
            ["tick"] => self.state.step(),
            ["start", node] => {
                let node = self.node(node)?;
                if self.state.node(node).is_some() {
                    return Err("this node is already up".to_owned());
                }
                self.state.start(node)
            }
            ["stop", node] => self.state.stop(self.awake(node)?),
            ["suspect", node] => self.state.suspect(self.awake(node)?),
            ["resume", node] => self.state.resume(self.up(node)?),
            ["elect"] => self.state.elect_without(&[]),
            ["elect", "without", ..] => self.state.elect_without(&self.nodes(&words[2..])?),
            ["isolate", ..] => self.state.isolate(&self.nodes(&words[1..])?),
            ["finish"] => {
                let done = self.state.clone().completes();
                if done.is_ok() {
                    self.state.note("every request is served");
                }
                done
            }
            ["show"] => {
                self.state.show();
                Ok(())
            }
            _ => {
                self.disturb(&words)
                    .ok_or_else(|| format!("'{step}' is not a step; use {}", STEPS.join(", ")))??;
                Ok(())
            }
        };
        Ok(done)
    }

    /// Takes a step that only adds or removes a fault. Returns `None` if it is no such step.
    fn disturb(&mut self, words: &[&str]) -> Option<Result<(), String>> {
        let mut apply = || -> Result<bool, String> {
            match *words {
                ["crash", node] => self.state.crash(self.up(node)?),
                ["pause", node] => self.state.pause(self.up(node)?),
                ["stall", node] => self.state.stall(self.up(node)?),
                ["cut", node] => self.state.cut(self.node(node)?),
                ["heal", node] => self.state.heal(self.node(node)?),
                ["cut", one, other] => {
                    let (one, other) = (self.node(one)?, self.node(other)?);
                    self.state.cut_link(one, other);
                    self.state.cut_link(other, one);
                }
                ["heal", one, other] => {
                    let (one, other) = (self.node(one)?, self.node(other)?);
                    self.state.heal_link(one, other);
                    self.state.heal_link(other, one);
                }
                ["slow", node, "renewal"] => self.state.slow(self.up(node)?, Renewal::Asked),
                ["slow", node, "grant"] => self.state.slow(self.up(node)?, Renewal::Granted),
                ["miss", node, other] => self.state.miss(self.up(node)?, self.node(other)?),
                ["reunite"] => self.state.reunite(),
                _ => return Ok(false),
            }
            Ok(true)
        };
        match apply() {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(reason) => Some(Err(reason)),
        }
    }

    fn deliver(&mut self, way: Way) -> Result<Result<(), Violation>, String> {
        if !self.state.ways().any(|other| other == way) {
            return Err("no such message is in flight".to_owned());
        }
        match self.state.is_held_up(way) {
            Some(reason) => Err(reason),
            None => Ok(self.state.deliver(way)),
        }
    }

    fn way(&self, from: &str, to: &str) -> Result<Way, String> {
        match (self.leader(from), self.leader(to)) {
            (Ok(term), _) => Ok(Way::ToMember {
                term,
                to: self.node(to)?,
            }),
            (_, Ok(term)) => Ok(Way::ToLeader {
                from: self.node(from)?,
                term,
            }),
            _ => Ok(Way::Link {
                from: self.node(from)?,
                to: self.node(to)?,
            }),
        }
    }

    fn leader(&self, word: &str) -> Result<Term, String> {
        let term = word
            .strip_prefix('L')
            .and_then(|term| term.parse().ok())
            .map(Term);
        let known = term.filter(|&term| self.state.leader(term).is_some());
        known.ok_or_else(|| format!("no leader '{word}'"))
    }

    fn node(&self, name: &str) -> Result<usize, String> {
        let node = self.names.iter().position(|known| known.as_str() == name);
        node.ok_or_else(|| format!("no node '{name}'"))
    }

    fn nodes(&self, names: &[&str]) -> Result<Vec<usize>, String> {
        names.iter().map(|name| self.node(name)).collect()
    }

    fn up(&self, name: &str) -> Result<usize, String> {
        let node = self.node(name)?;
        let is_up = self.state.node(node).is_some();
        is_up
            .then_some(node)
            .ok_or_else(|| format!("{name} is down"))
    }

    fn awake(&self, name: &str) -> Result<usize, String> {
        let node = self.up(name)?;
        match self.state.is_paused(node) {
            true => Err(format!("{name} is paused")),
            false => Ok(node),
        }
    }
}

fn wait(time: &str) -> Result<Duration, String> {
    let time = parse_duration(time).map_err(|error| error.to_string())?;
    match time > WAIT_MAX {
        true => Err(format!("the longest wait is {WAIT_MAX:?}")),
        false => Ok(time),
    }
}

/// The parsed head of a text.
struct Head {
    plan: Plan,
    down: Vec<usize>,
    elections: u8,
}

impl Head {
    const KEYS: [&str; 9] = [
        "algorithm",
        "variant",
        "names",
        "nodes",
        "down",
        "lease",
        "drift",
        "losses",
        "elections",
    ];

    fn read(text: &str) -> Result<Self, ScenarioError> {
        let head = script::Head::read(text, &Self::KEYS)?;
        let algorithm = head.value("algorithm");
        let algorithm = algorithm.ok_or(ScenarioError::Missing("algorithm"))?;
        let choice = Choice::parse(algorithm, head.value("variant").unwrap_or_default())?;
        let names = Self::names(&head)?;
        let down = head.nodes("down", &names)?;
        if down.len() == names.len() {
            return Err(head.wrong("down", "at least one node must be up"));
        }
        let losses_need_faults = match head.value("losses") {
            None => false,
            Some("faulty") => true,
            Some(_) => return Err(head.wrong("losses", "use faulty, or leave it out")),
        };
        let elections = head.value("elections").map(str::parse).transpose();
        let elections = elections.map_err(|_| head.wrong("elections", "not a small number"))?;
        Ok(Head {
            plan: Plan {
                choice,
                names,
                lease: Self::lease(&head)?,
                losses_need_faults,
                confirmations_wait: elections.is_some(),
                tuning: Tuning::default(),
            },
            down,
            elections: elections.unwrap_or(0),
        })
    }

    fn names(head: &script::Head) -> Result<Vec<NodeName>, ScenarioError> {
        let (key, all) = match (head.value("names"), head.value("nodes")) {
            (Some(_), _) => ("names", head.names("names")?),
            (None, Some(nodes)) => {
                let nodes = nodes.parse().ok().filter(|nodes| *nodes <= NODES_MAX);
                let nodes = nodes.ok_or_else(|| head.wrong("nodes", &allowed()))?;
                ("nodes", names(nodes))
            }
            (None, None) => return Err(ScenarioError::Missing("nodes")),
        };
        head.differ(key, &all)?;
        match all.len() {
            1..=NODES_MAX => Ok(all),
            _ => Err(head.wrong(key, &allowed())),
        }
    }

    fn lease(head: &script::Head) -> Result<Lease, ScenarioError> {
        let mut lease = Lease::default();
        if let Some(length) = head.value("lease") {
            let length = parse_duration(length);
            lease.length = length.map_err(|error| head.wrong("lease", &error.to_string()))?;
            if !(Lease::LEAST..=WAIT_MAX).contains(&lease.length) {
                let limits = format!("use {:?} to {WAIT_MAX:?}", Lease::LEAST);
                return Err(head.wrong("lease", &limits));
            }
        }
        if let Some(drift) = head.value("drift") {
            let drift = drift.parse().ok().filter(|drift| (0..=50).contains(drift));
            lease.drift = drift.ok_or_else(|| head.wrong("drift", "use a number from 0 to 50"))?;
        }
        Ok(lease)
    }
}

fn allowed() -> String {
    format!("use 1 to {NODES_MAX} nodes")
}
