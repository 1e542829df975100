//! A gate stored in a file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{Stale, check, record};
use crate::Fence;

/// A gate that stores its highest fence in a file. It survives crashes, and processes on one
/// machine can share it.
///
/// Processes take turns by locking a second file, with the suffix `.lock`. A new value is written
/// to a third file, with the suffix `.new`, synced to disk and renamed over the old one, so that a
/// crash leaves either the old or the new value. If the file is torn or was changed by something
/// else, the gate rejects every fence: starting again from an empty gate would admit stale holders.
///
/// ```
/// use soloist_client::Fence;
/// use soloist_client::gate::{FileGate, GateError};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("orders.gate");
///
/// let gate = FileGate::open(&path).unwrap();
/// gate.admit(Fence::from_number(8)).unwrap();
/// let late = FileGate::open(&path).unwrap().admit(Fence::from_number(7));
/// assert!(matches!(late, Err(GateError::Stale(stale)) if stale.seen == Fence::from_number(8)));
/// ```
#[derive(Clone, Debug)]
pub struct FileGate {
    path: PathBuf,
    folder: PathBuf,
}

/// Why a [`FileGate`] did not admit a fence. In every case the caller must not go on.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The fence is too low.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The content of the file was not written by a gate.
    #[error(
        "{file} was not written by a fence gate ({problem}), so no fence is admitted: \
         find out what happened to it, then remove it to start over"
    )]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file cannot be read or written.
    #[error("cannot {what} {file}: {source}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: String,
        /// Cause.
        source: io::Error,
    },
}

fn failed<'a>(what: &'static str, file: &'a Path) -> impl FnOnce(io::Error) -> GateError + 'a {
    move |source| GateError::Io {
        what,
        file: file.display().to_string(),
        source,
    }
}

impl FileGate {
    /// Opens the gate in this file. The file need not exist yet, but its folder must.
    pub fn open(path: &Path) -> Result<Self, GateError> {
        // Resolve links: all paths to one file must lead to the same `.lock` and `.new`.
        let path = match fs::symlink_metadata(path) {
            Ok(_) => fs::canonicalize(path).map_err(failed("find", path))?,
            Err(_) => {
                let name = path.file_name().ok_or_else(|| {
                    failed("use", path)(io::Error::other("the path does not name a file"))
                })?;
                let folder = match path.parent() {
                    Some(parent) if parent != Path::new("") => parent,
                    _ => Path::new("."),
                };
                let folder = fs::canonicalize(folder).map_err(failed("find the folder", folder))?;
                folder.join(name)
            }
        };
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(FileGate { path, folder })
    }

    /// Admits `fence` and rejects lower ones from now on, or returns an error if it is stale. When
    /// this returns, the fence is on disk.
    ///
    /// Work done after this call may still come too late, since a higher fence may be admitted in
    /// between. Where that matters, use [`run`](Self::run).
    pub fn admit(&self, fence: Fence) -> Result<(), GateError> {
        self.run(fence, || ())
    }

    /// Admits `fence` and runs `work` before any other fence is admitted. Does not run `work` if
    /// the fence is rejected.
    pub fn run<R>(&self, fence: Fence, work: impl FnOnce() -> R) -> Result<R, GateError> {
        let _locked = self.lock()?;
        let seen = self.read()?;
        check(seen, fence)?;
        if seen != Some(fence) {
            self.write(fence)?;
        }
        // Also if the file has this fence already: the process that wrote it may have been killed
        // before it synced the folder.
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(failed("sync", &self.folder))?;
        Ok(work())
    }

    /// The highest fence admitted so far, or `None` if there was none.
    pub fn seen(&self) -> Result<Option<Fence>, GateError> {
        let _locked = self.lock()?;
        self.read()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(suffix);
        path.into()
    }

    /// Takes the file lock, which is held until the returned file is closed. The gate's own file
    /// cannot be locked, because it is replaced.
    fn lock(&self) -> Result<File, GateError> {
        let path = self.beside(".lock");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(&path).map_err(failed("open", &path))?;
        file.lock().map_err(failed("lock", &path))?;
        Ok(file)
    }

    fn read(&self) -> Result<Option<Fence>, GateError> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed("open", &self.path))?,
        };
        let mut bytes = Vec::with_capacity(record::LONGEST + 1);
        file.take(record::LONGEST as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(failed("read", &self.path))?;
        match record::read(&bytes) {
            Some(fence) => Ok(Some(fence)),
            None => Err(GateError::Damaged {
                file: self.path.display().to_string(),
                problem: match bytes.len() {
                    0 => "it is empty",
                    _ => "wrong format or checksum",
                },
            }),
        }
    }

    fn write(&self, fence: Fence) -> Result<(), GateError> {
        let new = self.beside(".new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(record::write(fence).as_bytes())?;
            file.sync_all()
        });
        written.map_err(failed("write", &new))?;
        fs::rename(&new, &self.path).map_err(failed("replace", &self.path))
    }
}
