//! Creates files and folders: all of them or none, without overwriting anything.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Fails if one of the entries already exists.
pub(super) fn refuse_to_overwrite(out: &Path, entries: &[String]) -> Result<()> {
    match fs::symlink_metadata(out) {
        Err(_) => return Ok(()),
        Ok(found) if found.is_file() => {
            let out = out.display();
            bail!("{out} is a file: choose another folder with --out")
        }
        Ok(_) => {}
    }
    let mut there = entries.iter().map(|entry| out.join(entry));
    // A dangling symlink counts as existing.
    if let Some(found) = there.find(|path| path.symlink_metadata().is_ok()) {
        let found = found.display();
        bail!("{found} already exists and is not overwritten: choose another folder with --out");
    }
    Ok(())
}

/// Creates everything in a temporary folder next to the target, then moves it into place.
pub(super) fn make(
    out: &Path,
    entries: &[String],
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let exists = out.exists();
    let parent = match out.parent() {
        _ if exists => out,
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let temporary = tempfile::Builder::new()
        .prefix(".soloist-init-")
        .tempdir_in(parent)
        .with_context(|| format!("cannot create files in {}", parent.display()))?;
    let whole = temporary.path().join("cluster");
    fs::create_dir(&whole).with_context(|| whole.display().to_string())?;
    fill(&whole)?;
    if !exists {
        return move_to(&whole, out);
    }
    let mut moved: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let to = out.join(entry);
        if let Err(error) = move_to(&whole.join(entry), &to) {
            for path in moved {
                // Move it back into the temporary folder, which is deleted on drop.
                let _ = fs::rename(&path, whole.join(path.file_name().unwrap_or_default()));
            }
            return Err(error);
        }
        moved.push(to);
    }
    Ok(())
}

fn move_to(from: &Path, to: &Path) -> Result<()> {
    if to.symlink_metadata().is_ok() {
        bail!(
            "{} was created meanwhile and is not overwritten",
            to.display()
        );
    }
    fs::rename(from, to).with_context(|| format!("cannot create {}", to.display()))
}

pub(super) fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
