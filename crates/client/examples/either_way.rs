//! One program, written once: it does its work under a lock, with a node inside or as a client of a
//! node elsewhere.
//!
//! ```sh
//! cargo run -p soloist-client --example either_way
//! ```

use std::error::Error;

use soloist_client::{Client, Fence, Locks, Target};
use soloist_node::http;
use soloist_node::local::{LocalCluster, LocalSettings};

/// The program. It does not know where its locks come from.
async fn program(locks: impl Locks) -> Result<(), Box<dyn Error>> {
    let rows = locks.lock("nightly")?.with(report).await?;
    println!("wrote {rows} rows");
    Ok(())
}

async fn report(fence: Fence) -> u64 {
    println!("inside, with fence {fence}");
    tokio::task::yield_now().await;
    3
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let cluster = LocalCluster::start(LocalSettings::new(3, folder.path())).await?;
    let server = http::serve(&cluster.nodes[1]).await?;

    // One line decides: a node in this process, or a client of a node.
    program(cluster.nodes[0].clone()).await?;
    program(Client::connect(Target::socket(server.socket())).await?).await?;

    cluster.stop().await;
    server.stop().await;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
