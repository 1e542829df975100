//! `soloist lab list`.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Kind, Message, Shape};

use crate::{Verdict, output};

/// List the algorithms with their papers, channels, messages, shapes and variants
#[derive(clap::Args)]
pub struct Args {
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
    pub fn run(self) -> Result<Verdict> {
        let all: Vec<Listed> = Kind::ALL.iter().map(|kind| kind.visit(Describe)).collect();
        if self.json {
            output::json(&all)?;
        } else {
            let mut page = String::new();
            for listed in &all {
                describe(listed, &mut page);
            }
            output::text(&page)?;
        }
        Ok(Verdict::Well)
    }
}

fn describe(listed: &Listed, page: &mut String) {
    let aliases = match listed.aliases {
        [] => String::new(),
        aliases => format!(" ({})", aliases.join(", ")),
    };
    let _ = writeln!(page, "{}{aliases}", listed.name);
    let _ = writeln!(page, "    {}", listed.paper);
    let _ = writeln!(page, "    channels  {}", listed.channels);
    let _ = writeln!(page, "    messages  {}", listed.messages.join(" "));
    let mut column = |title: &str, items: &[Named]| {
        for (index, item) in items.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let _ = writeln!(page, "    {title:<8}  {:<18}{}", item.name, item.about);
        }
    };
    column("shapes", &listed.shapes);
    column("variants", &listed.variants);
    for preset in &listed.presets {
        let _ = writeln!(
            page,
            "    also as   {} = variant {}: {}",
            preset.name, preset.variant, preset.paper
        );
    }
    page.push('\n');
}
