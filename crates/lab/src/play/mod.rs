//! Scenarios as data for a player: steps that can be taken forwards and backwards, with captions,
//! causes and faults.
//!
//! Everything here is a pure function of a scenario's text. A caller that wants to go on by hand
//! appends a step to the text, and drops it to go back.
//!
//! Comments before a step are its caption. A comment that begins with `?` is a question that the
//! step answers.

mod captions;
mod gallery;
mod layout;
mod record;
mod ring;
mod search;
mod simulated;
mod story;
mod svg;
mod thumbnail;
mod types;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, NodeId};

pub use gallery::{Exhibit, exhibit, gallery};
pub use search::{Progress, Search, SearchLimits, search};
pub use simulated::{Compared, Comparison, RecordError, compare, scenario_of};
pub use svg::svg;
pub use thumbnail::Thumbnail;
pub use types::{Change, Choice, Layout, Message, PlayFault, Question, Run, State, Step};

use crate::report;
use crate::scenario::{self, Head, ScenarioError, Stage};
use crate::script::{self, Content};
use captions::first_sentence;
use record::Recorder;

/// Maximum number of steps of a run.
pub const STEPS_MAX: usize = 100_000;

/// Maximum number of nodes of a run.
pub const NODES_MAX: usize = 4096;

/// Maximum number of messages of a run. One event may send as many as there are nodes.
pub const MESSAGES_MAX: usize = 200_000;

/// Maximum number of values in a run: in the states of nodes at its start, in their changes, in the
/// states that it shows, and in messages, where 8 bytes of text count as one. A node's state may
/// have as many as there are nodes.
pub const VALUES_MAX: usize = 4_000_000;

/// Plays a scenario. Steps before `from` are left out of the result.
///
/// ```
/// let text = "algorithm central\nnames A B\n# B asks A.\n> request B\n> run\n";
/// let run = soloist_lab::play::run(text, 0).unwrap();
/// assert_eq!(run.steps.len(), 3);
/// assert_eq!(run.steps[0].sends[0].label, "REQUEST");
/// assert!(run.steps[2].enter);
/// ```
pub fn run(text: &str, from: usize) -> Result<Run, ScenarioError> {
    let head = Head::read(text)?;
    let nodes = head.names.len();
    if nodes > NODES_MAX {
        return Err(ScenarioError::TooManyNodes {
            algorithm: "the player",
            nodes,
            most: NODES_MAX,
        });
    }
    head.choice.kind.visit(Play {
        text,
        from,
        head: &head,
    })
}

/// As [`scenario::replay`], within the limits of the player.
pub fn transcript(text: &str) -> Result<String, ScenarioError> {
    run(text, usize::MAX)?;
    scenario::replay(text)
}

/// Takes the steps of a scenario. Returns the stage after them, and the comments of the head.
fn perform<'a, A: Algorithm>(
    text: &str,
    head: &'a Head,
    recorder: Recorder<'a>,
) -> Result<(Stage<'a, A, Recorder<'a>>, Option<String>), ScenarioError> {
    let mut stage = Stage::<A, _>::new(head, recorder)?;
    let mut intro = None;
    for line in script::contents(text) {
        let (line, content, what) = line?;
        match what {
            Content::Comment => stage.witness.comments.read(content),
            // What the head says is about the run, and what follows it is about a step.
            Content::Head => intro = intro.or(stage.witness.comments.take_caption()),
            Content::Step(step) => {
                stage.witness.line = line;
                let taken = stage.step(step);
                taken.map_err(|reason| ScenarioError::Line { line, reason })?;
            }
            Content::Transcript => {}
        }
    }
    Ok((stage, intro))
}

struct Play<'a> {
    text: &'a str,
    from: usize,
    head: &'a Head,
}

impl Visitor for Play<'_> {
    type Output = Result<Run, ScenarioError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Play { text, from, head } = self;
        let (stage, intro) = perform::<A>(text, head, Recorder::new(head, text))?;
        let config = stage.config(NodeId::new(0));
        let (mut recorder, under_way) = stage.close();
        let may = recorder.choices::<A>(&config, &under_way);
        let ended = recorder.ended();
        let variant = head.choice.variants.names(&A::INFO);
        let label = report::label(head.choice.name, &variant);
        let nodes = head.names.len();
        let untitled = || format!("{label}, {nodes} nodes");
        let title = intro.as_deref().map(first_sentence).map(str::to_owned);
        let count = recorder.steps.len();
        Ok(Run {
            title: title.unwrap_or_else(untitled),
            intro,
            text: text.to_owned(),
            algorithm: head.choice.name,
            variant,
            paper: A::INFO.paper,
            names: head.names.clone(),
            plan: recorder.plan.expect("the stage was opened"),
            rows: recorder.rows,
            fields: recorder.fields,
            start: recorder.start,
            flight: recorder.flight,
            fault: recorder.start_fault,
            from: from.min(count),
            steps: recorder.steps.split_off(from.min(count)),
            count,
            may,
            closing: recorder.comments.take_caption(),
            ended,
        })
    }
}
