//! Why a keeper's store cannot be opened.

use std::io;

use soloist_api::NodeName;

/// Why a keeper's store cannot be opened. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An I/O error.
    #[error(
        "the keeper's store {file} cannot be used: {source}; \
         check its folder, its permissions and the disk"
    )]
    Io {
        /// The file.
        file: String,
        /// The error.
        source: io::Error,
    },
    /// Another process has it open.
    #[error(
        "the keeper's store {file} is in use by another process; stop that one, or give each node \
         its own data folder"
    )]
    Locked {
        /// The file.
        file: String,
    },
    /// The file is not a store.
    #[error(
        "{file} is not the store of a keeper: {problem}; \
         move it away, or give this node another data folder"
    )]
    NotAStore {
        /// The file.
        file: String,
        /// What it is instead.
        problem: String,
    },
    /// The store has a format that this release cannot read.
    #[error(
        "the keeper's store {file} has format {found}, but this release reads formats {oldest} to \
         {newest}; run a release that reads it"
    )]
    Version {
        /// The file.
        file: String,
        /// Its format.
        found: u32,
        /// The oldest format that can be read.
        oldest: u32,
        /// The newest format that can be read.
        newest: u32,
    },
    /// The store belongs to another node.
    #[error(
        "the keeper's store {file} belongs to the node {found}, but this node is {expected}: a \
         keeper must not use another one's store; give each node its own data folder"
    )]
    Owner {
        /// The file.
        file: String,
        /// Its owner.
        found: NodeName,
        /// The node that tried to open it.
        expected: NodeName,
    },
    /// There is a store already.
    #[error(
        "the keeper's store {file} already exists, and a keeper must not lose its votes; nothing \
         was changed"
    )]
    Exists {
        /// The file.
        file: String,
    },
    /// There is no store.
    #[error("keeper's store {file} not found: check the data folder")]
    Missing {
        /// The file.
        file: String,
    },
    /// The keeper of this store cannot continue alone.
    #[error("the keeper's store {file} cannot be recovered: {problem}")]
    Unrecoverable {
        /// The file.
        file: String,
        /// The reason.
        problem: String,
    },
    /// The content is damaged.
    #[error(
        "the keeper's store {file} is damaged: {problem}; nothing was changed in it. Demote this \
         node, move the file away, and promote the node again; do not restart it with an empty \
         store instead, because it could then break its votes"
    )]
    Corrupt {
        /// The file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
}

impl StoreError {
    pub(super) fn io(file: &str, source: io::Error) -> Self {
        let file = file.to_owned();
        StoreError::Io { file, source }
    }

    pub(super) fn corrupt(file: &str, problem: impl ToString) -> Self {
        StoreError::Corrupt {
            file: file.to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(super) fn not_a_store(file: &str, problem: &str) -> Self {
        StoreError::NotAStore {
            file: file.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// Converts an error of the database. After an I/O error the file may still be intact; any
    /// other error means damage.
    pub(super) fn database(file: &str, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => StoreError::Locked {
                file: file.to_owned(),
            },
            redb::Error::Io(source) => StoreError::io(file, source),
            error => StoreError::corrupt(file, error),
        }
    }
}
