//! Files with the events of a simulated run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use soloist_lab::simulate::{Setup, TraceEvent, simulate_traced};

/// A file for events, in the format that its name says.
pub(super) struct TraceFile {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Csv(Box<csv::Writer<File>>),
    JsonLines(BufWriter<File>),
}

impl TraceFile {
    /// Creates the file, so that a bad name is refused before anything is simulated.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default();
        let is_csv = extension.eq_ignore_ascii_case("csv");
        if !is_csv && !extension.eq_ignore_ascii_case("jsonl") {
            bail!(
                "--trace {}: use a name that ends with .csv, or with .jsonl for JSON lines",
                path.display()
            );
        }
        let file = File::create(path)
            .with_context(|| format!("cannot write the trace to '{}'", path.display()))?;
        let sink = if is_csv {
            Sink::Csv(Box::new(csv::Writer::from_writer(file)))
        } else {
            Sink::JsonLines(BufWriter::new(file))
        };
        Ok(TraceFile {
            path: path.to_owned(),
            sink,
        })
    }

    /// Simulates the run and writes its events.
    pub(super) fn write(mut self, setup: &Setup) -> Result<()> {
        let mut result = Ok(());
        simulate_traced(setup, &mut |_| (), &mut |event| {
            if result.is_ok() {
                result = self.sink.add(event);
            }
        })?;
        result
            .and_then(|()| self.sink.finish())
            .with_context(|| format!("cannot write the trace to '{}'", self.path.display()))
    }
}

impl Sink {
    fn add(&mut self, event: &TraceEvent) -> Result<()> {
        match self {
            Sink::Csv(writer) => writer.serialize(event)?,
            Sink::JsonLines(writer) => {
                serde_json::to_writer(&mut *writer, event)?;
                writer.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        match self {
            Sink::Csv(writer) => writer.flush()?,
            Sink::JsonLines(writer) => writer.flush()?,
        }
        Ok(())
    }
}
