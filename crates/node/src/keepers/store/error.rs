//! Why a keeper's store cannot be opened.

use std::io;

use soloist_api::NodeName;

/// Why a keeper's store cannot be opened. The file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses.
    #[error(
        "the keeper's store {file} cannot be used: {source}; \
         check its folder, its permissions and the disk"
    )]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else has it.
    #[error(
        "the keeper's store {file} is in use by another process; \
         stop that one, or give each node a data folder of its own"
    )]
    Locked {
        /// The file.
        file: String,
    },
    /// Some other file.
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
    /// A store of another version.
    #[error(
        "the keeper's store {file} has format {found}, and this release reads formats {oldest} to {newest}; \
         run a release that reads it"
    )]
    Version {
        /// The file.
        file: String,
        /// The format it has.
        found: u32,
        /// The oldest format that can be read.
        oldest: u32,
        /// The newest format that can be read.
        newest: u32,
    },
    /// A store of another node.
    #[error(
        "the keeper's store {file} belongs to the node {found}, and this node is {expected}: \
         a keeper must never go on with another one's promises; give each node its own data folder"
    )]
    Owner {
        /// The file.
        file: String,
        /// Whose it is.
        found: NodeName,
        /// Who wants to open it.
        expected: NodeName,
    },
    /// There is a store already.
    #[error(
        "there is a keeper's store {file} already: \
         a keeper must not forget its promises; nothing was changed"
    )]
    Exists {
        /// The file.
        file: String,
    },
    /// No store.
    #[error("there is no keeper's store {file}: check the data folder")]
    Missing {
        /// The file.
        file: String,
    },
    /// A store that its keeper cannot go on with alone.
    #[error("the keeper's store {file} cannot be recovered: {problem}")]
    Unrecoverable {
        /// The file.
        file: String,
        /// Why not.
        problem: String,
    },
    /// What was written is not what is read.
    #[error(
        "the keeper's store {file} is damaged: {problem}; nothing was changed in it. \
         Demote this node, move the file away, and promote the node again: with an empty store and without \
         that, it could break promises that it gave"
    )]
    Corrupt {
        /// The file.
        file: String,
        /// What is wrong.
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

    /// What the database says of a file. Only an error of the system leaves hope that the file is whole.
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
