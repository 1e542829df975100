//! Making and opening the store's file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableError};

use super::StoreError;
use super::tables::{self, FORMAT, FORMAT_VERSION, LOG, OWNER, STATE};
use crate::config::NodeName;

/// What the database's files begin with.
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// The roster is small, and the log is short.
const CACHE_BYTES: usize = 8 << 20;

/// Opens the store in this file, or makes it.
pub(super) fn open(path: &Path, owner: &NodeName) -> Result<Database, StoreError> {
    let name = path.display().to_string();
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => {
                let backend =
                    FileBackend::new(file).map_err(|error| StoreError::database(&name, error))?;
                return open_existing(&name, backend, owner);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&name, error)),
        }
        // Otherwise another process was faster: its file is there now.
        if let Some(database) = make(path, &name, owner)? {
            return Ok(database);
        }
    }
}

/// As [`open`], on anything that can be read and written.
pub(super) fn open_backend(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
) -> Result<Database, StoreError> {
    match backend.len().map_err(|error| StoreError::io(name, error))? {
        0 => fill(name, backend, owner),
        _ => open_existing(name, backend, owner),
    }
}

/// Makes a file under another name, and gives it its own when it is whole: a crash on the way must not leave
/// one that cannot be opened.
fn make(path: &Path, name: &str, owner: &NodeName) -> Result<Option<Database>, StoreError> {
    let io = |error| StoreError::io(name, error);
    let unfinished = unfinished(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&unfinished)
        .map_err(io)?;
    let emptied = file.try_clone().map_err(io)?;
    let backend = FileBackend::new(file).map_err(|error| StoreError::database(name, error))?;
    // Who has the lock of the unfinished file knows whether another process has finished it.
    if path.exists() {
        fs::remove_file(&unfinished).map_err(io)?;
        return Ok(None);
    }
    emptied.set_len(0).map_err(io)?;
    let database = fill(name, backend, owner)?;
    fs::rename(&unfinished, path).map_err(io)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(io)?;
    Ok(Some(database))
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn fill(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
) -> Result<Database, StoreError> {
    let failed = |error| StoreError::database(name, error);
    let database = builder()
        .create_with_backend(backend)
        .map_err(|error| failed(error.into()))?;
    tables::write(&database, |transaction| {
        transaction.open_table(LOG)?;
        tables::put(transaction, FORMAT, &FORMAT_VERSION)?;
        tables::put(transaction, OWNER, owner)
    })
    .map_err(failed)?;
    Ok(database)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn open_existing(
    name: &str,
    backend: impl StorageBackend,
    owner: &NodeName,
) -> Result<Database, StoreError> {
    let copy = copy(name, &backend)?;
    examine(name, copy, owner)?;
    builder()
        .create_with_backend(backend)
        .map_err(|error| StoreError::database(name, error))
}

/// The whole file. Opening a database writes to it, and may repair it; a copy shows what would come of that.
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
        let problem = "it is no database at all";
        return Err(StoreError::not_a_store(name, problem));
    }
    let copy = InMemoryBackend::new();
    copy.set_len(length).map_err(io)?;
    copy.write(0, &bytes).map_err(io)?;
    Ok(copy)
}

/// Reads all of a copy. The database panics at some damage; that happens in a thread of its own.
fn examine(name: &str, copy: InMemoryBackend, owner: &NodeName) -> Result<(), StoreError> {
    let (file, owner) = (name.to_owned(), owner.clone());
    let examining = thread::Builder::new()
        .name("keeper-store-check".to_owned())
        .spawn(move || examine_copy(&file, copy, &owner))
        .map_err(|error| StoreError::io(name, error))?;
    examining.join().unwrap_or_else(|_| {
        Err(StoreError::corrupt(
            name,
            "the database cannot make sense of it",
        ))
    })
}

fn examine_copy(name: &str, copy: InMemoryBackend, owner: &NodeName) -> Result<(), StoreError> {
    let mut database = match builder().create_with_backend(copy) {
        Err(redb::DatabaseError::UpgradeRequired(version)) => {
            let problem = format!("it is a database of the old version {version}");
            return Err(StoreError::not_a_store(name, &problem));
        }
        opened => opened.map_err(|error| in_memory(name, error.into()))?,
    };
    // All that is in it has a checksum. Whether its lists of free pages were right makes no difference: they are
    // made anew from the rest if they were not.
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
    match found.map_err(|error| in_memory(name, error))? {
        Some(FORMAT_VERSION) => {}
        Some(found) => {
            return Err(StoreError::Version {
                file: name.to_owned(),
                found,
                supported: FORMAT_VERSION,
            });
        }
        None => {
            let problem = "it is the database of some other program";
            return Err(StoreError::not_a_store(name, problem));
        }
    }
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
        None => return Err(StoreError::corrupt(name, "it does not say whose it is")),
    }
    tables::examine(&database).map_err(|error| in_memory(name, error))
}

/// An error about a copy in memory is never the system's.
fn in_memory(name: &str, error: redb::Error) -> StoreError {
    StoreError::corrupt(name, error)
}
