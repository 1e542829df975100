//! What a node's tasks, its links and its users share.

use std::sync::{Mutex, MutexGuard, OnceLock};

use soloist_algorithms::NodeId;
use soloist_api::Event;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use super::core::Core;
use super::inquiry::{self, Inquiries};
use super::untold::Untold;
use crate::config::Config;
use crate::links::{Handler, LinkChange, Links};
use crate::locks::wire;
use crate::metrics::Metrics;

pub(crate) struct Shared {
    pub config: Config,
    core: Mutex<Core>,
    /// Set once, right after it is made: links need this to report to.
    pub links: OnceLock<Links>,
    pub inquiries: Inquiries,
    pub events: broadcast::Sender<Event>,
    pub metrics: Metrics,
    /// Something is due earlier than the timer thinks.
    pub alarm: Notify,
    pub no_hold_left: Notify,
    pub untold: Untold,
    /// It lets nobody new in.
    pub stopping: CancellationToken,
    pub stopped: CancellationToken,
}

/// How many events a watcher may be behind.
const EVENTS_MAX: usize = 4096;

impl Shared {
    pub fn new(config: Config, core: Core) -> Self {
        Shared {
            metrics: Metrics::new(config.metrics.lock_names),
            config,
            core: Mutex::new(core),
            links: OnceLock::new(),
            inquiries: Inquiries::default(),
            events: broadcast::Sender::new(EVENTS_MAX),
            alarm: Notify::new(),
            no_hold_left: Notify::new(),
            untold: Untold::default(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }

    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect("no thread panicked in it")
    }

    pub fn name(&self) -> &str {
        self.config.name.as_str()
    }

    /// The name of a node of the roster.
    pub fn name_of(&self, node: NodeId) -> &str {
        let name = self.config.nodes.name(node);
        name.expect("a node of the roster").as_str()
    }

    pub fn links(&self) -> &Links {
        // They may report something before the node that starts them has put them here.
        self.links.wait()
    }

    pub fn send(&self, to: NodeId, frame: &[u8]) {
        // A link that is full cannot keep its promise: locks that needed this message may stand still. The links count
        // it and tell; not here, where the lock table waits.
        let _ = self.links().send(to.index(), frame);
    }
}

impl Handler for Shared {
    fn receive(&self, from: usize, frames: &mut dyn Iterator<Item = &[u8]>) -> Result<(), String> {
        let from = NodeId::from_index(from);
        for frame in frames {
            match frame.first() {
                Some(&kind) if wire::is_lock(kind) => {
                    let received = self.core().receive(self, from, frame);
                    received.map_err(|error| error.to_string())?;
                }
                _ => inquiry::receive(self, from, frame)?,
            }
        }
        Ok(())
    }

    fn link_changed(&self, peer: usize, change: LinkChange) {
        let peer = self.name_of(NodeId::from_index(peer));
        match change {
            LinkChange::Up => tracing::info!(peer, "link up"),
            LinkChange::Down { reason } => tracing::warn!(peer, reason, "link down"),
            LinkChange::Refused { reason } => tracing::warn!(peer, reason, "link refused"),
            LinkChange::Full => tracing::error!(peer, "link full: messages are not sent"),
        }
    }
}
