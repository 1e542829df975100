//! The files that the workers of the demo share.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use soloist_api::Fence;

/// A counter in a file, and a journal of entries.
#[derive(Clone)]
pub(super) struct SharedFile {
    counter: PathBuf,
    journal: PathBuf,
}

impl SharedFile {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let shared_file = SharedFile {
            counter: folder.join("counter"),
            journal: folder.join("journal"),
        };
        fs::write(&shared_file.counter, "0")?;
        File::create(&shared_file.journal)?;
        Ok(shared_file)
    }

    /// Increments the counter, slowly and without any locking of its own. Returns the new value.
    pub(super) async fn add_one(&self, worker: &str, fence: Fence) -> Result<u64> {
        self.note(&format!("enter {worker} {fence}"))?;
        let number = self.counter()? + 1;
        // A pause of 20 to 179 ms that differs between turns, without a random generator.
        let pause = fence.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        tokio::time::sleep(Duration::from_millis(20 + pause % 160)).await;
        fs::write(&self.counter, number.to_string())?;
        self.note(&format!("leave {worker} {fence}"))?;
        Ok(number)
    }

    /// Appends a line to the journal.
    pub(super) fn note(&self, line: &str) -> Result<()> {
        let mut journal = OpenOptions::new().append(true).open(&self.journal)?;
        journal.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    /// The value of the counter.
    pub(super) fn counter(&self) -> Result<u64> {
        let text = fs::read_to_string(&self.counter)?;
        text.parse()
            .with_context(|| format!("unexpected content of the shared file: {text:?}"))
    }

    /// Counts the entries that overlapped another one, and returns whether fences always increased.
    pub(super) fn judge(&self) -> Result<(usize, bool)> {
        let journal = fs::read_to_string(&self.journal)?;
        let mut inside: Option<&str> = None;
        let (mut overlaps, mut rise, mut last) = (0, true, Fence::default());
        for line in journal.lines() {
            let Some((what, who)) = line.split_once(' ') else {
                bail!("unexpected line in the journal: {line:?}");
            };
            // A worker that was killed inside is no longer inside.
            if what == "leave" || what == "killed" {
                ensure!(
                    overlaps > 0 || inside == Some(who),
                    "{line:?} before its entry"
                );
                inside = None;
                continue;
            }
            overlaps += usize::from(inside.replace(who).is_some());
            let fence = who.rsplit(' ').next().and_then(|fence| fence.parse().ok());
            let fence = fence.context("a fence is a number")?;
            rise &= last < fence;
            last = fence;
        }
        Ok((overlaps, rise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_shows_overlaps() {
        let folder = tempfile::tempdir().unwrap();
        let shared_file = SharedFile::new(folder.path()).unwrap();
        for line in ["enter a 1", "leave a 1", "enter b 2", "leave b 2"] {
            shared_file.note(line).unwrap();
        }
        for line in ["enter c 3", "killed c 3", "enter b 4", "leave b 4"] {
            shared_file.note(line).unwrap();
        }
        assert_eq!(shared_file.judge().unwrap(), (0, true));
        for line in ["enter a 3", "enter b 3", "leave a 3", "leave b 3"] {
            shared_file.note(line).unwrap();
        }
        assert_eq!(shared_file.judge().unwrap(), (1, false));
    }
}
