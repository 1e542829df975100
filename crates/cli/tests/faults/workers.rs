//! Workers that enter and leave locks until they are stopped.

use std::sync::Arc;
use std::time::Duration;

use soloist_client::{AcquireError, Client, Guard, Lock, Locks, Target};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::referee::{Inside, Referee};

/// How long a worker stays inside, and then outside.
const INSIDE: Duration = Duration::from_millis(5);
const OUTSIDE: Duration = Duration::from_millis(20);
/// Short, because a worker may be stopped while a grant is on its way, and then nothing releases
/// it.
const TTL: Duration = Duration::from_secs(2);
/// Pause before a retry after a failed request.
const PAUSE: Duration = Duration::from_millis(20);

/// Workers, and the referee that checks them.
pub(crate) struct Workers {
    pub referee: Arc<Referee>,
    tasks: JoinSet<()>,
}

impl Workers {
    pub(crate) fn new() -> Self {
        Workers {
            referee: Arc::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Starts one worker per lock on each of these nodes, and returns their names.
    pub(crate) fn start(
        &mut self,
        cluster: &Cluster,
        nodes: &[usize],
        locks: &[&str],
    ) -> Vec<String> {
        let mut names = Vec::new();
        for &node in nodes {
            for lock in locks {
                let name = format!("n{node} {lock}");
                names.push(name.clone());
                let worker = Worker {
                    name,
                    lock: (*lock).to_owned(),
                    target: cluster.target(node),
                    referee: Arc::clone(&self.referee),
                };
                self.tasks.spawn(worker.work());
            }
        }
        names
    }

    /// Enters a lock on a node and stays inside.
    pub(crate) async fn enter(&self, cluster: &Cluster, node: usize, lock: &str) -> Inside {
        let name = format!("n{node} holder of {lock}");
        let client = cluster.client(node).await;
        let lock = client.lock(lock).unwrap().owner(&name);
        let guard = lock.acquire().await.unwrap();
        let inside = self.referee.enter(&name, guard);
        inside.expect("it does not come too late")
    }

    /// Stops all workers and fails if the referee found a violation.
    pub(crate) async fn end(mut self) {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            let stopped = ended.unwrap_err();
            assert!(stopped.is_cancelled(), "a worker failed: {stopped}");
        }
        let found = self.referee.violations();
        assert!(found.is_empty(), "{found:#?}");
        assert!(
            !self.referee.entries().is_empty(),
            "no worker was ever inside"
        );
    }
}

struct Worker {
    name: String,
    lock: String,
    target: Target,
    referee: Arc<Referee>,
}

impl Worker {
    /// Enters and leaves forever.
    async fn work(self) {
        loop {
            let client = Client::builder().ttl(TTL);
            if let Ok(client) = client.connect(self.target.clone()).await {
                let lock = client.lock(&self.lock).unwrap().owner(&self.name);
                while let Ok(()) = self.turn(&lock).await {
                    sleep(OUTSIDE).await;
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn turn(&self, lock: &Lock<Client>) -> Result<(), AcquireError> {
        let guard = lock.acquire().await?;
        let Some(inside) = self.referee.enter(&self.name, guard) else {
            return Ok(());
        };
        let loss = tokio::select! {
            () = sleep(INSIDE) => None,
            loss = inside.guard().lost() => Some(loss),
        };
        if let Some(loss) = loss {
            inside.lost(&loss);
            return Ok(());
        }
        // The release fails if the node is gone or was cut off.
        let _ = inside.leave().await;
        Ok(())
    }
}
