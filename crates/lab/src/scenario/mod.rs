//! Runs as text: a script and the full transcript of what the nodes do.
//!
//! A scenario starts with a head, one `key value` per line, followed by steps, each after `> `. The
//! lines under a step are its transcript. [`replay`] rewrites them, so a scenario is correct if
//! replaying it changes nothing. Lines that start with `#` are comments.
//!
//! | head | |
//! |---|---|
//! | `algorithm NAME` | required |
//! | `variant A,B` | |
//! | `names A B C` or `nodes N` | one is required; the names stand for nodes 0, 1, 2... |
//! | `shape FORM` or `listing LINE; LINE` | the shape; a listing uses node numbers |
//! | `home A`, `inside A` | where the token starts; which node starts inside |
//! | `channels fifo\|any` | whether messages may overtake each other |
//!
//! | step | |
//! |---|---|
//! | `start` | shows what the nodes did when they started, if anything |
//! | `request A`, `release A` | |
//! | `deliver A B [KIND\|MESSAGE]` | delivers the oldest (such) message from A to B |
//! | `run` | delivers everything in the order sent, until no message is in flight |
//! | `show A` | shows A's state |
//! | `forget all [A CLOCK]` | re-creates all nodes; all must be idle, with no message in flight |
//! | `forget A [CLOCK]` | re-creates A, which must be quiescent (`is_at_rest`) |
//! | `crash A [INCARNATION]` | A fails and loses its state; it is back but has not restarted yet |
//! | `restart A`, `settled A` | its waits are over; recovery goes on |
//! | `lose A B [KIND\|MESSAGE]` | the oldest (such) message from A to B is lost; B has crashed |
//! | `at TIME` | the next steps happen at this time, in message delays; for pictures only |
//!
//! A re-created node keeps its clock, unless a clock is given for A.
//!
//! ```
//! let text = "algorithm central\nnodes 2\n\n> request 1\n1 -> 0 REQUEST\n> run\n0 -> 1 GRANT\n1 enters\n";
//! assert_eq!(soloist_lab::scenario::replay(text).unwrap(), text);
//! ```

use std::fmt::Write as _;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Effect, NameError, NodeId, ShapeError, Shown};
use soloist_core::rules::RuleError;

mod head;
mod stage;

use crate::script;
pub use crate::script::{Difference, first_difference};
use crate::search::CaseError;
use crate::world::World;
pub(crate) use head::Head;
pub(crate) use stage::{Deed, Posted, Stage, StageEvent, Witness};

/// Why a text is not a valid scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// A line that cannot be parsed or executed.
    #[error("line {line}: {reason}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// Description of the problem.
        reason: String,
    },
    /// The head lacks the algorithm or the number of nodes.
    #[error("the head of a scenario needs '{0}'")]
    Missing(&'static str),
    /// More nodes than fit into memory with this algorithm.
    #[error("{algorithm} supports at most {most} nodes in memory, not {nodes}")]
    TooManyNodes {
        /// The algorithm.
        algorithm: &'static str,
        /// The number of nodes given.
        nodes: usize,
        /// The maximum.
        most: usize,
    },
    /// An unknown name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An invalid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A cluster that cannot be searched.
    #[error(transparent)]
    Search(#[from] CaseError),
    /// Rules that a node would not take.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Runs a scenario and returns its text with the actual transcript under each step.
pub fn replay(text: &str) -> Result<String, ScenarioError> {
    let head = Head::read(text)?;
    head.choice.kind.visit(Replay { text, head: &head })
}

struct Replay<'a> {
    text: &'a str,
    head: &'a Head,
}

impl Visitor for Replay<'_> {
    type Output = Result<String, ScenarioError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let transcript = Transcript {
            head: self.head,
            text: String::new(),
        };
        let mut stage = Stage::<A, _>::new(self.head, transcript)?;
        script::play(self.text, |step| {
            stage.step(step)?;
            Ok(std::mem::take(&mut stage.witness.text))
        })
    }
}

/// Writes what happens as text.
struct Transcript<'a> {
    head: &'a Head,
    text: String,
}

impl<A: Algorithm> Witness<A> for Transcript<'_> {
    fn happened(&mut self, event: StageEvent<'_, A>, _: &World<A>) -> Result<(), String> {
        let me = self.head.name(event.node);
        for effect in event.effects {
            let _ = match effect {
                Effect::Enter => writeln!(self.text, "{me} enters"),
                Effect::Send { to, message } => {
                    writeln!(self.text, "{me} -> {} {message}", self.head.name(*to))
                }
            };
        }
        if let Some(fault) = event.fault {
            let name = |node| self.head.name(node).to_owned();
            let _ = writeln!(self.text, "FAULT {}", fault.text(&name));
        }
        Ok(())
    }

    fn shown(&mut self, node: NodeId, world: &World<A>) -> Result<(), String> {
        let state = shown(self.head, node, world.node(node));
        let _ = writeln!(self.text, "{}: {state}", self.head.name(node));
        Ok(())
    }
}

/// A node's state as text, with the scenario's names of nodes.
pub(crate) fn shown<A: Algorithm>(head: &Head, me: NodeId, state: &A) -> String {
    let name = |node| head.name(node).to_owned();
    let name = &name;
    Shown { state, me, name }.to_string()
}
