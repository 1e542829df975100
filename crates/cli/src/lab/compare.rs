//! `soloist lab compare`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use soloist_algorithms::Choice;
use soloist_lab::compare;
use soloist_lab::report::plot;
use soloist_lab::simulate::{Load, Report, Setup};

use super::settings;
use crate::table::Table;
use crate::{Verdict, output};

/// Default number of entries of a run.
const ENTRIES_PER_NODE: u64 = 20;
const ENTRIES_MIN: u64 = 1000;

/// Simulate many algorithms, sizes and loads, and compare them in a table
///
/// Runs every algorithm at every size under every load, on all cores. Each run uses the paper's own
/// shape that is nearest to the size.
///
/// The columns are: messages and encoded bytes per entry; idle moves of a token that never rests,
/// per message delay of idle time; the means of response time (from request to entry) and of
/// synchronisation delay (from an exit to the next entry, while others wait), in message delays;
/// Jain's fairness index of the entries per node; and the most times that a waiter was overtaken.
#[derive(clap::Args)]
#[command(
    after_long_help = "Example:\n  soloist lab compare -a raymond,raymond+greedy -n 4,16,64 --plot compare.svg"
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
            "Entries per run [default: {ENTRIES_PER_NODE} per node, at least {ENTRIES_MIN}; with \
             burst, one per node]"
        )
    )]
    entries: Option<u64>,

    #[command(flatten)]
    world: settings::World,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values
    #[arg(long)]
    csv: bool,

    /// Also plot messages per entry against nodes as SVG, on logarithmic axes
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let setups = self.setups()?;
        if let Some(path) = &self.plot {
            check_plot(path)?;
        }
        let bar = output::progress_bar(setups.len() as u64, "runs");
        let reports = compare(&setups, &|_| bar.inc(1))?;
        bar.finish_and_clear();
        if self.json {
            output::json(&reports)?;
        } else if self.csv {
            output::text(&csv(&reports)?)?;
        } else {
            output::text(&table(&reports).fit(output::width()))?;
        }
        // Print the table first, so that it is not lost if the plot cannot be written.
        if let Some(path) = &self.plot {
            std::fs::write(path, plot(&reports)?)
                .with_context(|| format!("cannot write the plot to '{}'", path.display()))?;
        }
        Ok(verdict(&reports))
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let choices = choices(&self.algorithms)?;
        let mut setups = Vec::new();
        for &load in &self.load {
            for &nodes in &self.nodes {
                for &choice in &choices {
                    let default = (ENTRIES_PER_NODE * nodes as u64).max(ENTRIES_MIN);
                    let entries = settings::entries_for(load, nodes, self.entries, default)?;
                    setups.push(self.world.setup(choice, nodes, load, entries));
                }
            }
        }
        Ok(setups)
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

/// Fails if the plot obviously cannot be written, before hours of simulation.
fn check_plot(path: &Path) -> Result<()> {
    let extension = path.extension().unwrap_or_default();
    if !extension.eq_ignore_ascii_case("svg") {
        bail!(
            "--plot {}: plots are written as SVG; use a name that ends with .svg",
            path.display()
        );
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!(
            "cannot write the plot to '{}': no folder '{}'",
            path.display(),
            folder.display()
        );
    }
    if path.is_dir() {
        bail!(
            "cannot write the plot to '{}': it is a folder",
            path.display()
        );
    }
    Ok(())
}

fn table(reports: &[Report]) -> Table {
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
    for report in reports {
        let measures = &report.measures;
        table.row([
            report.load.clone(),
            report.nodes.to_string(),
            report.label(),
            report.shape.clone(),
            format!("{:.2}", measures.messages_per_entry),
            format!("{:.1}", measures.bytes_per_entry),
            format!("{:.2}", measures.idle_messages_per_time),
            format!("{:.2}", measures.response_time.mean),
            format!("{:.2}", measures.sync_delay.mean),
            format!("{:.3}", measures.fairness.jain),
            measures.fairness.max_overtaken.to_string(),
            if report.is_well() { "ok" } else { "FAILED" }.to_owned(),
        ]);
    }
    table
}

fn csv(reports: &[Report]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "algorithm",
        "variant",
        "shape",
        "nodes",
        "load",
        "delay",
        "channels",
        "hold",
        "seed",
        "entries",
        "messages",
        "messages_per_entry",
        "idle_messages_per_time",
        "bytes_per_entry",
        "response_time_mean",
        "response_time_p99",
        "sync_delay_mean",
        "sync_delay_p99",
        "jain",
        "max_overtaken",
        "node_load_mean",
        "node_load_max",
        "violations",
        "unserved",
    ])?;
    for report in reports {
        let measures = &report.measures;
        writer.serialize((
            (
                report.algorithm,
                &report.variant,
                &report.shape,
                report.nodes,
            ),
            (
                &report.load,
                &report.delay,
                &report.channels,
                report.hold,
                report.seed,
            ),
            (
                measures.entries,
                measures.messages,
                measures.messages_per_entry,
            ),
            (measures.idle_messages_per_time, measures.bytes_per_entry),
            (measures.response_time.mean, measures.response_time.p99),
            (measures.sync_delay.mean, measures.sync_delay.p99),
            (measures.fairness.jain, measures.fairness.max_overtaken),
            (measures.node_load.mean, measures.node_load.max),
            (report.violations, report.unserved),
        ))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn verdict(reports: &[Report]) -> Verdict {
    let failed: Vec<_> = reports.iter().filter(|report| !report.is_well()).collect();
    for report in &failed {
        output::complain(&format!(
            "failed: {} with {} nodes under {} load: {} violations, {} unserved",
            report.label(),
            report.nodes,
            report.load,
            report.violations,
            report.unserved
        ));
    }
    Verdict::of(failed.is_empty())
}
