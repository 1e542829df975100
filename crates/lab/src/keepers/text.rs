//! Runs of the model as text: a script, and the full transcript of what happens.
//!
//! A text has the form of a [scenario](crate::scenario): a head, then steps after `> `, each with
//! its transcript.
//!
//! | head | |
//! |---|---|
//! | `keepers A B C` | required; the nodes that are keepers at first |
//! | `others D E` | other nodes |
//! | `down A` | nodes that are down at first |
//! | `cluster new` | the cluster is not bootstrapped yet; without this line, it is |
//! | `reimage deployed` | re-imaging the first node also restores its permission to found |
//! | `variant A,B` | rules that are broken |
//!
//! | step | |
//! |---|---|
//! | `found A` | the first keeper bootstraps the cluster alone |
//! | `elect A [asking B C]` | A stands for election, and asks all other voters, or only these |
//! | `send L [A]` | the leader L sends its log to all keepers that lack something, or to A |
//! | `commit L` | L commits its log, which a majority has |
//! | `appoint L A` | L appoints A, which creates a store; L goes no further |
//! | `promote L A` | the same, and L proposes A as a learner |
//! | `admit L` | L proposes its learners as voters |
//! | `demote L A` | L proposes the voters without A |
//! | `complete L` | L proposes the end of a joint membership |
//! | `forget L ID` | L proposes to remove a learner that has lost its store |
//! | `set-aside L A` | A sets its store aside on the word of L, which a majority has confirmed |
//! | `join A L` | A joins the cluster that L leads |
//! | `notice A` | A sees a later generation of its cluster, and sets its store aside |
//! | `crash A`, `start A` | A goes down; A returns with its disk |
//! | `reimage A` | A returns without its data |
//! | `recover A` | `cluster recover` on A, while all nodes are down |
//! | `run` | leaders send, commit, admit and complete until nothing of that is left |
//! | `show` | shows all nodes |
//! | `finish` | checks that a majority that is up can elect a leader |

use std::fmt::Write as _;

use super::action::{Action, all, apply};
use super::check::STUCK;
use super::describe;
use super::disk::{IDS_MAX, Ids, ids, set_of};
use super::progress::{self, Progress};
use super::setup::{Budget, Setup, Variant};
use super::state::State;
use super::steps::election::reached;
use crate::epochs::describe::list;
use crate::scenario::ScenarioError;
use crate::script;

/// Maximum number of nodes.
pub const NODES_MAX: usize = 8;

/// Maximum number of steps of one `run`.
const RUN_MAX: usize = 1000;

/// The steps, as an error lists them.
const STEPS: [&str; 20] = [
    "found NODE",
    "elect NODE [asking NODE...]",
    "send LEADER [NODE]",
    "commit LEADER",
    "appoint LEADER NODE",
    "promote LEADER NODE",
    "admit LEADER",
    "demote LEADER NODE",
    "complete LEADER",
    "forget LEADER ID",
    "set-aside LEADER NODE",
    "join NODE LEADER",
    "notice NODE",
    "crash NODE",
    "start NODE",
    "reimage NODE",
    "recover NODE",
    "run",
    "show",
    "finish",
];

/// The key that only texts of the keepers have.
pub(crate) const KEY: &str = "keepers";

const KEYS: [&str; 6] = [KEY, "others", "down", "cluster", "reimage", "variant"];

/// Runs a text and returns it with the actual transcript under each step.
///
/// ```
/// let script = "keepers a b\n\n> elect a\n";
/// let text = format!("{script}b votes for a\na leads in term 1\n");
/// assert_eq!(soloist_lab::keepers::text::replay(&text).unwrap(), text);
/// ```
pub fn replay(text: &str) -> Result<String, ScenarioError> {
    let setup = read_head(text)?;
    let state = State::new(&setup);
    let mut stage = Stage { setup, state };
    script::play(text, |step| stage.step(step))
}

/// The head of a text about this cluster.
pub(super) fn head(setup: &Setup) -> String {
    let (keepers, others) = setup.names.split_at(setup.first);
    let mut head = format!("keepers {}\n", list(keepers, ""));
    if !others.is_empty() {
        let _ = writeln!(head, "others {}", list(others, ""));
    }
    if !setup.down.is_empty() {
        let down = setup.down.iter().map(|machine| setup.name(*machine));
        let _ = writeln!(head, "down {}", list(down, ""));
    }
    if !setup.starts_founded {
        let _ = writeln!(head, "cluster new");
    }
    if setup.redeploys {
        let _ = writeln!(head, "reimage deployed");
    }
    let variant = setup.variants.to_string();
    if !variant.is_empty() {
        let _ = writeln!(head, "variant {variant}");
    }
    head
}

fn read_head(text: &str) -> Result<Setup, ScenarioError> {
    let head = script::Head::read(text, &KEYS)?;
    if head.value(KEY).is_none() {
        return Err(ScenarioError::Missing(KEY));
    }
    let mut names = head.names(KEY)?;
    let first = names.len();
    names.extend(head.names("others")?);
    let allowed = || format!("use 1 to {NODES_MAX} nodes");
    if first == 0 || names.len() > NODES_MAX {
        return Err(head.wrong(KEY, &allowed()));
    }
    head.differ(KEY, &names[..first])?;
    if first < names.len() {
        head.differ("others", &names)?;
    }
    let only = |key: &'static str, allowed: &str| match head.value(key) {
        None => Ok(false),
        Some(value) if value == allowed => Ok(true),
        Some(_) => Err(head.wrong(key, &format!("use {allowed}, or leave it out"))),
    };
    let variants = head.value("variant").unwrap_or_default();
    let variants = variants.split(',').map(str::trim);
    let variants = variants.filter(|name| !name.is_empty()).map(str::parse);
    let variants: Result<Vec<Variant>, _> = variants.collect();
    let variants = variants.map_err(|error| head.wrong("variant", &error.to_string()))?;
    Ok(Setup {
        down: head.nodes("down", &names)?,
        names,
        first,
        starts_founded: !only("cluster", "new")?,
        redeploys: only("reimage", "deployed")?,
        partitions: false,
        checks_progress: true,
        budget: Budget::ONE_OF_EACH,
        variants: variants.into_iter().collect(),
    })
}

struct Stage {
    setup: Setup,
    state: State,
}

impl Stage {
    /// Takes a step and returns its transcript. The error is the reason why the step is invalid.
    fn step(&mut self, step: &str) -> Result<String, String> {
        let lines = match step {
            "show" => describe::show(&self.setup, &self.state),
            "finish" => vec![self.finish()],
            "run" => self.run()?,
            _ => {
                let words: Vec<&str> = step.split_whitespace().collect();
                let action = self.parse(&words)?;
                let action = action
                    .ok_or_else(|| format!("'{step}' is not a step; use {}", STEPS.join(", ")))?;
                self.take(action)?
            }
        };
        let mut transcript = String::new();
        for line in lines {
            let _ = writeln!(transcript, "{line}");
        }
        Ok(transcript)
    }

    fn parse(&self, words: &[&str]) -> Result<Option<Action>, String> {
        let node = |name: &str| self.node(name);
        Ok(Some(match *words {
            ["found", name] => Action::Found(node(name)?),
            ["notice", name] => Action::Notice(node(name)?),
            ["elect", name] => {
                let machine = node(name)?;
                let asked = self.other_voters(machine);
                Action::Elect { machine, asked }
            }
            ["elect", name, "asking", "nobody"] => Action::Elect {
                machine: node(name)?,
                asked: 0,
            },
            ["elect", name, "asking", _, ..] => {
                let machine = node(name)?;
                let asked = self.voters_on(machine, &words[3..])?;
                Action::Elect { machine, asked }
            }
            ["send", leader] => Action::SendAll(node(leader)?),
            ["send", leader, to] => Action::Send {
                leader: node(leader)?,
                to: node(to)?,
            },
            ["commit", leader] => Action::Commit(node(leader)?),
            ["complete", leader] => Action::Complete(node(leader)?),
            ["admit", leader] => Action::Admit(node(leader)?),
            ["forget", leader, id] => Action::Forget {
                leader: node(leader)?,
                id: id.parse().map_err(|_| format!("'{id}' is not an id"))?,
            },
            ["join", name, leader] => Action::Join {
                machine: node(name)?,
                leader: node(leader)?,
            },
            ["set-aside", leader, name] => Action::SetAside {
                leader: node(leader)?,
                machine: node(name)?,
            },
            ["appoint", leader, name] => Action::Appoint {
                leader: node(leader)?,
                machine: node(name)?,
            },
            ["promote", leader, name] => Action::Promote {
                leader: node(leader)?,
                machine: node(name)?,
            },
            ["demote", leader, name] => Action::Demote {
                leader: node(leader)?,
                machine: node(name)?,
            },
            ["crash", name] => Action::Crash(node(name)?),
            ["start", name] => Action::Start(node(name)?),
            ["reimage", name] => Action::Reimage(node(name)?),
            ["recover", name] => Action::Recover(node(name)?),
            _ => return Ok(None),
        }))
    }

    fn node(&self, name: &str) -> Result<usize, String> {
        let mut names = self.setup.names.iter();
        let node = names.position(|known| known.as_str() == name);
        node.ok_or_else(|| format!("no node '{name}'"))
    }

    /// The voters that a keeper on this machine asks for their votes.
    fn other_voters(&self, machine: usize) -> Ids {
        let store = self.state.machines[machine].store.as_ref();
        store.map_or(0, |me| me.members().all_voters() & !(1 << me.id))
    }

    /// Those of them that are on these nodes.
    fn voters_on(&self, machine: usize, names: &[&str]) -> Result<Ids, String> {
        let others = self.other_voters(machine);
        let mut asked = 0;
        for name in names {
            let owner = self.node(name)?;
            let on_it = ids(others).filter(|id| self.state.owner(*id) == owner);
            let on_it = set_of(on_it);
            if on_it == 0 {
                return Err(format!("{name} is not another voter of this keeper"));
            }
            asked |= on_it;
        }
        Ok(asked)
    }

    /// Takes a step, if it is possible.
    fn take(&mut self, action: Action) -> Result<Vec<String>, String> {
        self.state.left = Budget::ONE_OF_EACH;
        self.check(action)?;
        let before = self.state.clone();
        let done = apply(&self.setup, &mut self.state, action);
        let mut lines = describe::step(&self.setup, &before, action, &self.state);
        lines.extend(done.err().map(|violation| format!("FAULT {violation}")));
        Ok(lines)
    }

    /// Checks that a step is possible. The error says which ones are.
    fn check(&self, action: Action) -> Result<(), String> {
        let wanted = match action {
            // Voters that do not answer make no difference.
            Action::Elect { machine, asked } => {
                let store = self.state.machines[machine].store.as_ref();
                let reached = store.map_or(0, |me| reached(&self.setup, &self.state, me));
                let asked = asked & reached;
                Action::Elect { machine, asked }
            }
            other => other,
        };
        let setup = Setup {
            partitions: matches!(action, Action::Elect { .. } | Action::Send { .. }),
            ..self.setup.clone()
        };
        if !all(&setup, &self.state).contains(&wanted) {
            let possible = all(&self.setup, &self.state).into_iter();
            let possible = possible.map(|action| action.step(&self.setup, &self.state));
            let possible: Vec<_> = possible.collect();
            return Err(format!(
                "this step is not possible now; these are: {}",
                possible.join(", ")
            ));
        }
        if action.takes_id() && self.state.owners.len() == IDS_MAX {
            return Err(format!("a text has at most {IDS_MAX} keepers' ids"));
        }
        let mut stores = self.state.machines.iter().flat_map(|it| &it.store);
        if stores.any(|store| store.term > u8::MAX - 2) {
            return Err("there were too many elections".to_owned());
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        for _ in 0..RUN_MAX {
            let mut possible = all(&self.setup, &self.state).into_iter();
            let Some(action) = possible.find(|action| {
                matches!(
                    action,
                    Action::SendAll(_) | Action::Commit(_) | Action::Admit(_) | Action::Complete(_)
                )
            }) else {
                return Ok(lines);
            };
            lines.extend(self.take(action)?);
        }
        Err("steps that never stop; take them one by one".to_owned())
    }

    fn finish(&self) -> String {
        if !progress::is_required(&self.state) {
            return "the keepers need not continue: they lack a majority".to_owned();
        }
        // Enough to bootstrap the cluster.
        let mut state = self.state.clone();
        state.left.promotions = self.setup.first as u8;
        match Progress::new(&self.setup).is_possible(&state) {
            true => "the keepers can continue".to_owned(),
            false => format!("FAULT {STUCK}"),
        }
    }
}
