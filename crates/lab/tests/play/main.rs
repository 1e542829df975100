//! The player's data agrees with the transcripts of scenarios, step by step and in both directions.

mod gallery;
mod search;

use std::collections::BTreeSet;
use std::path::Path;

use soloist_algorithms::{Choice, NodeId, Role, Value};
use soloist_lab::play::{Comparison, Run, Step, compare, run, svg, transcript};
use soloist_lab::scenario::replay;
use soloist_lab::simulate::Random;

/// The scenarios of algorithms in `tests/scenarios` and `tours`, with their names.
fn scenarios() -> Vec<(String, String)> {
    let files = ["tests/scenarios", "tours"].into_iter().flat_map(|folder| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        std::fs::read_dir(folder).unwrap()
    });
    let files = files.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    });
    let mut all: Vec<_> = files
        .filter(|(name, _)| !name.starts_with("epochs-"))
        .collect();
    all.sort();
    assert!(all.len() > 50, "{} scenarios", all.len());
    all
}

fn scenario(name: &str) -> Run {
    let all = scenarios();
    let (_, text) = all.iter().find(|(known, _)| known == name).unwrap();
    run(text, 0).unwrap()
}

/// The states of all nodes, as the steps change them.
#[derive(Clone, PartialEq, Debug)]
struct Folded(Vec<Vec<(&'static str, Value)>>);

impl Folded {
    fn start(run: &Run) -> Self {
        Folded(run.start.iter().map(|state| state.0.clone()).collect())
    }

    fn value(&mut self, node: usize, field: &str) -> &mut Value {
        let mut values = self.0[node].iter_mut();
        &mut values.find(|(name, _)| *name == field).unwrap().1
    }

    fn forward(&mut self, step: &Step) {
        for change in &step.changes {
            let value = self.value(change.node, change.field);
            assert_eq!(*value, change.before, "{step:?}");
            *value = change.after.clone();
        }
    }

    fn back(&mut self, step: &Step) {
        for change in &step.changes {
            let value = self.value(change.node, change.field);
            assert_eq!(*value, change.after, "{step:?}");
            *value = change.before.clone();
        }
    }

    /// A node's state as `show` prints it.
    fn shown(&self, run: &Run, node: usize) -> String {
        let name = |node: NodeId| run.names[node.index()].clone();
        let parts = run
            .fields
            .iter()
            .zip(&self.0[node])
            .filter(|(field, (_, value))| {
                let is_labs_own = matches!(field.role, Some(Role::Token | Role::Fence))
                    || (field.role == Some(Role::Phase) && run.algorithm == "raymond");
                !is_labs_own && *value != Value::Absent
            });
        let me = NodeId::from_index(node);
        let parts = parts.map(|(field, (_, value))| field.text(value, me, &name));
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// The text up to this line, and then the states of all nodes.
fn shown_after(text: &str, line: usize, names: &[String]) -> Vec<String> {
    let mut script: String = text
        .lines()
        .take(line)
        .flat_map(|line| [line, "\n"])
        .collect();
    for name in names {
        script += &format!("> show {name}\n");
    }
    let played = replay(&script).unwrap();
    let lines: Vec<_> = played.lines().collect();
    let shown = lines[lines.len() - 2 * names.len()..].iter().skip(1);
    let shown = shown.step_by(2).zip(names);
    let state = shown.map(|(line, name)| line.strip_prefix(&format!("{name}: ")).unwrap());
    state.map(str::to_owned).collect()
}

#[test]
fn folded_states_equal_those_that_a_replay_shows() {
    let mut compared = 0;
    for (name, text) in scenarios() {
        let run = run(&text, 0).unwrap();
        // Ends of lines, where a replay can show the states: six of them, chosen by a seed.
        let is_line_end = |step: usize| match run.steps.get(step + 1) {
            Some(next) => next.line != run.steps[step].line,
            None => true,
        };
        let ends: Vec<usize> = (0..run.count).filter(|&step| is_line_end(step)).collect();
        let mut random = Random::new(name.len() as u64, 1);
        let mut chosen: Vec<usize> = (0..6)
            .map(|_| ends[random.below(ends.len() as u64) as usize])
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        let mut folded = Folded::start(&run);
        for (number, step) in run.steps.iter().enumerate() {
            folded.forward(step);
            if chosen.binary_search(&number).is_ok() {
                let shown = shown_after(&text, step.line, &run.names);
                let nodes = 0..run.names.len();
                let ours: Vec<_> = nodes.map(|node| folded.shown(&run, node)).collect();
                assert_eq!(ours, shown, "{name}, after step {}", number + 1);
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared} positions");
}

#[test]
fn steps_can_be_taken_back() {
    for (name, text) in scenarios() {
        let run = run(&text, 0).unwrap();
        let start = Folded::start(&run);
        let mut folded = start.clone();
        run.steps.iter().for_each(|step| folded.forward(step));
        assert!(folded != start || run.steps.is_empty(), "{name}");
        run.steps.iter().rev().for_each(|step| folded.back(step));
        assert_eq!(folded, start, "{name}");
    }
}

#[test]
fn causes_lead_to_the_step_that_sent_the_message() {
    for (name, text) in scenarios() {
        let run = run(&text, 0).unwrap();
        for step in run.steps.iter().filter(|step| step.got.is_some()) {
            let id = step.got.unwrap();
            let sent = match step.cause {
                Some(cause) => &run.steps[cause].sends,
                None => &run.flight,
            };
            let message = sent.iter().find(|message| message.id == id);
            assert_eq!(message.unwrap().to, step.node, "{name}: {step:?}");
        }
    }
}

#[test]
fn every_fault_of_a_transcript_is_a_fault_of_a_step() {
    let mut faults = 0;
    for (name, text) in scenarios() {
        let run = run(&text, 0).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("FAULT ")) {
            let mut known = run.steps.iter().filter_map(|step| step.fault.as_ref());
            assert!(known.any(|fault| fault.text == line), "{name}: {line}");
            faults += 1;
        }
    }
    assert!(faults > 3, "{faults} faults");
}

#[test]
fn a_deadlock_of_maekawa_is_a_circle_of_needs_and_locks() {
    // Node 2 needs node 3, which is locked for node 1. That node 3 needs node 2 plays no part.
    let run = scenario("maekawa-circle-as-published");
    let fault = run.last_fault().unwrap();
    assert_eq!((fault.kind, run.ended), ("deadlock", Some("deadlock")));
    let ring = [
        (1, 0, "needs"),
        (0, 2, "locked for"),
        (2, 3, "needs"),
        (3, 1, "locked for"),
    ];
    assert_eq!(fault.ring, ring);
    assert_eq!(
        fault.text,
        "deadlock: 1 needs 0, which is locked for 2; 2 needs 3, which is locked for 1"
    );
}

#[test]
fn the_quorums_of_a_grid_are_drawn_as_a_grid() {
    let plan = |shape: &str| {
        let text = format!("algorithm maekawa\nnodes 7\nshape {shape}\n> request 1\n");
        run(&text, 0).unwrap().plan
    };
    let grid = plan("grid");
    let row = |y| [(0.0, y), (1.5, y), (3.0, y)];
    let places = [&row(0.0)[..], &row(1.5), &row(3.0)[..1]].concat();
    assert_eq!((grid.kind, grid.nodes), ("quorums", places));
    assert!(plan("singer").nodes[0].0 > 0.0, "a circle");
}

#[test]
fn a_deadlock_without_a_circle_says_who_waits() {
    let fault = scenario("chaudhuri-karaata-forgotten-plane-as-published").last_fault();
    assert_eq!(
        fault.unwrap().text,
        "no message is in flight, no node is inside, and node A waits"
    );
}

#[test]
fn messages_have_the_names_of_nodes() {
    let text = "algorithm naimi-trehel\nnames Ann Bob Cid\nhome Ann\n> request Bob\n";
    let asked = run(text, 0).unwrap();
    assert_eq!(asked.steps[0].sends[0].content, "Bob");
    let mut arrivals = asked.may.iter().filter(|choice| choice.message.is_some());
    let arrival = arrivals.next().unwrap();
    assert_eq!(arrival.label, "Bob → Ann REQUEST Bob arrives");
    assert_eq!(arrival.text, "deliver Bob Ann REQUEST 1");
}

#[test]
fn whatever_may_happen_next_can_be_appended() {
    for (name, text) in scenarios() {
        let before = run(&text, 0).unwrap();
        for choice in &before.may {
            let after = run(&format!("{text}> {}\n", choice.text), before.count);
            let after = after.unwrap_or_else(|error| panic!("{name}: {}: {error}", choice.text));
            assert_eq!(after.steps.len(), 1, "{name}: {}", choice.text);
            assert_eq!(after.steps[0].node, choice.node, "{name}: {}", choice.text);
            assert_eq!(
                after.steps[0].got, choice.message,
                "{name}: {}",
                choice.text
            );
        }
    }
}

#[test]
fn fields_have_different_names() {
    for choice in Choice::all() {
        let run = run(&format!("algorithm {}\nnodes 5\n", choice.name), 0).unwrap();
        let names: BTreeSet<_> = run.fields.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), run.fields.len(), "{}", choice.name);
        assert!(names.len() > 3, "{}: {names:?}", choice.name);
    }
}

#[test]
fn a_picture_is_the_same_each_time_and_escapes_names() {
    let text = "algorithm central\nnames A <b>&\u{202e}\n> request <b>&\u{202e}\n> run\n";
    let picture = svg(&run(text, 0).unwrap());
    assert_eq!(picture, svg(&run(text, 0).unwrap()));
    assert!(picture.contains("&lt;b&gt;&amp;\\u{202e}"), "{picture}");
    assert!(
        !picture.contains("<b>") && !picture.contains('\u{202e}'),
        "{picture}"
    );
    let broken = svg(&scenario("ricart-agrawala-fig1-as-published"));
    assert!(
        broken.contains("two nodes inside: 0 entered while 1 was inside"),
        "{broken}"
    );
}

#[test]
fn a_run_that_cannot_be_played_is_refused_with_line_and_reason() {
    for (text, reason) in [
        (
            "algorithm central\nnodes 2\n> at 3\n> at 2\n",
            "line 4: it is 3 already",
        ),
        (
            "algorithm central\nnodes 2\n> at x\n",
            "line 3: invalid time 'x'",
        ),
        ("algorithm central\nnodes 5000\n", "at most 4096 nodes"),
        (
            "algorithm central\nnodes 2\n> deliver 0 1\n",
            "line 3: no such message",
        ),
    ] {
        let refused = run(text, 0).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

/// A scenario in which all nodes but one request.
fn all_request(nodes: usize) -> String {
    let requests = (1..nodes).map(|node| format!("> request {node}\n"));
    let requests: String = requests.collect();
    format!("algorithm suzuki-kasami\nnodes {nodes}\n{requests}")
}

#[test]
fn a_short_text_cannot_fill_the_memory() {
    // Each request is sent to all other nodes.
    let error = run(&all_request(1000), 0).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 203: the run has 200799 messages by now, and the player keeps at most 200000: use \
         fewer nodes or fewer requests"
    );
    // Each node has a number for every other node.
    let error = run(&all_request(4096), 0).unwrap_err().to_string();
    assert!(
        error.starts_with("line 1: the states and messages"),
        "{error}"
    );
    assert!(error.contains("at most 4000000: use fewer"), "{error}");
    // A transcript shows the state again and again.
    let shows = "> show 1\n".repeat(10_000);
    let text = format!("algorithm suzuki-kasami\nnodes 1000\n> request 1\n{shows}");
    let error = transcript(&text).unwrap_err().to_string();
    assert!(error.contains("at most 4000000: use fewer"), "{error}");
    assert!(run(&all_request(100), 0).is_ok());
}

#[test]
fn a_comparison_that_takes_too_long_is_refused() {
    let mut comparison = Comparison {
        algorithms: ["raymond".to_owned(), "maekawa".to_owned()],
        nodes: 9,
        load: "poisson:0.1".to_owned(),
        entries: 1 << 40,
        seed: 1,
    };
    let error = compare(&comparison).unwrap_err().to_string();
    assert!(
        error.starts_with("1099511627776 entries on 9 nodes are too many to compare"),
        "{error}"
    );
    comparison.entries = 10;
    assert!(compare(&comparison).is_ok());
    comparison.nodes = 4097;
    assert!(compare(&comparison).is_err());
}
