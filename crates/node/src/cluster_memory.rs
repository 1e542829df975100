//! What a node remembers of its cluster across restarts, in `data/cluster`.
//!
//! A node writes the cluster, its generation and the epoch to disk before it takes part in them.
//! From then on it refuses another cluster and an earlier generation or epoch. So a cluster that
//! was replaced cannot be joined by accident, whatever addresses an old configuration lists.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use soloist_core::cluster_identity::{
    ClusterId, ClusterIdentity, ForeignCluster, Generation, Remembered,
};

/// Creates the identity of a new cluster.
pub fn fresh_identity() -> ClusterIdentity {
    ClusterIdentity::new(ClusterId::from_bytes(rand::random()), rand::random())
}

/// The name of the file in a node's data folder.
pub const FILE_NAME: &str = "cluster";

/// The length of the file: one sector of a disk.
const FILE_BYTES: usize = 512;

/// The version of the file's format.
const FORMAT: u32 = 1;

const HEADER: &str = "# The cluster that this node belongs to. Soloist writes this file; do not edit it.\n\
                      # To join another cluster, stop the node and delete its data folder.\n";

/// Why a node's memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The file cannot be read or written.
    #[error("cannot use {file}: {source}; check the data folder, its permissions and the disk")]
    Io {
        /// The file.
        file: String,
        /// The error.
        source: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{file} is damaged: {problem}; if this node is not a keeper, delete the file to join \
         again as a new node"
    )]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file was written by a later release.
    #[error(
        "{file} has format {found}, but this release reads format {FORMAT}; run a later release"
    )]
    Format {
        /// The file.
        file: String,
        /// Its format.
        found: u32,
    },
}

/// A node's memory of its cluster, and the file that it is stored in.
#[derive(Debug)]
pub struct ClusterMemory {
    path: PathBuf,
    /// Held while the file is written, so that writes are in order.
    known: Mutex<Option<Remembered>>,
    /// The cluster of the keeper's store, if this node has one.
    store: Mutex<Option<ClusterIdentity>>,
    shown: watch::Sender<Option<ClusterIdentity>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    cluster: String,
    generation: u8,
    nonce: String,
    epoch: u64,
}

impl ClusterMemory {
    /// Loads the memory from a node's data folder.
    pub fn load(data: &Path) -> Result<Arc<Self>, MemoryError> {
        let path = data.join(FILE_NAME);
        let known = match fs::read_to_string(&path) {
            Ok(text) => Some(parse(&path, &text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(MemoryError::io(&path, source)),
        };
        Ok(Arc::new(ClusterMemory {
            path,
            shown: watch::Sender::new(known.map(|known| known.cluster)),
            known: Mutex::new(known),
            store: Mutex::default(),
        }))
    }

    fn known(&self) -> MutexGuard<'_, Option<Remembered>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered, or `None` if this node never took part in a cluster.
    pub fn get(&self) -> Option<Remembered> {
        *self.known()
    }

    /// Watches the cluster that this node shows to others: that of its keeper's store, or the
    /// remembered one if that is later or there is no store.
    pub fn shown(&self) -> watch::Receiver<Option<ClusterIdentity>> {
        self.shown.subscribe()
    }

    /// Sets the cluster of the keeper's store, or `None` if there is no store.
    pub fn show_store(&self, cluster: Option<ClusterIdentity>) {
        let known = self.known();
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = cluster;
        self.show(known.map(|known| known.cluster));
    }

    fn show(&self, known: Option<ClusterIdentity>) {
        let store = *self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = match (store, known) {
            (Some(store), Some(known)) if known.succeeds(&store) => Some(known),
            (store, known) => store.or(known),
        };
        self.shown.send_if_modified(|before| {
            let is_news = *before != shown;
            *before = shown;
            is_news
        });
    }

    /// Checks that this node may take part in a cluster that is in this epoch.
    pub fn admits(&self, cluster: &ClusterIdentity, epoch: u64) -> Result<(), ForeignCluster> {
        self.get()
            .map_or(Ok(()), |known| known.admits(cluster, epoch))
    }

    /// Records that this node takes part in an epoch of a cluster that it [admits](Self::admits).
    /// Returns when that is on disk.
    pub async fn remember(
        self: &Arc<Self>,
        cluster: ClusterIdentity,
        epoch: u64,
    ) -> Result<(), RememberError> {
        if self.get() == Some(Remembered { cluster, epoch }) {
            return Ok(());
        }
        let memory = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || memory.write(cluster, epoch));
        written.await.expect("writing a file does not panic")
    }

    fn write(&self, cluster: ClusterIdentity, epoch: u64) -> Result<(), RememberError> {
        let mut known = self.known();
        if let Some(known) = &*known {
            known.admits(&cluster, epoch)?;
        }
        let remembered = Remembered { cluster, epoch };
        if *known == Some(remembered) {
            return Ok(());
        }
        write_file(&self.path, &text(&remembered))
            .map_err(|source| MemoryError::io(&self.path, source))?;
        *known = Some(remembered);
        self.show(Some(cluster));
        Ok(())
    }
}

/// Why the cluster was not recorded. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RememberError {
    /// This node belongs to another cluster, generation or epoch.
    #[error(transparent)]
    Foreign(#[from] ForeignCluster),
    /// The file could not be written.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl MemoryError {
    fn io(path: &Path, source: io::Error) -> Self {
        let file = path.display().to_string();
        MemoryError::Io { file, source }
    }
}

fn parse(path: &Path, text: &str) -> Result<Remembered, MemoryError> {
    let damaged = |problem: String| MemoryError::Damaged {
        file: path.display().to_string(),
        problem,
    };
    let text: Text = toml::from_str(text).map_err(|error| damaged(error.message().to_owned()))?;
    if text.format != FORMAT {
        return Err(MemoryError::Format {
            file: path.display().to_string(),
            found: text.format,
        });
    }
    let nonce = u64::from_str_radix(&text.nonce, 16)
        .map_err(|_| damaged(format!("invalid nonce {:?}", text.nonce)))?;
    let id = text.cluster.parse();
    Ok(Remembered {
        cluster: ClusterIdentity {
            id: id.map_err(|error: soloist_core::cluster_identity::ClusterIdError| {
                damaged(error.to_string())
            })?,
            generation: Generation {
                number: text.generation,
                nonce,
            },
        },
        epoch: text.epoch,
    })
}

fn text(remembered: &Remembered) -> String {
    let Remembered { cluster, epoch } = remembered;
    let text = Text {
        format: FORMAT,
        cluster: cluster.id.to_string(),
        generation: cluster.generation.number,
        nonce: format!("{:016x}", cluster.generation.nonce),
        epoch: *epoch,
    };
    let fields = toml::to_string(&text).expect("numbers and strings can be written");
    format!("{HEADER}{fields}")
}

/// Creates the file, or overwrites it in place. It is on disk when this returns.
///
/// All texts are padded to the same length, one sector of a disk. So an existing file is
/// overwritten as a whole or not at all, and needs no more space: a node on a full disk keeps
/// taking part.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let padded = format!("{text:\n<FILE_BYTES$}");
    assert_eq!(padded.len(), FILE_BYTES, "a text is shorter than a sector");
    let there = fs::metadata(path).is_ok_and(|there| there.len() == FILE_BYTES as u64);
    if there {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(padded.as_bytes())?;
        return file.sync_data();
    }
    let folder = path.parent().expect("the file is in the data folder");
    fs::create_dir_all(folder)?;
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(padded.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(number: u8, nonce: u64) -> ClusterIdentity {
        ClusterIdentity {
            id: ClusterId::from_bytes([7; 16]),
            generation: Generation { number, nonce },
        }
    }

    #[tokio::test]
    async fn a_node_remembers_its_cluster_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let memory = ClusterMemory::load(&data).unwrap();
        assert_eq!(memory.get(), None);
        memory.remember(cluster(0, 1), 0).await.unwrap();
        memory.remember(cluster(0, 1), 41).await.unwrap();
        let file = data.join(FILE_NAME);
        assert_eq!(fs::metadata(file).unwrap().len(), FILE_BYTES as u64);
        let again = ClusterMemory::load(&data).unwrap();
        let epoch = 41;
        let cluster = cluster(0, 1);
        assert_eq!(again.get(), Some(Remembered { cluster, epoch }));
        assert_eq!(*again.shown().borrow(), Some(cluster));
    }

    #[test]
    fn the_file_keeps_its_form() {
        let remembered = Remembered {
            cluster: cluster(1, 0x0102_0304_0506_0708),
            epoch: 41,
        };
        let golden = "\
# The cluster that this node belongs to. Soloist writes this file; do not edit it.
# To join another cluster, stop the node and delete its data folder.
format = 1
cluster = \"07070707070707070707070707070707\"
generation = 1
nonce = \"0102030405060708\"
epoch = 41
";
        assert_eq!(text(&remembered), golden);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), golden).unwrap();
        let memory = ClusterMemory::load(folder.path()).unwrap();
        assert_eq!(memory.get(), Some(remembered));
    }

    #[tokio::test]
    async fn another_cluster_and_an_earlier_generation_or_epoch_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let memory = ClusterMemory::load(folder.path()).unwrap();
        memory.remember(cluster(1, 1), 41).await.unwrap();
        let before = memory.get();
        let other = fresh_identity();
        for (cluster, epoch) in [
            (other, 50),
            (cluster(0, 1), 50),
            (cluster(1, 2), 50),
            (cluster(1, 1), 40),
        ] {
            let refused = memory.remember(cluster, epoch).await;
            assert!(matches!(refused, Err(RememberError::Foreign(_))));
            assert_eq!(memory.get(), before);
            assert_eq!(ClusterMemory::load(folder.path()).unwrap().get(), before);
        }
        memory.remember(cluster(2, 9), 1).await.unwrap();
    }

    #[test]
    fn a_damaged_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let whole = text(&Remembered {
            cluster: cluster(0, 1),
            epoch: 3,
        });
        for bad in [
            String::new(),
            whole[..whole.len() - 12].to_owned(),
            whole.replace("format = 1", "format = 2"),
            whole.replace("0707", "xyz"),
        ] {
            fs::write(&path, &bad).unwrap();
            assert!(ClusterMemory::load(folder.path()).is_err(), "{bad}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
    }
}
