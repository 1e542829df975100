//! Requests that may not wait: the node searches for others that were there before.

use std::collections::HashMap;
use std::sync::Arc;

use soloist_api::LockName;
use soloist_core::locks::TRY_MAX;
use soloist_core::sessions::SessionId;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::Api;
use crate::Moment;

/// Maximum number of searches of a connection at a time. The others wait for their turn, within the
/// time that a request has.
const SEARCHES_MAX: usize = 64;

/// The requests of a connection that may not wait and are not decided.
pub(super) struct Attempts {
    api: Api,
    session: SessionId,
    places: Arc<Semaphore>,
    /// Ends the search for each of them.
    undecided: HashMap<u64, CancellationToken>,
}

impl Attempts {
    pub(super) fn new(api: Api, session: SessionId) -> Self {
        Attempts {
            api,
            session,
            places: Arc::new(Semaphore::new(SEARCHES_MAX)),
            undecided: HashMap::new(),
        }
    }

    /// Denies a request as soon as another one is found that was there before `asked`. The search
    /// does not end with the connection: the request must not begin to wait because that breaks.
    pub(super) fn look_for_others(&mut self, n: u64, lock: LockName, asked: Moment) {
        let (api, session) = (self.api.clone(), self.session);
        let places = Arc::clone(&self.places);
        let decided = CancellationToken::new();
        self.undecided.insert(n, decided.clone());
        tokio::spawn(async move {
            let search = async {
                let _place = places.acquire().await;
                api.node.wait_for_earlier_request(&lock, asked).await;
                if let Some(mut core) = api.node.shared.living() {
                    core.refuse_try(&api.node.shared, session, n);
                }
            };
            tokio::select! {
                () = decided.cancelled() => {}
                () = api.stopping.cancelled() => {}
                // After that, it times out.
                _ = timeout(TRY_MAX, search) => {}
            }
        });
    }

    /// Ends the search for a request that was granted, denied or cancelled.
    pub(super) fn decided(&mut self, n: u64) {
        if let Some(decided) = self.undecided.remove(&n) {
            decided.cancel();
        }
    }
}
