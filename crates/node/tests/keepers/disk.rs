//! A disk that fails on request, and that loses unsynced writes in a crash.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

#[derive(Debug, Default)]
struct Inner {
    /// Content that survives a crash.
    durable: Vec<u8>,
    /// Content that the process reads.
    seen: Vec<u8>,
    /// Changes since the last sync.
    unsynced: Vec<Change>,
    /// Number of changes and syncs that still succeed, or `None` if there is no limit.
    left: Option<usize>,
    used: usize,
}

#[derive(Clone, Debug)]
enum Change {
    Length(u64),
    Bytes(u64, Vec<u8>),
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(length) => bytes.resize(*length as usize, 0),
        Change::Bytes(at, written) => {
            let at = *at as usize;
            bytes[at..at + written.len()].copy_from_slice(written);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    /// The disk as it is found after a crash: the first `arrived` of the unsynced changes were
    /// written, and half of the next one.
    pub(crate) fn after_crash(&self, arrived: usize) -> Disk {
        let inner = self.inner();
        let mut durable = inner.durable.clone();
        for change in inner.unsynced.iter().take(arrived) {
            apply(&mut durable, change);
        }
        if let Some(Change::Bytes(at, bytes)) = inner.unsynced.get(arrived) {
            let half = bytes[..bytes.len() / 2].to_vec();
            if *at as usize + half.len() <= durable.len() {
                apply(&mut durable, &Change::Bytes(*at, half));
            }
        }
        Disk(Arc::new(Mutex::new(Inner {
            seen: durable.clone(),
            durable,
            ..Inner::default()
        })))
    }

    /// Number of unsynced changes.
    pub(crate) fn unsynced(&self) -> usize {
        self.inner().unsynced.len()
    }

    /// Makes the disk report that it is full after this many more changes and syncs.
    pub(crate) fn fail_after(&self, changes: usize) {
        self.inner().left = Some(changes);
    }

    /// Number of changes and syncs so far.
    pub(crate) fn used(&self) -> usize {
        self.inner().used
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut inner = self.inner();
        inner.spend()?;
        apply(&mut inner.seen, &change);
        inner.unsynced.push(change);
        Ok(())
    }
}

impl Inner {
    fn spend(&mut self) -> io::Result<()> {
        self.used += 1;
        match &mut self.left {
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let offset = offset as usize;
        let part = inner.seen.get(offset..offset + out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Length(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.spend()?;
        inner.durable = inner.seen.clone();
        inner.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Bytes(offset, data.to_vec()))
    }
}
