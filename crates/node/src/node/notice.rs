//! What a node has to say in its log. Not said where it happens: there, everybody waits.

use tokio::sync::mpsc;

use crate::locks::LockName;

/// Something for the log.
pub(crate) enum Notice {
    /// This node takes part in another epoch.
    Epoch { epoch: u64, members: usize },
    /// Its lease ran out, and with it these were lost.
    Lapsed { lost: Vec<LockName> },
    /// Another node of its name is a member and alive.
    NameTaken,
}

/// How many lost locks are named.
const NAMED: usize = 8;

impl Notice {
    fn log(self) {
        match self {
            Notice::Epoch { epoch, members } => {
                tracing::info!(epoch, members, "taking part in the epoch");
            }
            Notice::Lapsed { lost } => {
                let named: Vec<_> = lost.iter().take(NAMED).map(LockName::as_str).collect();
                tracing::warn!(
                    holds = lost.len(),
                    locks = named.join(", "),
                    "cut off from the keepers for longer than the lease: all holds are lost, asking to be let in again"
                );
            }
            Notice::NameTaken => tracing::warn!(
                "a node of this name is a member and alive: this one gets in when the other one is gone; \
                 give each node its own name and certificate"
            ),
        }
    }
}

/// Where notices go until they are logged.
pub(crate) struct Notices {
    sender: mpsc::UnboundedSender<Notice>,
}

impl Notices {
    /// With the task that logs them.
    pub fn new() -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (sender, mut notices) = mpsc::unbounded_channel::<Notice>();
        let log = async move {
            while let Some(notice) = notices.recv().await {
                notice.log();
            }
        };
        (Notices { sender }, log)
    }

    pub fn post(&self, notice: Notice) {
        let _ = self.sender.send(notice);
    }
}
