//! The thread that owns the database. Calls to it block, which would hold up async tasks.

use std::sync::mpsc;
use std::thread;

use redb::Database;
use tokio::sync::oneshot;

use super::StoreError;

type Job = Box<dyn FnOnce(&mut Holder) + Send>;

enum Message {
    Do(Job),
    Close(oneshot::Sender<()>),
}

struct Holder {
    database: Database,
    /// The first error. After it nothing more is tried: what is on disk is what was acknowledged.
    failed: Option<String>,
}

/// Why the store failed to do what was requested.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failure(String);

/// Handle of the thread. Dropping the last one closes the database.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    file: String,
    messages: mpsc::Sender<Message>,
}

impl Worker {
    /// Starts the thread, which opens the database first.
    pub(super) async fn start(
        file: String,
        open: impl FnOnce() -> Result<Database, StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (messages, inbox) = mpsc::channel();
        let (tell, opened) = oneshot::channel();
        thread::Builder::new()
            .name("keeper-store".to_owned())
            .spawn(move || match open() {
                Ok(database) => {
                    // The caller may have been cancelled. Then the inbox is closed too.
                    let _ = tell.send(Ok(()));
                    work(database, inbox);
                }
                Err(error) => drop(tell.send(Err(error))),
            })
            .map_err(|error| StoreError::io(&file, error))?;
        match opened.await {
            Ok(opened) => opened?,
            Err(_) => {
                return Err(StoreError::corrupt(&file, super::file::NONSENSE));
            }
        }
        Ok(Worker { file, messages })
    }

    /// Runs a job on the thread, after those before it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (tell, done) = oneshot::channel();
        let job: Job = Box::new(move |holder| {
            // If the caller was cancelled, the job is done all the same.
            let _ = tell.send(holder.run(job));
        });
        let file = &self.file;
        if self.messages.send(Message::Do(job)).is_err() {
            return Err(Failure(format!("the keeper's store {file} is closed")));
        }
        match done.await {
            Ok(result) => result
                .map_err(|problem| Failure(format!("the keeper's store {file} failed: {problem}"))),
            Err(_) => Err(Failure(format!(
                "the keeper's store {file} was closed, or the database panicked"
            ))),
        }
    }

    /// Closes the database, and returns when the file is released.
    pub(super) async fn close(&self) {
        let (tell, closed) = oneshot::channel();
        if self.messages.send(Message::Close(tell)).is_ok() {
            // If the thread has ended, the database is closed too.
            let _ = closed.await;
        }
    }
}

impl Holder {
    fn run<T>(
        &mut self,
        job: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, String> {
        if let Some(problem) = &self.failed {
            return Err(problem.clone());
        }
        job(&self.database).map_err(|error| {
            let problem = match &error {
                redb::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    format!("{error}; free disk space and restart the node")
                }
                error => format!("{error}; repair that and restart the node"),
            };
            self.failed = Some(problem.clone());
            problem
        })
    }
}

fn work(database: Database, inbox: mpsc::Receiver<Message>) {
    let mut holder = Holder {
        database,
        failed: None,
    };
    while let Ok(message) = inbox.recv() {
        match message {
            Message::Do(job) => job(&mut holder),
            Message::Close(tell) => {
                // In this order: once the caller knows that the database is closed, no job is
                // accepted.
                drop(holder);
                drop(inbox);
                // The caller may have been cancelled.
                let _ = tell.send(());
                return;
            }
        }
    }
}
