//! `soloist lab compare`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use soloist_algorithms::Choice;
use soloist_lab::report::{Metric, plot};
use soloist_lab::simulate::{Load, Setup};
use soloist_lab::{Compared, ShapeSpec, compare};

use super::plot::PlotFile;
use super::settings;
use crate::table::Table;
use crate::{Verdict, output};

/// Default number of measured entries of a replication.
const ENTRIES_PER_NODE: u64 = 20;
const ENTRIES_MIN: u64 = 1000;

/// Simulate many algorithms, sizes and loads, and compare them in a table
///
/// Runs every algorithm at every size under every load, on all cores. Each run uses the paper's own
/// shape that is nearest to the size, unless --shape gives others. Every run is replicated with
/// consecutive seeds, and every mean has a confidence interval; `soloist lab run --help` explains
/// the method.
///
/// Runs of the same seed have the same demand: nodes pause and stay inside equally long. A second
/// table has the differences from the first algorithm, which are estimated from these pairs.
///
/// The columns are: messages and encoded bytes per entry; idle moves of a token that never rests,
/// per message delay of idle time; the means of response time (from request to entry) and of
/// synchronisation delay (from an exit to the next entry, while others wait), in message delays;
/// Jain's fairness index of the entries per node; and the most times that a waiter was overtaken,
/// of the given number of entries.
#[derive(clap::Args)]
#[command(
    after_long_help = "Examples:\n  soloist lab compare -a raymond,raymond+greedy -n 4,16,64 --plot compare.svg\n  \
                       soloist lab compare -a raymond -n 31 --shape line,kary:2 --plot tree.svg"
)]
pub(crate) struct Args {
    /// Algorithms separated by commas, with variants after a plus (raymond+greedy), or all
    #[arg(
        long,
        short,
        visible_alias = "algorithm",
        value_name = "A,B",
        default_value = "all"
    )]
    algorithms: String,

    /// Numbers of nodes, separated by commas
    #[arg(long, short, value_name = "N,M", value_delimiter = ',', value_parser = settings::nodes,
          default_value = "4,16,64", allow_hyphen_values = true)]
    nodes: Vec<usize>,

    /// Loads, separated by commas: light, heavy, burst, poisson:RATE or think:MEAN
    #[arg(
        long,
        value_name = "L,M", value_parser = settings::setting::<Load>,
        value_delimiter = ',',
        default_value = "light,heavy",
        allow_hyphen_values = true
    )]
    load: Vec<Load>,

    #[arg(
        long,
        value_name = "E",
        value_parser = settings::count,
        allow_hyphen_values = true,
        help = format!(
            "Entries that each replication measures [default: {ENTRIES_PER_NODE} per node, at \
             least {ENTRIES_MIN}; with burst, one per node]"
        )
    )]
    entries: Option<u64>,

    /// Arrangements of the nodes, separated by commas: shapes that all the algorithms have, or
    /// file:PATH [default: the paper's own, nearest to N]
    #[arg(
        long,
        value_name = "S,T",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    shape: Vec<String>,

    #[command(flatten)]
    world: settings::World,

    #[command(flatten)]
    replications: settings::Replications,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values
    #[arg(long)]
    csv: bool,

    /// Also draw a plot as SVG: against the number of nodes with one panel per load, or against the
    /// load if there is one size only
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// What the plot shows: messages, bytes, response (mean), sync-delay (mean), waiting (99th
    /// percentile of the response time) or overtaking (the maximum)
    #[arg(long, value_name = "M", requires = "plot", default_value_t)]
    metric: Metric,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let setups = self.setups()?;
        let file = self.plot.as_deref();
        let file = file.map(|path| PlotFile::new("--plot", path)).transpose()?;
        let Some(plan) = self.replications.plan()? else {
            bail!("--seeds 1: a comparison needs intervals; use 10 or more");
        };
        let bar = output::progress_bar(setups.len() as u64 * plan.seeds, "replications");
        let compared = compare(&setups, &plan, &|| bar.inc(1))?;
        bar.finish_and_clear();
        if self.json {
            output::json(&compared)?;
        } else if self.csv {
            output::text(&csv(&compared)?)?;
        } else {
            output::text(&table(&compared).fit(output::width()))?;
            if let Some(differences) = differences(&compared) {
                output::text(&format!("\n{}", differences.fit(output::width())))?;
            }
        }
        // Print the table first, so that it is not lost if the plot cannot be written.
        if let Some(file) = file {
            let reports: Vec<_> = compared.iter().map(|c| &c.replicated.report).collect();
            file.write(&plot(&reports, self.metric, &replications(&compared)).svg())?;
        }
        Ok(verdict(&compared))
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let choices = choices(&self.algorithms)?;
        let shapes = self.shapes()?;
        let mut setups = Vec::new();
        for &load in &self.load {
            for &nodes in &self.nodes {
                for &choice in &choices {
                    let default = (ENTRIES_PER_NODE * nodes as u64).max(ENTRIES_MIN);
                    let entries = self.world.entries_for(load, nodes, self.entries, default)?;
                    setups.extend(shapes.iter().map(|shape| Setup {
                        shape: shape.clone(),
                        ..self.world.setup(choice, nodes, load, entries)
                    }));
                }
            }
        }
        Ok(setups)
    }

    fn shapes(&self) -> Result<Vec<ShapeSpec>> {
        if self.shape.is_empty() {
            return Ok(vec![ShapeSpec::Default]);
        }
        let given = self.shape.iter();
        given
            .map(|shape| settings::read_shape(Some(shape)))
            .collect()
    }
}

fn choices(given: &str) -> Result<Vec<Choice>> {
    if given == "all" {
        return Ok(Choice::all().collect());
    }
    let mut choices = Vec::new();
    for word in given
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let (name, variants) = word.split_once('+').unwrap_or((word, ""));
        choices.push(Choice::parse(name, &variants.replace('+', ","))?);
    }
    if choices.is_empty() {
        bail!("no algorithm in '{given}': use names separated by commas, or all");
    }
    Ok(choices)
}

/// The replications, for the caption of a plot.
fn replications(compared: &[Compared]) -> String {
    let counts = compared.iter().map(|one| one.replicated.replications);
    let count = match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or(0).to_string(),
    };
    let level = compared.first().map_or(0.0, |one| one.replicated.level);
    format!("{count} replications with {} % intervals", level * 100.0)
}

fn table(compared: &[Compared]) -> Table {
    let mut table = Table::new([
        "load",
        "nodes",
        "algorithm",
        "shape",
        "messages",
        "bytes",
        "idle",
        "response",
        "sync",
        "jain",
        "overtaken",
        "result",
    ])
    .optional(&["idle", "bytes", "shape", "jain", "overtaken"]);
    for Compared { replicated, .. } in compared {
        let report = &replicated.report;
        let figures = &report.measures;
        table.row([
            report.load.clone(),
            report.nodes.to_string(),
            report.label(),
            report.shape.clone(),
            figures.messages_per_entry.to_string(),
            figures.bytes_per_entry.to_string(),
            figures.idle_messages_per_time.to_string(),
            figures.response_time.mean.to_string(),
            figures
                .sync_delay
                .map_or_else(none, |delay| delay.mean.to_string()),
            figures.fairness.jain.to_string(),
            figures.fairness.max_overtaken.to_string(),
            if report.is_well() { "ok" } else { "FAILED" }.to_owned(),
        ]);
    }
    table
}

/// The cell of a figure that does not exist.
fn none() -> String {
    "-".to_owned()
}

/// The differences from the first algorithm of the same load and size, if there are several.
fn differences(compared: &[Compared]) -> Option<Table> {
    let mut table = Table::new([
        "load",
        "nodes",
        "algorithm",
        "shape",
        "minus",
        "messages",
        "response",
        "sync",
    ])
    .optional(&["sync", "response"]);
    let mut is_empty = true;
    for one in compared {
        let report = &one.replicated.report;
        if let Some(difference) = &one.difference {
            is_empty = false;
            table.row([
                report.load.clone(),
                report.nodes.to_string(),
                report.label(),
                report.shape.clone(),
                difference.from.clone(),
                difference.messages_per_entry.to_string(),
                difference.response_time_mean.to_string(),
                difference
                    .sync_delay_mean
                    .map_or_else(none, |delay| delay.to_string()),
            ]);
        }
    }
    (!is_empty).then_some(table)
}

/// Each mean is followed by the half-width of its interval, and each maximum by its sample.
fn csv(compared: &[Compared]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (index, one) in compared.iter().enumerate() {
        let cells = cells(one);
        if index == 0 {
            writer.write_record(cells.iter().map(|(name, _)| name))?;
        }
        writer.write_record(cells.iter().map(|(_, value)| value))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// The columns of a line of comma-separated values, by name.
fn cells(compared: &Compared) -> Vec<(String, String)> {
    let replicated = &compared.replicated;
    let report = &replicated.report;
    let figures = &report.measures;
    let warm_up = replicated.warm_up.map_or(0, |warm_up| warm_up.entries);
    let mut cells: Vec<(String, String)> = [
        ("algorithm", report.algorithm.to_owned()),
        ("variant", report.variant.clone()),
        ("shape", report.shape.clone()),
        ("nodes", report.nodes.to_string()),
        ("load", report.load.clone()),
        ("requesters", report.requesters.clone()),
        ("delay", report.delay.clone()),
        ("channels", report.channels.clone()),
        ("hold", report.hold.clone()),
        ("seed", report.seed.to_string()),
        ("replications", replicated.replications.to_string()),
        ("level", replicated.level.to_string()),
        ("warm_up", warm_up.to_string()),
        ("entries", figures.entries.to_string()),
        ("violations", report.violations.to_string()),
        ("unserved", report.unserved.to_string()),
        ("without_hand_over", figures.without_hand_over.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    let mut means = vec![
        ("messages_per_entry", Some(figures.messages_per_entry)),
        (
            "idle_messages_per_time",
            Some(figures.idle_messages_per_time),
        ),
        ("bytes_per_entry", Some(figures.bytes_per_entry)),
        ("response_time_mean", Some(figures.response_time.mean)),
        ("response_time_p99", Some(figures.response_time.p99)),
        (
            "sync_delay_mean",
            figures.sync_delay.map(|delay| delay.mean),
        ),
        ("sync_delay_p99", figures.sync_delay.map(|delay| delay.p99)),
        ("jain", Some(figures.fairness.jain)),
        ("node_load_mean", Some(figures.node_load.mean)),
    ];
    let difference = compared.difference.as_ref();
    means.extend([
        (
            "messages_difference",
            difference.map(|difference| difference.messages_per_entry),
        ),
        (
            "response_time_difference",
            difference.map(|difference| difference.response_time_mean),
        ),
        (
            "sync_delay_difference",
            difference.and_then(|difference| difference.sync_delay_mean),
        ),
    ]);
    for (name, estimate) in means {
        let (mean, half_width) = estimate.map_or_else(Default::default, |estimate| {
            (estimate.mean.to_string(), estimate.half_width.to_string())
        });
        cells.push((name.to_owned(), mean));
        cells.push((format!("{name}_half_width"), half_width));
    }
    for (name, largest) in [
        ("max_overtaken", figures.fairness.max_overtaken),
        ("node_load_max", figures.node_load.max),
    ] {
        cells.push((name.to_owned(), largest.value.to_string()));
        cells.push((format!("{name}_sample"), largest.sample.to_string()));
    }
    cells
}

fn verdict(compared: &[Compared]) -> Verdict {
    let mut is_well = true;
    for Compared { replicated, .. } in compared {
        let report = &replicated.report;
        let run = format!(
            "{} with {} nodes under {} load",
            report.label(),
            report.nodes,
            report.load
        );
        for warning in replicated.warnings() {
            output::complain(&format!("{run}: {warning}"));
        }
        if !report.is_well() {
            is_well = false;
            output::complain(&format!(
                "failed: {run}: {} violations, {} unserved",
                report.violations, report.unserved
            ));
        }
    }
    Verdict::of(is_well)
}
