//! Settings of a client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist_api::compiled_here;
use tokio::runtime::Handle;

use super::{Client, Current, Inner};
use crate::acquire::myself;
use crate::session::{Session, Settings};
use crate::{ClientError, Target};

/// Maximum time to spin. The session is locked meanwhile.
const SPIN_MAX: Duration = Duration::from_millis(1);

/// Settings of a client, see [`Client::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing happens until `connect` is called"]
pub struct ClientBuilder {
    ttl: Option<Duration>,
    ends_with_process: bool,
    spin: Duration,
}

impl ClientBuilder {
    /// Sets the time to live of the client's session, which all its holds share. The session is
    /// renewed in the background; if the process dies, others wait this long for its locks.
    /// Defaults to the node's setting. Nodes refuse requests with a time to live that is longer
    /// than they allow.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Whether the node ends the client's session as soon as this process has ended, so that others
    /// need not wait for the time to live. Works over Unix sockets only: nodes refuse requests with
    /// it elsewhere. Defaults to false.
    pub fn ends_with_process(mut self, ends: bool) -> Self {
        self.ends_with_process = ends;
        self
    }

    /// How long a caller looks for its answer before its thread sleeps. Defaults to zero: it sleeps
    /// at once.
    ///
    /// An uncontended acquisition takes some tens of microseconds, and waking a thread is a large
    /// part of that. If the machine has a core to spare, spinning for as long can save it:
    /// [`Client::spin_hits`] counts how often it did. The client spins only while one task waits
    /// for an answer, and rarely if answers come later than that. Meanwhile it blocks its thread,
    /// so spin in a runtime that has nothing else to do. At most 1 ms, because the client renews
    /// nothing while it spins.
    pub fn spin(mut self, limit: Duration) -> Self {
        self.spin = limit.min(SPIN_MAX);
        self
    }

    /// Connects to a node, see [`Client::connect`].
    pub fn connect(
        self,
        target: Target,
    ) -> impl Future<Output = Result<Client, ClientError>> + Send {
        compiled_here(self.connect_to(target))
    }

    async fn connect_to(self, target: Target) -> Result<Client, ClientError> {
        let (nodes, node) = Client::find(&target).await?;
        let settings = Settings {
            name: myself(),
            ttl: self.ttl,
            ends_with_process: self.ends_with_process,
            has_others: nodes.len() > 1,
            spin: self.spin,
        };
        let session = Session::new(Arc::clone(&nodes[node]), &settings, None);
        let inner = Inner {
            nodes,
            current: Mutex::new(Current {
                node,
                session,
                left: Vec::new(),
            }),
            runtime: Handle::current(),
            settings,
        };
        Ok(Client {
            inner: Arc::new(inner),
        })
    }
}
