//! The space-time diagram of a run: a line per node, boxes for waiting and inside, arrows for
//! messages. The same run gives the same picture, byte for byte.

use std::fmt::Write as _;

use soloist_algorithms::{Phase, Value};

use super::record::DOWN;
use super::types::{Message, Run, Step};
use crate::report;
use crate::svg_text::{FONT, escape, number, wrap};

const MARGIN: f64 = 24.0;
/// Room for the title; the picture of a short run is at least this wide.
const WIDTH_MIN: f64 = 640.0;
/// Wider pictures have no labels, and denser columns.
const WIDTH_MAX: f64 = 1600.0;
const COLUMN_MIN: f64 = 4.0;
const COLUMN_MAX: f64 = 28.0;
/// Height of a row with and without labels.
const ROW: [f64; 2] = [24.0, 40.0];
const TITLE_FONT: f64 = 16.0;
const TEXT_FONT: f64 = 12.0;
const LINE: f64 = 20.0;
/// Width of a character of the fixed-width font.
const CHARACTER: f64 = 7.3;
/// Longer names of nodes are cut.
const NAME_MAX: usize = 16;

const STYLE: &str = "svg{--paper:#FBFAF7;--ink:#1B1F24;--muted:#5F6770;--hair:#DDDDDB;--wait:#A85400;\
--in:#0B7A4B;--token:#6B3FD4;--msg:#1C69AA;--fault:#C0261C}\
@media(prefers-color-scheme:dark){svg{--paper:#12151A;--ink:#E6E8EB;--muted:#98A2AD;--hair:#30343A;\
--wait:#F0B44A;--in:#4CC38A;--token:#B594FF;--msg:#6CB6FF;--fault:#FF7B72}}\
.paper{fill:var(--paper)}.title{font-size:16px;font-weight:600}\
.muted,.tick{fill:var(--muted)}.tick,.label{text-anchor:middle}\
.mono,.label{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\
.label{stroke:var(--paper);stroke-width:4px;paint-order:stroke;stroke-linejoin:round}\
.line{stroke:var(--hair)}.waiting{fill:none;stroke:var(--wait)}\
.inside{fill:var(--in);stroke:var(--in)}.down{fill:none;stroke:var(--fault);stroke-dasharray:3 3}\
.message,.token,.lost{fill:none;stroke:var(--msg);stroke-width:1.5}\
.token{stroke:var(--token);stroke-width:2}.lost{stroke:var(--fault)}.open{stroke-dasharray:2 3}\
.of-message{fill:var(--msg)}.of-token{fill:var(--token);font-weight:600}\
.of-lost,.wrong{fill:var(--fault)}\
.event{fill:var(--ink);stroke:var(--paper)}.fault{fill:none;stroke:var(--fault);stroke-width:2.5}";

/// Draws the space-time diagram of a whole run as SVG.
///
/// ```
/// use soloist_lab::play::{run, svg};
///
/// let text = "algorithm central\nnames A B\n> request B\n> run\n";
/// let picture = svg(&run(text, 0).unwrap());
/// assert!(picture.contains(">REQUEST</text>"));
/// ```
pub fn svg(run: &Run) -> String {
    Picture::new(run).draw()
}

struct Picture<'a> {
    run: &'a Run,
    /// The row of each node.
    rows: Vec<usize>,
    title: Vec<String>,
    /// The names of nodes are at the left of this.
    gutter: f64,
    column: f64,
    row: f64,
    width: f64,
    /// Whether events have labels.
    has_labels: bool,
    out: String,
}

impl<'a> Picture<'a> {
    fn new(run: &'a Run) -> Self {
        let mut rows = vec![0; run.names.len()];
        for (row, (node, _)) in run.rows.iter().enumerate() {
            rows[*node] = row;
        }
        let name = |(node, depth): &(usize, usize)| {
            8.0 * *depth as f64 + mono_width(&shorten(&run.names[*node]))
        };
        let gutter = MARGIN + 16.0 + run.rows.iter().map(name).fold(0.0, f64::max);
        let columns = (run.steps.len() + 1) as f64;
        let labels = run.steps.iter().map(|step| mono_width(label(run, step)));
        let widest = labels.fold(0.0, f64::max) + 10.0;
        let has_labels = widest * columns <= WIDTH_MAX;
        let column = match has_labels {
            true => widest
                .max((WIDTH_MIN - gutter - MARGIN) / columns)
                .min(2.0 * widest),
            false => (WIDTH_MAX / columns).clamp(COLUMN_MIN, COLUMN_MAX),
        };
        let width = (gutter + columns * column + MARGIN).max(WIDTH_MIN).ceil();
        Picture {
            run,
            rows,
            title: wrap(&run.title, TITLE_FONT, width - 2.0 * MARGIN),
            gutter,
            column,
            row: ROW[usize::from(has_labels)],
            width,
            has_labels,
            out: String::new(),
        }
    }

    fn x(&self, position: usize) -> f64 {
        self.gutter + position as f64 * self.column
    }

    /// The top of the diagram, below the title and the numbers of the steps.
    fn top(&self) -> f64 {
        MARGIN + LINE * (self.title.len() + 1) as f64 + 36.0
    }

    fn bottom(&self) -> f64 {
        self.top() + self.row * self.rows.len() as f64
    }

    fn y(&self, node: usize) -> f64 {
        self.top() + self.row * (self.rows[node] as f64 + 0.5)
    }

    fn draw(mut self) -> String {
        self.head();
        self.lines();
        self.boxes();
        self.messages();
        self.events();
        let faults_at = self.legend(self.bottom() + 32.0);
        let height = number(self.faults(faults_at) + MARGIN - LINE);
        let width = number(self.width);
        let title = escape(&self.run.title);
        let body = self.out;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n\
             <style>text{{font:{TEXT_FONT}px {FONT};fill:var(--ink)}}{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n"
        )
    }

    fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let (x, y, text) = (number(x), number(y), escape(text));
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        );
    }

    /// A path, and what a browser shows when the pointer is over it.
    fn path(&mut self, class: &str, path: &str, title: &str) {
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", escape(title)),
        };
        let _ = writeln!(
            self.out,
            "<path class=\"{class}\" d=\"{path}\">{title}</path>"
        );
    }

    /// The title, what was run, and the numbers of the steps.
    fn head(&mut self) {
        let run = self.run;
        let mut y = MARGIN + 12.0;
        for line in std::mem::take(&mut self.title) {
            self.text((MARGIN, y), "title", &line);
            self.title.push(line);
            y += LINE;
        }
        let entries = run.steps.iter().filter(|step| step.enter).count();
        let messages = run.steps.iter().flat_map(|step| &step.sends).count();
        let about = format!(
            "{}, {}, {}, {}, {}",
            report::label(run.algorithm, &run.variant),
            many(run.names.len(), "node", "nodes"),
            many(run.steps.len(), "step", "steps"),
            many(messages + run.flight.len(), "message", "messages"),
            many(entries, "entry", "entries"),
        );
        self.text((MARGIN, y), "muted", &about);
        let steps = run.steps.len();
        let every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
        let fits = |every: &&usize| **every as f64 * self.column >= 28.0;
        let every = *every.iter().find(fits).unwrap_or(&1000);
        for position in (every..=steps).step_by(every) {
            let at = (self.x(position), self.top() - 12.0);
            self.text(at, "tick", &position.to_string());
        }
    }

    fn lines(&mut self) {
        for (node, depth) in &self.run.rows {
            let (y, left) = (self.y(*node), self.gutter);
            let name = shorten(&self.run.names[*node]);
            let x = MARGIN + 8.0 * *depth as f64;
            self.text((x, y + 4.0), "mono", &name);
            let path = format!("M{} {}H{}", number(left), number(y), self.width - MARGIN);
            self.path("line", &path, "");
        }
    }

    /// Boxes for the times during which nodes wait or are inside.
    fn boxes(&mut self) {
        let run = self.run;
        let idle = Value::from(Phase::Idle);
        let first = |node: &super::State| node.0.first().map(|(_, value)| value.clone());
        let mut since: Vec<(Value, usize)> = run
            .start
            .iter()
            .map(|state| (first(state).unwrap_or(idle.clone()), 0))
            .collect();
        for (number, step) in run.steps.iter().enumerate() {
            for change in step.changes.iter().filter(|change| change.field == "phase") {
                let now = (change.after.clone(), number + 1);
                let before = std::mem::replace(&mut since[change.node], now);
                self.phase_box(change.node, &before, self.x(number + 1));
            }
        }
        for (node, phase) in since.iter().enumerate() {
            self.phase_box(node, phase, self.width - MARGIN);
        }
    }

    fn phase_box(&mut self, node: usize, (phase, from): &(Value, usize), end: f64) {
        let (class, size) = match phase {
            Value::Text("waiting") => ("waiting", 4.0),
            Value::Text("inside") => ("inside", 6.0),
            Value::Text(DOWN) => ("down", 4.0),
            _ => return,
        };
        let x = self.x(*from);
        let [left, y, width] = [x, self.y(node) - size, end - x].map(number);
        let height = 2.0 * size;
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    fn messages(&mut self) {
        let run = self.run;
        let mut sent: Vec<(&Message, usize)> = run.flight.iter().map(|m| (m, 0)).collect();
        for (number, step) in run.steps.iter().enumerate() {
            sent.extend(step.sends.iter().map(|message| (message, number + 1)));
        }
        let mut arrival = vec![None; sent.len()];
        for (number, step) in run.steps.iter().enumerate() {
            if let Some(id) = step.got {
                arrival[id] = Some((number + 1, step.action == "lose"));
            }
        }
        for ((message, from), arrival) in sent.into_iter().zip(arrival) {
            self.arrow(message, from, arrival);
        }
    }

    /// An arrow from where the message was sent to where it arrived, or was lost. The arrow of a
    /// message that is still in flight is short and dashed.
    fn arrow(&mut self, message: &Message, from: usize, arrival: Option<(usize, bool)>) {
        let (x1, y1) = (self.x(from), self.y(message.from));
        let goal = self.y(message.to);
        let (x, y) = match arrival {
            Some((position, _)) => (self.x(position), goal),
            None => (
                x1 + 1.2 * self.column.min(COLUMN_MAX),
                y1 + (goal - y1).signum() * 0.7 * self.row,
            ),
        };
        let angle = libm::atan2(y - y1, x - x1);
        // The tip is at the edge of the event's dot.
        let (x2, y2) = (x - 4.0 * libm::cos(angle), y - 4.0 * libm::sin(angle));
        let [from_x, from_y, to_x, to_y] = [x1, y1, x2, y2].map(number);
        let mut path = format!("M{from_x} {from_y}L{to_x} {to_y}");
        let class = match arrival {
            Some((_, true)) => "lost",
            _ if message.token => "token",
            _ => "message",
        };
        match arrival {
            Some((_, true)) => path += "m-4 -4l8 8m0 -8l-8 8",
            Some((_, false)) => {
                for side in [-0.45, 0.45] {
                    let x = number(x2 - 7.0 * libm::cos(angle + side));
                    let y = number(y2 - 7.0 * libm::sin(angle + side));
                    let _ = write!(path, "M{x} {y}L{to_x} {to_y}");
                }
            }
            None => {}
        }
        let names = &self.run.names;
        let ends = format!("{} to {}", names[message.from], names[message.to]);
        let title = format!("{ends}: {} {}", message.label, message.content);
        let open = if arrival.is_none() { " open" } else { "" };
        self.path(&format!("{class}{open}"), &path, title.trim_end());
        if let Some((position, _)) = arrival.filter(|_| self.has_labels) {
            // On the side from which the arrow does not come.
            let is_above = self.rows[message.from] > self.rows[message.to];
            let at = (self.x(position), goal + if is_above { -10.0 } else { 19.0 });
            self.text(at, &format!("label of-{class}"), message.label);
        }
    }

    fn events(&mut self) {
        let run = self.run;
        let radius = if self.column >= 8.0 { 3 } else { 2 };
        for (index, step) in run.steps.iter().enumerate() {
            let (x, y) = (self.x(index + 1), self.y(step.node));
            if self.has_labels && step.got.is_none() {
                self.text((x, y - 10.0), "label muted", label(run, step));
            }
            let title = escape(&describe(run, index));
            let (left, top) = (number(x), number(y));
            let _ = writeln!(
                self.out,
                "<circle class=\"event\" cx=\"{left}\" cy=\"{top}\" r=\"{radius}\">\
                 <title>{title}</title></circle>"
            );
            if let Some(fault) = &step.fault {
                let path = format!(
                    "M{} {}l12 12m0 -12l-12 12",
                    number(x - 6.0),
                    number(y - 6.0)
                );
                self.path("fault", &path, &fault.text);
            }
        }
    }

    /// What the signs mean that occur in the run. Returns where the next text goes.
    fn legend(&mut self, y: f64) -> f64 {
        let run = self.run;
        let all = || {
            run.flight
                .iter()
                .chain(run.steps.iter().flat_map(|step| &step.sends))
        };
        let becomes = |phase: &'static str| {
            let changes = run.steps.iter().flat_map(|step| &step.changes);
            let mut values = changes.map(|change| &change.after);
            values.any(|value| *value == Value::Text(phase))
        };
        let token = all().find(|message| message.token);
        let signs = [
            (
                "waiting",
                "m0 -8h20v8h-20z",
                becomes("waiting").then_some("waiting"),
            ),
            (
                "inside",
                "m0 -10h20v12h-20z",
                becomes("inside").then_some("inside"),
            ),
            ("down", "m0 -8h20v8h-20z", becomes(DOWN).then_some("down")),
            (
                "message",
                "m0 -4h20m-6 -4l6 4l-6 4",
                all().any(|message| !message.token).then_some("message"),
            ),
            (
                "token",
                "m0 -4h20m-6 -4l6 4l-6 4",
                token.map(|message| message.label),
            ),
            (
                "fault",
                "m4 -10l12 12m0 -12l-12 12",
                run.last_fault().map(|_| "fault"),
            ),
        ];
        let mut x = MARGIN;
        for (class, path, meaning) in signs {
            let Some(meaning) = meaning else { continue };
            self.path(class, &format!("M{} {}{path}", number(x), number(y)), "");
            self.text((x + 28.0, y), "muted", meaning);
            x += 28.0 + mono_width(meaning) + 24.0;
        }
        y + LINE + 4.0
    }

    /// The faults in words. Returns where the next text would go.
    fn faults(&mut self, mut y: f64) -> f64 {
        let run = self.run;
        for (index, step) in run.steps.iter().enumerate() {
            let Some(fault) = &step.fault else { continue };
            let text = format!("Step {}: {}.", index + 1, fault.text);
            for line in wrap(&text, TEXT_FONT, self.width - 2.0 * MARGIN) {
                self.text((MARGIN, y), "wrong", &line);
                y += LINE;
            }
        }
        y
    }
}

/// What a label says about a step: the message that arrived, or what the node did.
fn label(run: &Run, step: &Step) -> &'static str {
    let sent = || match step.cause {
        Some(cause) => run.steps[cause].sends.iter(),
        None => run.flight.iter(),
    };
    let message = step
        .got
        .and_then(|id| sent().find(|message| message.id == id));
    match (message, step.action) {
        (Some(message), _) => message.label,
        (None, "request") => "requests",
        (None, "release") => "leaves",
        (None, "crash") => "crashes",
        (None, "restart") => "restarts",
        (None, action) => action,
    }
}

fn describe(run: &Run, index: usize) -> String {
    let step = &run.steps[index];
    let entered = if step.enter { ", enters" } else { "" };
    let name = &run.names[step.node];
    format!("{}: {name}: {}{entered}", index + 1, label(run, step))
}

fn mono_width(text: &str) -> f64 {
    CHARACTER * text.chars().count() as f64
}

fn shorten(name: &str) -> String {
    match name.chars().count() > NAME_MAX {
        true => name.chars().take(NAME_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
