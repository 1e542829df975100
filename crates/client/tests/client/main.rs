//! Tests of the client against real nodes.

mod blocking;
mod connecting;
mod ending;
mod guards;
mod lock_api;
mod looking;
mod moving;
mod resending;
mod spinning;

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use soloist_client::{Client, ClientGuard, Locks, Target};
use soloist_core::epochs::lease::Lease;
use soloist_testing::served::Served;
use soloist_testing::wait::within;

/// Longer than anything here takes, so that a test fails instead of waiting forever.
const TIMEOUT: Duration = Duration::from_secs(30);

struct Nodes(Served);

impl Deref for Nodes {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.0
    }
}

impl DerefMut for Nodes {
    fn deref_mut(&mut self) -> &mut Served {
        &mut self.0
    }
}

impl Nodes {
    async fn start(count: usize) -> Self {
        Nodes(Served::start(count).await)
    }

    /// Starts nodes that are not evicted meanwhile, however busy the machine is.
    async fn start_steady(count: usize) -> Self {
        let lease = Lease {
            length: Duration::from_secs(60),
            ..Lease::default()
        };
        Nodes(Served::start_with(count, lease).await)
    }

    fn target(&self, node: usize) -> Target {
        Target::socket(self.socket(node))
    }

    async fn client(&self, node: usize) -> Client {
        Client::connect(self.target(node)).await.unwrap()
    }

    async fn client_with_ttl(&self, node: usize, ttl: Duration) -> Client {
        let client = Client::builder().ttl(ttl);
        client.connect(self.target(node)).await.unwrap()
    }
}

async fn waiting(client: &Client, lock: &str) -> u64 {
    client.lock_info(lock).await.unwrap().waiting
}

/// Polls until `condition` holds.
async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    within(TIMEOUT, what, condition).await;
}

/// Awaits `future`, and panics if it takes too long.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(output) => output,
        Err(_) => panic!("timed out: {what}"),
    }
}

async fn held(client: &Client, lock: &str) -> ClientGuard {
    let lock = client.lock(lock).unwrap();
    soon("the lock is granted", lock.acquire()).await.unwrap()
}
