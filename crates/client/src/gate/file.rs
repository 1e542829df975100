//! A gate in a file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{Stale, check, record};

/// A gate whose highest fence stands in a file: it survives crashes, and processes on one machine
/// share it.
///
/// Beside the file there is one more, of the same name and `.lock`, that processes lock in turn. A
/// new value is written to a file of its own (`.new`), brought to the disk and put in the old one's
/// place, so that a crash leaves the old value or the new one. A file that is torn or was changed
/// by somebody else refuses everybody: to begin anew would admit the stale.
///
/// ```
/// use soloist_client::gate::{FileGate, GateError};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("orders.gate");
///
/// let gate = FileGate::open(&path).unwrap();
/// gate.admit(8).unwrap();
/// let late = FileGate::open(&path).unwrap().admit(7);
/// assert!(matches!(late, Err(GateError::Stale(stale)) if stale.seen == 8));
/// ```
#[derive(Clone, Debug)]
pub struct FileGate {
    path: PathBuf,
    folder: PathBuf,
}

/// Why a gate in a file does not admit. In each case whoever asked must not go on.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The fence is too low.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The file is not a gate's.
    #[error(
        "{file} is not what a fence gate wrote ({problem}): nobody is admitted; find out what happened \
         to it, then remove it to begin anew"
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
        /// What was to be done.
        what: &'static str,
        /// With which file.
        file: String,
        /// Why it failed.
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
    /// The gate in this file. It need not be there yet, but its folder must.
    pub fn open(path: &Path) -> Result<Self, GateError> {
        // One file has one lock and one place, also if it is reached over links.
        let path = match fs::symlink_metadata(path) {
            Ok(_) => fs::canonicalize(path).map_err(failed("find", path))?,
            Err(_) => {
                let name = path.file_name().ok_or_else(|| {
                    failed("use", path)(io::Error::other("it does not name a file"))
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

    /// Admits this fence and refuses lower ones from now on, or refuses it. When this returns, the
    /// fence is on the disk.
    ///
    /// What is done after this call may still come late: somebody with a higher fence may be
    /// admitted between. Where that matters, use [`run`](Self::run).
    pub fn admit(&self, fence: u64) -> Result<(), GateError> {
        self.run(fence, || ())
    }

    /// Admits this fence and does the work before anybody else is admitted, or refuses it and does
    /// nothing.
    pub fn run<R>(&self, fence: u64, work: impl FnOnce() -> R) -> Result<R, GateError> {
        let _locked = self.lock()?;
        let seen = self.read()?;
        check(seen, fence)?;
        if seen != Some(fence) {
            self.write(fence)?;
        }
        // Also if it was there: who wrote it may have been killed before this.
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(failed("bring to the disk", &self.folder))?;
        Ok(work())
    }

    /// The highest fence that was admitted.
    pub fn seen(&self) -> Result<Option<u64>, GateError> {
        let _locked = self.lock()?;
        self.read()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(suffix);
        path.into()
    }

    /// Held until the file is closed. The gate's own file cannot be locked: it is replaced.
    fn lock(&self) -> Result<File, GateError> {
        let path = self.beside(".lock");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(&path).map_err(failed("open", &path))?;
        file.lock().map_err(failed("lock", &path))?;
        Ok(file)
    }

    fn read(&self) -> Result<Option<u64>, GateError> {
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
                    _ => "its text or check sum is wrong",
                },
            }),
        }
    }

    fn write(&self, fence: u64) -> Result<(), GateError> {
        let new = self.beside(".new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(record::write(fence).as_bytes())?;
            file.sync_all()
        });
        written.map_err(failed("write", &new))?;
        fs::rename(&new, &self.path).map_err(failed("replace", &self.path))
    }
}
