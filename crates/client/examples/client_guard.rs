//! A client of a node: a guard, and what to do when the lock is lost.
//!
//! ```sh
//! soloist up &
//! cargo run -p soloist-client --example client_guard
//! ```

use std::error::Error;
use std::time::Duration;

use soloist_client::{AcquireError, Client, Guard, Locks, Target};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(Target::from_env()?).await
}

async fn run(target: Target) -> Result<(), Box<dyn Error>> {
    // If this process dies, others wait 10 s for its locks.
    let client = Client::builder().ttl(Duration::from_secs(10));
    let client = client.connect(target).await?;

    let lock = client.lock("nightly")?.owner("the report");
    let guard = match lock.acquire_within(Duration::from_secs(5)).await {
        Ok(guard) => guard,
        Err(AcquireError::NotGranted { detail, .. }) => {
            println!("not now: {detail}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    println!(
        "inside, with fence {}, certainly for {:?}",
        guard.fence(),
        guard.valid_for()
    );
    tokio::select! {
        () = report() => {
            // An error means that the lock was lost, and that the work may have overlapped.
            guard.release().await?;
            println!("done");
        }
        loss = guard.lost() => println!("stopped working: {loss}"),
    }

    // A guard that is dropped is released in the background. Wait for that before exiting.
    drop(lock.try_acquire().await?);
    client.settle(Duration::from_secs(1)).await;
    Ok(())
}

async fn report() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[cfg(test)]
mod tests {
    use soloist_node::http;
    use soloist_node::local::{LocalCluster, LocalSettings};

    use super::*;

    #[tokio::test]
    async fn runs() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LocalSettings::new(1, folder.path());
        let cluster = LocalCluster::start(settings).await.unwrap();
        let server = http::serve(&cluster.nodes[0]).await.unwrap();
        run(Target::socket(server.socket())).await.unwrap();
        cluster.stop().await;
        server.stop().await;
    }
}
