//! `soloist lab list`.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Kind, Message, Shape};

use crate::show::wrapped;
use crate::{Verdict, output};

/// List the algorithms with their papers, channels, messages, shapes and variants
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    aliases: &'static [&'static str],
    paper: &'static str,
    channels: String,
    messages: &'static [&'static str],
    shapes: Vec<Named>,
    variants: Vec<Named>,
    presets: Vec<ListedPreset>,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct ListedPreset {
    name: &'static str,
    paper: &'static str,
    variant: String,
}

struct Describe;

impl Visitor for Describe {
    type Output = Listed;

    fn visit<A: Algorithm>(self) -> Listed {
        let info = A::INFO;
        let shapes = A::Shape::FORMS.iter();
        Listed {
            name: info.name,
            aliases: info.aliases,
            paper: info.paper,
            channels: info.channels.to_string(),
            messages: A::Message::KINDS,
            shapes: shapes.map(|&(name, about)| Named { name, about }).collect(),
            variants: info
                .variants
                .iter()
                .map(|variant| Named {
                    name: variant.name,
                    about: variant.about,
                })
                .collect(),
            presets: info
                .presets
                .iter()
                .map(|preset| ListedPreset {
                    name: preset.name,
                    paper: preset.paper,
                    variant: preset
                        .variants
                        .iter()
                        .map(|variant| variant.name)
                        .collect::<Vec<_>>()
                        .join(","),
                })
                .collect(),
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let all: Vec<Listed> = Kind::ALL.iter().map(|kind| kind.visit(Describe)).collect();
        if self.json {
            output::json(&all)?;
        } else {
            let mut page = String::new();
            for listed in &all {
                describe(listed, output::width(), &mut page);
            }
            output::text(&page)?;
        }
        Ok(Verdict::Well)
    }
}

/// Column in which the values of a description begin.
const VALUES: usize = 14;

fn describe(listed: &Listed, width: Option<usize>, page: &mut String) {
    let mut line = |text: String, indent: usize| {
        let _ = writeln!(page, "{}", wrapped(&text, indent, width));
    };
    let aliases = match listed.aliases {
        [] => String::new(),
        aliases => format!(" ({})", aliases.join(", ")),
    };
    line(format!("{}{aliases}", listed.name), 0);
    line(format!("    {}", listed.paper), 4);
    line(format!("    channels  {}", listed.channels), VALUES);
    line(
        format!("    messages  {}", listed.messages.join(" ")),
        VALUES,
    );
    let both = listed.shapes.iter().chain(&listed.variants);
    let name = both.map(|item| item.name.len()).max().unwrap_or(0);
    let mut column = |title: &str, items: &[Named]| {
        for (index, item) in items.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let text = format!("    {title:<8}  {:<name$}  {}", item.name, item.about);
            line(text, VALUES + name + 2);
        }
    };
    column("shapes", &listed.shapes);
    column("variants", &listed.variants);
    for preset in &listed.presets {
        let ListedPreset {
            name,
            variant,
            paper,
        } = preset;
        line(
            format!("    also as   {name} = variant {variant}: {paper}"),
            VALUES,
        );
    }
    page.push('\n');
}
