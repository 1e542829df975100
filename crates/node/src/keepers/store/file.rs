//! Creates and opens the store's file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::{panic, thread};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableError, WriteTransaction};

use super::tables::{self, FORMAT, FORMAT_OLDEST, FORMAT_VERSION, IDENTITY, LOG, OWNER, STATE};
use super::{StoreError, StoreIdentity, migration};
use soloist_api::NodeName;

/// The first bytes of the database's files.
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// The description of damage that shows only as a panic.
pub(super) const NONSENSE: &str = "the database cannot read it";
/// The name of the thread that checks a copy.
const EXAMINER: &str = "keeper-store-check";
/// Small, since the roster is small and the log is short.
const CACHE_BYTES: usize = 8 << 20;

/// Opens the store in this file. A store of an older format is migrated, and the old file is kept
/// beside it.
pub(super) fn open(path: &Path, owner: &NodeName) -> Result<Database, StoreError> {
    let name = path.display().to_string();
    let backend = existing(path, &name)?;
    let io = |error| StoreError::io(&name, error);
    let keep = |format: u32| keep_beside(path, &backend, &format!(".format-{format}"));
    if let Some(format) = examine(&name, copy(&name, &backend)?, owner)?.older() {
        let kept = keep(format).map_err(io)?;
        tracing::info!(
            "the keeper's store {name} is migrated from format {format} to {FORMAT_VERSION}; {} is kept",
            kept.display()
        );
    }
    open_examined(&name, backend, owner)
}

/// As [`open`], on any backend.
pub(super) fn open_backend(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
) -> Result<Database, StoreError> {
    examine(name, copy(name, &backend)?, owner)?;
    open_examined(name, backend, owner)
}

/// As [`create`], on any backend.
pub(super) fn create_backend(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
    identity: &StoreIdentity,
) -> Result<Database, StoreError> {
    match backend.len().map_err(|error| StoreError::io(name, error))? {
        0 => fill(name, backend, owner, identity),
        _ => Err(StoreError::Exists {
            file: name.to_owned(),
        }),
    }
}

fn existing(path: &Path, name: &str) -> Result<FileBackend, StoreError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = name.to_owned();
            return Err(StoreError::Missing { file });
        }
        opened => opened.map_err(|error| StoreError::io(name, error))?,
    };
    FileBackend::new(file).map_err(|error| StoreError::database(name, error))
}

fn open_examined(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
) -> Result<Database, StoreError> {
    let failed = |error| StoreError::database(name, error);
    let database = builder()
        .create_with_backend(backend)
        .map_err(|error| failed(error.into()))?;
    if tables::get::<u32>(&database, FORMAT).map_err(failed)? != Some(FORMAT_VERSION) {
        migration::migrate(&database, owner).map_err(failed)?;
    }
    Ok(database)
}

/// Creates a store. It is renamed to `path` when it is complete, so that a crash does not leave a
/// file that cannot be opened.
pub(super) fn create(
    path: &Path,
    owner: &NodeName,
    identity: &StoreIdentity,
) -> Result<Database, StoreError> {
    let name = path.display().to_string();
    let io = |error| StoreError::io(&name, error);
    let unfinished = with_ending(path, ".new");
    let (file, backend) = locked(&unfinished, &name)?;
    // Only the process that has locked the unfinished file gets here, so no other can finish a
    // store after this check.
    if path.try_exists().map_err(io)? {
        fs::remove_file(&unfinished).map_err(io)?;
        return Err(StoreError::Exists { file: name });
    }
    file.set_len(0).map_err(io)?;
    let database = fill(&name, backend, owner, identity)?;
    fs::rename(&unfinished, path).map_err(io)?;
    sync_folder(path).map_err(io)?;
    Ok(database)
}

/// Renames a store, and returns its new name. Nothing is overwritten.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let name = path.display().to_string();
    let io = |error| StoreError::io(&name, error);
    // Make sure that no process has it open: a running keeper would go on writing to it.
    let _backend = existing(path, &name)?;
    let mut number = 1;
    let aside = loop {
        let aside = with_ending(path, &format!(".set-aside-{number}"));
        if !aside.try_exists().map_err(io)? {
            break aside;
        }
        number += 1;
    };
    fs::rename(path, &aside).map_err(io)?;
    sync_folder(path).map_err(io)?;
    Ok(aside)
}

/// Opens and locks a file, and creates it if it does not exist.
fn locked(path: &Path, name: &str) -> Result<(File, FileBackend), StoreError> {
    let io = |error| StoreError::io(name, error);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(io)?;
    let same = file.try_clone().map_err(io)?;
    let backend = FileBackend::new(file).map_err(|error| StoreError::database(name, error))?;
    Ok((same, backend))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Makes changes of a file's folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Creates a data folder that only this user can access, unless it exists.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let made = if folder.is_dir() {
        Ok(())
    } else {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| sync_folder(folder))
    };
    made.map_err(|error| StoreError::io(&folder.display().to_string(), error))
}

/// An existing store that was checked and is locked.
pub(super) struct Existing {
    name: String,
    path: PathBuf,
    owner: NodeName,
    backend: FileBackend,
}

impl Existing {
    pub(super) fn open(path: &Path, owner: &NodeName) -> Result<Self, StoreError> {
        let name = path.display().to_string();
        let backend = existing(path, &name)?;
        examine(&name, copy(&name, &backend)?, owner)?;
        Ok(Existing {
            name,
            path: path.to_owned(),
            owner: owner.clone(),
            backend,
        })
    }

    /// A copy in memory, migrated to the current format.
    pub(super) fn copy(&self) -> Result<Database, StoreError> {
        let copy = copy(&self.name, &self.backend)?;
        open_examined(&self.name, copy, &self.owner)
    }

    /// Replaces this store with a new one, and keeps the old one under another name. At every
    /// moment one of the two is there.
    pub(super) fn replace(
        self,
        identity: &StoreIdentity,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<PathBuf, StoreError> {
        let io = |error| StoreError::io(&self.name, error);
        let unfinished = with_ending(&self.path, ".new");
        let (file, backend) = locked(&unfinished, &self.name)?;
        file.set_len(0).map_err(io)?;
        let database = fill(&self.name, backend, &self.owner, identity)?;
        tables::write(&database, change)
            .map_err(|error| StoreError::database(&self.name, error))?;
        // Closing the database writes to the file. Sync that too.
        drop(database);
        file.sync_all().map_err(io)?;
        let kept = keep_beside(&self.path, &self.backend, ".before-recovery").map_err(io)?;
        fs::rename(&unfinished, &self.path).map_err(io)?;
        sync_folder(&self.path).map_err(io)?;
        Ok(kept)
    }
}

/// Copies a store to a new file beside it, unless there is such a copy already.
fn keep_beside(path: &Path, backend: &FileBackend, ending: &str) -> io::Result<PathBuf> {
    let mut bytes = vec![0; backend.len()? as usize];
    backend.read(0, &mut bytes)?;
    let mut number = 1;
    let (kept, mut file) = loop {
        let kept = with_ending(path, &format!("{ending}-{number}"));
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&kept) {
            Ok(file) => break (kept, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::read(&kept)? == bytes {
                    return Ok(kept);
                }
                number += 1;
            }
            Err(error) => return Err(error),
        }
    };
    file.write_all(&bytes)?;
    file.sync_all()?;
    sync_folder(path)?;
    Ok(kept)
}

fn fill(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
    identity: &StoreIdentity,
) -> Result<Database, StoreError> {
    let failed = |error| StoreError::database(name, error);
    let database = builder()
        .create_with_backend(backend)
        .map_err(|error| failed(error.into()))?;
    tables::write(&database, |transaction| {
        transaction.open_table(LOG)?;
        tables::put(transaction, FORMAT, &FORMAT_VERSION)?;
        tables::put(transaction, OWNER, owner)?;
        tables::put(transaction, IDENTITY, identity)
    })
    .map_err(failed)?;
    Ok(database)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Copies the whole file into memory. Opening a database writes to it and may repair it; with a
/// copy, this can be tried first.
fn copy(name: &str, backend: &impl StorageBackend) -> Result<InMemoryBackend, StoreError> {
    let io = |error| StoreError::io(name, error);
    let length = backend.len().map_err(io)?;
    if length == 0 {
        return Err(StoreError::not_a_store(name, "it is empty"));
    }
    let too_long = |_| io(io::Error::from(io::ErrorKind::FileTooLarge));
    let mut bytes = vec![0; usize::try_from(length).map_err(too_long)?];
    backend.read(0, &mut bytes).map_err(io)?;
    if !bytes.starts_with(MAGIC) {
        let problem = "it is not a database";
        return Err(StoreError::not_a_store(name, problem));
    }
    let copy = InMemoryBackend::new();
    copy.set_len(length).map_err(io)?;
    copy.write(0, &bytes).map_err(io)?;
    Ok(copy)
}

/// The format of an intact store.
#[derive(Clone, Copy)]
struct Format(u32);

impl Format {
    /// The format's number, if the store must be migrated.
    fn older(self) -> Option<u32> {
        (self.0 < FORMAT_VERSION).then_some(self.0)
    }
}

/// Checks a copy by migrating and reading all of it. The database panics at some kinds of damage,
/// so this runs in a separate thread whose panics are not printed: the returned error describes the
/// damage.
fn examine(name: &str, copy: InMemoryBackend, owner: &NodeName) -> Result<Format, StoreError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if thread::current().name() != Some(EXAMINER) {
                usual(panicked);
            }
        }));
    });
    let (file, owner) = (name.to_owned(), owner.clone());
    let examining = thread::Builder::new()
        .name(EXAMINER.to_owned())
        .spawn(move || examine_copy(&file, copy, &owner))
        .map_err(|error| StoreError::io(name, error))?;
    let examined = examining.join();
    examined.unwrap_or_else(|_| Err(StoreError::corrupt(name, NONSENSE)))
}

fn examine_copy(name: &str, copy: InMemoryBackend, owner: &NodeName) -> Result<Format, StoreError> {
    let mut database = match builder().create_with_backend(copy) {
        Err(redb::DatabaseError::UpgradeRequired(version)) => {
            let problem = format!("it is a database of the old version {version}");
            return Err(StoreError::not_a_store(name, &problem));
        }
        opened => opened.map_err(|error| in_memory(name, error.into()))?,
    };
    // All content has checksums. It does not matter whether the lists of free pages were correct:
    // if not, they are rebuilt from the content.
    database
        .check_integrity()
        .map_err(|error| in_memory(name, error.into()))?;
    let found = (|| {
        match database.begin_read()?.open_table(STATE) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            opened => opened?,
        };
        let format = tables::get::<u32>(&database, FORMAT)?;
        Ok::<_, redb::Error>(format)
    })();
    let format = match found.map_err(|error| in_memory(name, error))? {
        Some(found @ FORMAT_OLDEST..=FORMAT_VERSION) => Format(found),
        Some(found) => {
            return Err(StoreError::Version {
                file: name.to_owned(),
                found,
                oldest: FORMAT_OLDEST,
                newest: FORMAT_VERSION,
            });
        }
        None => {
            let problem = "it is the database of another program";
            return Err(StoreError::not_a_store(name, problem));
        }
    };
    let found: Option<NodeName> =
        tables::get(&database, OWNER).map_err(|error| in_memory(name, error))?;
    match found {
        Some(found) if found == *owner => {}
        Some(found) => {
            return Err(StoreError::Owner {
                file: name.to_owned(),
                found,
                expected: owner.clone(),
            });
        }
        None => return Err(StoreError::corrupt(name, "it does not name its node")),
    }
    let migrated = match format.older() {
        Some(_) => migration::migrate(&database, owner),
        None => Ok(()),
    };
    let examined = migrated
        .and_then(|()| tables::identity(&database))
        .and_then(|_| tables::examine(&database));
    examined.map_err(|error| in_memory(name, error))?;
    Ok(format)
}

/// An error about a copy in memory is never an I/O error.
fn in_memory(name: &str, error: redb::Error) -> StoreError {
    StoreError::corrupt(name, error)
}
