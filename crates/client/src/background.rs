//! Requests that are sent in the background: what a dropped guard or a dropped request leaves to be said.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::Client;

/// Counts the requests that are under way.
#[derive(Default)]
pub(crate) struct Background(watch::Sender<usize>);

/// Counts one down when it is dropped, also with a runtime that is shut down.
struct UnderWay(Arc<Background>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Client {
    /// Sends something that nobody waits for.
    pub(crate) fn in_background(&self, send: impl Future<Output = ()> + Send + 'static) {
        self.background.0.send_modify(|count| *count += 1);
        let under_way = UnderWay(Arc::clone(&self.background));
        self.runtime.spawn(async move {
            send.await;
            drop(under_way);
        });
    }

    /// Waits until dropped requests are cancelled and dropped guards released, but no longer than this. For programs that
    /// are about to end: what they do not say, the node learns by timeouts.
    pub async fn settle(&self, within: Duration) {
        let mut under_way = self.background.0.subscribe();
        let _ = timeout(within, under_way.wait_for(|count| *count == 0)).await;
    }
}
