//! `soloist lab check`.

use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::{Result, bail};
use soloist_algorithms::{Channels, NodeId, Start};
use soloist_lab::assumed_channels;
use soloist_lab::search::{Aim, Case, Crashes, ENDLESS, Limits, Setting, Verdict as Found};

use super::searched::{self, Timed};
use super::{most, play, settings};
use crate::{Verdict, output, show};

fn explanation() -> String {
    let worse = Case::WORSE_MAX / 1_000_000;
    format!(
        "\
In every state and on every step the search checks: at most one node is inside; a token algorithm \
has one token; the paper's own invariants hold; entries follow the order of their requests, where \
the algorithm orders them; fences increase, that is, a chain of messages leads from each entry to \
the next; no message of a correct node is refused; and where nothing more can happen, every request \
was served. Then it checks over all endless runs that are fair (every message in flight arrives \
eventually, and every node that is inside leaves eventually) that no node waits forever.

A violation is printed as a scenario, which `soloist lab replay` plays back. It is a shortest one; \
of endless runs, it is a short one. Smaller numbers of requests are searched first. After a \
violation other than two nodes inside, up to {worse} million states are searched for that.

Exit codes: 0 everything holds; 1 a violation; 2 invalid input; 3 not exhausted: there are more \
states than allowed, or than fit in memory, and nothing is claimed.

Examples:
  soloist lab check -a raymond -n 5 --shape line --requests 2
  soloist lab check -a raymond -n 3 --requests endless
  soloist lab check -a maekawa -n 7 --requesters 0,1,2,3 --inside each
  soloist lab check -a maekawa --variant as-published -n 4 --shape grid --play
  soloist lab check -a raymond -n 3 --crashes 1
  soloist lab check -a maekawa -n 7 --requests 1,1,1,0,0,0,0 --most messages
  soloist lab check -a ricart-agrawala -n 3 --requests 2 --forget"
    )
}

/// Search every interleaving of a small cluster
///
/// When a node requests, which message arrives next and when a node leaves are all free choices.
/// The search visits every reachable state.
#[derive(clap::Args)]
#[command(after_long_help = explanation())]
pub(crate) struct Args {
    /// Name, alias or preset of the algorithm; `soloist lab list` lists them
    #[arg(long, short, value_name = "A")]
    algorithm: String,

    #[arg(
        long,
        short,
        value_name = "N",
        value_parser = settings::nodes,
        allow_hyphen_values = true,
        help = format!("Number of nodes, at most {}", Limits::NODES_MAX)
    )]
    nodes: usize,

    #[arg(
        long,
        short,
        value_name = "R",
        value_parser = requests,
        default_value = "1",
        allow_hyphen_values = true,
        help = format!(
            "Requests per node: a number up to {}, endless (for algorithms without counters), or a \
             list with one of these, or 0, for each node, such as 2,1,0",
            Limits::REQUESTS_MAX
        )
    )]
    requests: Requests,

    /// Nodes that request, such as 0,2,5; the others only serve [default: all]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = settings::node, allow_hyphen_values = true)]
    requesters: Option<Vec<u32>>,

    /// Arrangement of the nodes: one of the algorithm's shapes, or file:PATH [default: the paper's
    /// own, nearest to N]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    shape: Option<String>,

    #[command(flatten)]
    variant: settings::Variant,

    /// Whether messages between two nodes keep their order: fifo or any [default: what the
    /// algorithm assumes]
    #[arg(long, value_name = "C", value_parser = Channels::from_str, allow_hyphen_values = true)]
    channels: Option<Channels>,

    /// Node where the token starts [default: the one inside, or 0]
    #[arg(long, value_name = "NODE", value_parser = settings::node, allow_hyphen_values = true)]
    home: Option<u32>,

    /// Node that is inside at the start, or each: every node in turn, then none
    #[arg(long, value_name = "NODE", value_parser = inside, allow_hyphen_values = true)]
    inside: Option<Inside>,

    /// Maximum number of crashes, or endless (raymond only) [default: 0, or 1 with --crash]
    ///
    /// A node that crashes loses its state but not its messages, and then recovers. Messages keep
    /// their order if recovery needs it, unless --channels says otherwise. With endless crashes, a
    /// node crashes again only when it has recovered, and only nodes that cannot crash are required
    /// not to wait forever: name the nodes that may with --crash.
    #[arg(long, value_name = "C", value_parser = crashes, allow_hyphen_values = true)]
    crashes: Option<u8>,

    /// Nodes that may crash, such as 0,2 [default: all, if there are crashes]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = settings::node, allow_hyphen_values = true)]
    crash: Option<Vec<u32>>,

    /// Let messages be lost that arrive between a crash and the restart
    #[arg(long)]
    lose_messages: bool,

    /// Let a crashed node restart only when no message to it is in flight either
    #[arg(long)]
    long_wait: bool,

    /// Let neighbours be down together, which is outside what recovery promises
    #[arg(long)]
    neighbours: bool,

    /// Let idle nodes be forgotten and recreated at any time, as in a real cluster
    ///
    /// Depending on the algorithm, a quiescent node is forgotten by itself, or all nodes are
    /// forgotten together when no message is in flight. The clock of one recreated node may jump
    /// ahead.
    #[arg(long)]
    forget: bool,

    /// Tell each node that leaves whether it will request again, and let it do so if others wait
    /// for that (variant late-reply of lodha-kshemkalyani)
    #[arg(long)]
    known_requests: bool,

    /// Keep no history, which means fewer states; fences and the order of entries are not checked
    #[arg(long)]
    no_history: bool,

    /// Check only safety and deadlock, not endless runs; needs a tenth of the memory
    ///
    /// Deadlocks of nodes in recovery are not checked. If messages may overtake each other,
    /// partial-order reduction also makes the search visit fewer states: messages that their
    /// receiver only records arrive as late as possible.
    #[arg(long)]
    safety_only: bool,

    /// Ignore steps that put more messages than this in flight; nothing is claimed beyond them
    #[arg(long, value_name = "M", value_parser = count, allow_hyphen_values = true)]
    max_messages: Option<usize>,

    /// Give up after this many states
    #[arg(long, value_name = "M", value_parser = count, default_value_t = Case::STATES_MAX, allow_hyphen_values = true)]
    max_states: usize,

    /// Find the worst case over all interleavings instead of violations: the most messages per
    /// entry, or the most often that a waiter is overtaken
    ///
    /// Messages per entry are those of complete runs: every request made was served, and no message
    /// is left in flight. With endless requests, they are counted in the long run. A waiter is
    /// overtaken by each entry whose request was made after the messages of the waiter's own
    /// request had arrived.
    #[arg(long, value_name = "WHAT", value_parser = aim, allow_hyphen_values = true, conflicts_with_all = ["safety_only", "forget"])]
    most: Option<Aim>,

    /// Play the counterexample in the browser, if there is one
    #[arg(long, conflicts_with_all = ["json", "most"])]
    play: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How often the nodes may request.
#[derive(Clone)]
pub(super) enum Requests {
    Each(u8),
    ByNode(Vec<u8>),
}

impl Requests {
    /// The number of requests of each node.
    pub(super) fn per_node(&self, nodes: usize) -> Vec<u8> {
        match self {
            Requests::Each(requests) => vec![*requests; nodes],
            Requests::ByNode(requests) => requests.clone(),
        }
    }
}

/// Which nodes start inside.
#[derive(Clone, Copy)]
enum Inside {
    One(u32),
    Each,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        self.agree()?;
        let choice = self.variant.of(&self.algorithm)?;
        // Invalid input is refused before anything is said.
        let starts = self.starts();
        self.case(starts[0])?;
        let assumed = choice.kind.info().channels;
        if self.channels.is_none() && assumed_channels(choice, self.crashes() > 0) != assumed {
            output::complain(&format!(
                "note: searching with --channels fifo, because the recovery of {} needs messages \
                 in order; --channels {assumed} overrides this",
                choice.name
            ));
        }
        if let Some(aim) = self.most {
            return match starts[..] {
                [start] => most::run(&self.case(start)?, aim, self.json),
                _ => bail!("--most takes one start: give --inside a node"),
            };
        }
        let mut reports = Vec::new();
        for start in starts {
            let timed = searched::search(&self.case(start)?)?;
            let goes_on = timed.report.verdict == Found::Holds;
            reports.push(timed);
            if !goes_on {
                break;
            }
        }
        match (&reports[..], self.json) {
            ([one], true) => output::json(one)?,
            (all, true) => output::json(&all)?,
            (all, false) => {
                for timed in all {
                    output::text(&describe(timed))?;
                }
            }
        }
        let last = reports.last().expect("there is at least one start");
        if self.play && last.report.transcript.is_some() {
            play::show(describe(last))?;
        }
        Ok(searched::outcome(last.report.verdict))
    }

    /// Refuses options that make no sense together.
    fn agree(&self) -> Result<()> {
        let most = Limits::CRASHES_MAX;
        if self.neighbours && self.crashes() == 0 {
            bail!("--neighbours lets neighbours crash together: use it with --crashes 2 to {most}");
        }
        if self.lose_messages && self.crashes() == 0 {
            bail!(
                "--lose-messages is about crashed nodes: give --crashes from 1 to {most} with it"
            );
        }
        if self.long_wait && self.crashes() == 0 {
            bail!("--long-wait is about crashed nodes: give --crashes from 1 to {most} with it");
        }
        if self.crash.is_some() && self.crashes() == 0 {
            bail!("--crash names nodes that may crash: --crashes 0 allows none");
        }
        if let (Requests::ByNode(_), Some(_)) = (&self.requests, &self.requesters) {
            bail!("a list of --requests says who requests: leave out --requesters, or use 0");
        }
        Ok(())
    }

    fn crashes(&self) -> u8 {
        self.crashes.unwrap_or(u8::from(self.crash.is_some()))
    }

    fn starts(&self) -> Vec<Start> {
        let home = |inside: Option<u32>| NodeId::new(self.home.or(inside).unwrap_or(0));
        let start = |inside: Option<u32>| Start {
            home: home(inside),
            inside: inside.map(NodeId::new),
        };
        match self.inside {
            None => vec![start(None)],
            Some(Inside::One(node)) => vec![start(Some(node))],
            Some(Inside::Each) => {
                let each = NodeId::all(self.nodes).map(|node| start(Some(node.index() as u32)));
                each.chain([start(None)]).collect()
            }
        }
    }

    fn case(&self, start: Start) -> Result<Case> {
        let choice = self.variant.of(&self.algorithm)?;
        let assumed = assumed_channels(choice, self.crashes() > 0);
        let nodes_of =
            |nodes: &[u32]| -> Vec<_> { nodes.iter().copied().map(NodeId::new).collect() };
        let mut case = Case {
            shape: settings::read_shape(self.shape.as_deref())?,
            start,
            requests: self.requests.per_node(self.nodes),
            limits: Limits {
                channels: self.channels.unwrap_or(assumed),
                crashes: Crashes {
                    most: self.crashes(),
                    neighbours_too: self.neighbours,
                    nodes: None,
                    loses_messages: self.lose_messages,
                    long_wait: self.long_wait,
                    ..Crashes::default()
                },
                forgets: self.forget,
                known_requests: self.known_requests,
                keep_history: !self.no_history,
                endless_runs: !self.safety_only,
                messages_max: self.max_messages.unwrap_or(usize::MAX),
                states_max: self.max_states,
            },
            ..Case::new(choice, self.nodes, 1)
        };
        if let Some(nodes) = &self.requesters {
            case.request_only(&nodes_of(nodes))?;
        }
        if let Some(nodes) = &self.crash {
            case.crash_only(&nodes_of(nodes))?;
        }
        Ok(case)
    }
}

/// What is searched, in one line.
pub(super) fn describe_setting(setting: &Setting) -> String {
    let mut text = String::new();
    let requests = match setting.requests {
        _ if setting.requests_by_node.is_some() => format!("{} requests", setting.quota()),
        Some(1) => "one request per node".to_owned(),
        Some(requests) => format!("{requests} requests per node"),
        None => "endless requests".to_owned(),
    };
    let _ = write!(
        text,
        "{}, {}, {}, {}, {requests}",
        setting.label(),
        show::count(setting.nodes, "node"),
        setting.shape,
        setting.channels
    );
    if setting.requesters.len() < setting.nodes && setting.requests_by_node.is_none() {
        let nodes: Vec<_> = setting.requesters.iter().map(usize::to_string).collect();
        let _ = write!(text, " by {}", nodes.join(", "));
    }
    if let Some(inside) = setting.inside {
        let _ = write!(text, ", {inside} inside at first");
    }
    if setting.crashes != Some(0) {
        let _ = write!(text, ", {}", setting.crashes_text());
    }
    if setting.known_requests {
        text.push_str(", known requests");
    }
    if setting.forgets {
        text.push_str(", forgetting");
    }
    text
}

fn describe(timed: &Timed) -> String {
    let Timed { report, .. } = timed;
    let mut text = describe_setting(&report.setting);
    text.push_str(": ");
    let states = report.states.unwrap_or_default();
    let transitions = report.transitions.unwrap_or_default();
    let _ = match (report.verdict, &report.what) {
        (Found::Holds, _) => {
            let millions = |rate: Option<f64>| rate.unwrap_or_default() / 1e6;
            let steps = match report.endless_runs {
                true => format!(
                    ", all steps {:.2} s ({:.2} million states/s)",
                    timed.graph_seconds,
                    millions(timed.graph_states_per_second),
                ),
                false => "; endless runs were not checked".to_owned(),
            };
            writeln!(
                text,
                "holds\n{states} states and {transitions} transitions, all of them searched, in {:.2} s; safety {:.2} s ({:.2} million states/s){steps}",
                timed.total_seconds,
                timed.seconds,
                millions(timed.states_per_second),
            )
        }
        (Found::NotExhausted, why) => writeln!(
            text,
            "not exhausted: {}\n{states} states were searched without a violation; there are \
             more. Nothing is claimed: allow more with --max-states, check less with \
             --safety-only or --no-history, or search a smaller case",
            why.as_deref().unwrap_or_default()
        ),
        (found, what) => {
            let word = searched::word(found);
            let what = what.as_deref().unwrap_or_default();
            let transcript = report.transcript.as_deref().unwrap_or_default();
            // A comment, so that the whole output is a scenario that `lab replay` takes.
            text.insert_str(0, "# ");
            writeln!(text, "{word}: {what}\n{transcript}")
        }
    };
    text
}

pub(super) fn requests(given: &str) -> Result<Requests, String> {
    let most = Limits::REQUESTS_MAX;
    let quota = |given: &str, least: u8| match given.parse() {
        Ok(requests) if (least..=most).contains(&requests) => Some(requests),
        _ => (given == "endless").then_some(ENDLESS),
    };
    let requests = match given.contains(',') {
        false => quota(given, 1).map(Requests::Each),
        true => {
            let each: Option<Vec<_>> = given.split(',').map(|given| quota(given, 0)).collect();
            each.map(Requests::ByNode)
        }
    };
    requests.ok_or_else(|| {
        format!("use a number from 1 to {most}, or endless, or a list of these with one per node")
    })
}

pub(super) fn aim(given: &str) -> Result<Aim, String> {
    let aims = [Aim::Messages, Aim::Overtaking];
    let found = aims.into_iter().find(|aim| aim.name() == given);
    found.ok_or_else(|| "use messages or overtaking".to_owned())
}

fn crashes(given: &str) -> Result<u8, String> {
    match given.parse() {
        Ok(crashes) if crashes <= Limits::CRASHES_MAX => Ok(crashes),
        _ if given == "endless" => Ok(ENDLESS),
        _ => Err(format!(
            "use a number from 0 to {}, or endless",
            Limits::CRASHES_MAX
        )),
    }
}

fn count(given: &str) -> Result<usize, String> {
    given
        .parse()
        .map_err(|_| "use a whole number from 0 up".to_owned())
}

fn inside(given: &str) -> Result<Inside, String> {
    if given == "each" {
        return Ok(Inside::Each);
    }
    settings::node(given)
        .map(Inside::One)
        .map_err(|_| "use a node's number, or each".to_owned())
}
