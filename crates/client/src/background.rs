//! Requests sent in the background when a guard or a lock request is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::Client;

/// Counts the background requests in progress.
#[derive(Default)]
pub(crate) struct Background(watch::Sender<usize>);

/// Decrements the counter when dropped, also if the runtime drops the task at shutdown.
struct UnderWay(Arc<Background>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Client {
    /// Spawns a request whose result nobody waits for.
    pub(crate) fn in_background(&self, send: impl Future<Output = ()> + Send + 'static) {
        self.background.0.send_modify(|count| *count += 1);
        let under_way = UnderWay(Arc::clone(&self.background));
        self.runtime.spawn(async move {
            send.await;
            drop(under_way);
        });
    }

    /// Waits until all dropped requests are cancelled and all dropped guards are released, but not
    /// longer than `within`. Call this before the program exits: if the node does not receive these
    /// messages, other clients wait until its timeouts expire.
    pub async fn settle(&self, within: Duration) {
        let mut under_way = self.background.0.subscribe();
        let _ = timeout(within, under_way.wait_for(|count| *count == 0)).await;
    }
}
