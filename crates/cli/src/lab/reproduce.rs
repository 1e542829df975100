//! `soloist lab reproduce`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use soloist_claims::reproduce::{self, Content, Item, Part, Reproduced, Selection, page};

use super::claims::paper;
use crate::table::Table;
use crate::{Verdict, output};

/// Reproduce the figures, tables and formulas of the papers
///
/// Without options, lists what can be reproduced. A figure that shows a run is replayed. A formula
/// is drawn, with the paper's curve as a line and measured means with their intervals as points.
/// Each comes with a verdict as in `soloist lab claims`, a command that repeats its main run, and
/// the seeds.
///
/// A formula that fails is a finding, not an error: the exit code is 0.
#[derive(clap::Args)]
#[command(
    after_long_help = "Examples:\n  soloist lab reproduce --paper raymond --figure 7\n  soloist lab reproduce --paper maekawa \
                       --equation abstract --out pictures\n  soloist lab reproduce --all --out pictures --markdown > page.md"
)]
pub(crate) struct Args {
    /// Only what is in this paper, given by its algorithm's name or alias
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    paper: Option<String>,

    /// Only the figure with this number
    #[arg(long, value_name = "X", group = "part", allow_hyphen_values = true)]
    figure: Option<String>,

    /// Only the table with this number
    #[arg(long, value_name = "X", group = "part", allow_hyphen_values = true)]
    table: Option<String>,

    /// Only the formula of this section, such as 5.1 or abstract
    #[arg(long, value_name = "X", group = "part", allow_hyphen_values = true)]
    equation: Option<String>,

    /// Reproduce everything
    #[arg(long, conflicts_with_all = ["paper", "part"])]
    all: bool,

    /// Write the charts as SVG and CSV, the tables as CSV and the replays as text into this folder,
    /// which is created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the page docs/reproduced.md, which shows the pictures in DIR
    #[arg(long, requires = "out")]
    markdown: bool,
}

#[derive(Serialize)]
struct Made<'a> {
    #[serde(flatten)]
    item: &'a Item,
    #[serde(flatten)]
    reproduced: &'a Reproduced,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let selection = self.selection()?;
        if !self.all && selection.is_everything() {
            if self.out.is_some() {
                bail!(
                    "--out: say what to reproduce, with --all, --paper, --figure, --table or --equation"
                );
            }
            return self.list();
        }
        let items = selection.items()?;
        if let Some(folder) = &self.out {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder '{}'", folder.display()))?;
        }
        let bar = output::progress_bar(items.len() as u64, "figures, tables and formulas");
        let mut made = Vec::new();
        for item in items {
            let reproduced = item.reproduce();
            if let Some(folder) = &self.out {
                write(folder, &item, &reproduced)?;
            }
            made.push((item, reproduced));
            bar.inc(1);
        }
        bar.finish_and_clear();
        self.print(&made)?;
        Ok(Verdict::Well)
    }

    fn selection(&self) -> Result<Selection> {
        let given = [
            (Part::Figure, &self.figure),
            (Part::Table, &self.table),
            (Part::Equation, &self.equation),
        ];
        let mut given = given
            .into_iter()
            .filter_map(|(part, label)| Some((part, label.clone()?)));
        Ok(Selection {
            paper: self.paper.as_deref().map(paper).transpose()?,
            part: given.next(),
        })
    }

    fn list(&self) -> Result<Verdict> {
        let items = reproduce::all();
        if self.json {
            output::json(&items)?;
            return Ok(Verdict::Well);
        }
        let mut table = Table::new(["paper", "what", "shows"]);
        for item in items {
            let name = item.paper.info().name.to_owned();
            let option = format!("--{} {}", item.part.name(), item.labels[0]);
            table.row([name, option, item.title.to_owned()]);
        }
        output::text(&table.fit(output::width()))?;
        Ok(Verdict::Well)
    }

    fn print(&self, made: &[(Item, Reproduced)]) -> Result<()> {
        if self.json {
            let made = made
                .iter()
                .map(|(item, reproduced)| Made { item, reproduced });
            return output::json(&made.collect::<Vec<_>>());
        }
        if self.markdown {
            let folder = self.out.as_deref().and_then(Path::file_name);
            let folder = folder.unwrap_or_default().to_string_lossy();
            return output::text(&page::page(made, &folder));
        }
        let mut text = String::new();
        for (item, reproduced) in made {
            describe(&mut text, item, reproduced);
            match &self.out {
                None => show(&mut text, &reproduced.content),
                Some(folder) => {
                    for (name, _) in reproduced.files(item) {
                        let _ = writeln!(text, "  {}", folder.join(name).display());
                    }
                }
            }
            text.push('\n');
        }
        output::text(&text)
    }
}

/// Writes the files of an item.
fn write(folder: &Path, item: &Item, reproduced: &Reproduced) -> Result<()> {
    for (name, content) in reproduced.files(item) {
        let path = folder.join(name);
        std::fs::write(&path, content)
            .with_context(|| format!("cannot write '{}'", path.display()))?;
    }
    Ok(())
}

fn describe(text: &mut String, item: &Item, reproduced: &Reproduced) {
    let finding = &reproduced.finding;
    let _ = writeln!(text, "{}: {}", item.name(), item.title);
    let _ = writeln!(text, "  {}: {}", finding.verdict.text(), finding.found);
    for command in finding.evidence.split(" && ") {
        let _ = writeln!(text, "  {command}");
    }
    if let Some(seeds) = &reproduced.seeds {
        let _ = writeln!(text, "  seeds {seeds}");
    }
}

/// The data of an item as text.
fn show(text: &mut String, content: &Content) {
    text.push('\n');
    match content {
        Content::Chart(chart) => {
            let [head, rows @ ..] = &chart.rows()[..] else {
                return;
            };
            let mut table = Table::new(head);
            rows.iter().for_each(|row| table.row(row));
            let _ = writeln!(text, "{}\n{}", table.fit(output::width()), chart.caption);
        }
        Content::Table(shown) => {
            let mut table = Table::new(&shown.head);
            shown.rows.iter().for_each(|row| table.row(row));
            let _ = writeln!(text, "{}\n{}", table.fit(output::width()), shown.note);
        }
        Content::Replays(replays) => {
            replays
                .iter()
                .for_each(|replay| text.push_str(&replay.transcript));
        }
    }
}
