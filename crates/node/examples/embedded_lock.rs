//! A program with a node inside: it starts the node, holds a lock, and stops the node.
//!
//! ```sh
//! soloist init --nodes a=127.0.0.1:7401
//! cargo run -p soloist-node --example embedded_lock -- soloist-cluster/a/soloist.toml
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use soloist_node::config::Config;
use soloist_node::{Guard, Locks, Node};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or("soloist.toml".to_owned());
    run(Path::new(&file)).await
}

async fn run(file: &Path) -> Result<(), Box<dyn Error>> {
    let node = Node::start(Config::load(file)?).await?;
    node.ready().await;
    println!("{} is a member, in epoch {:?}", node.name(), node.epoch());

    let lock = node.lock("nightly")?.owner("the report");
    let Some(guard) = lock.try_acquire().await? else {
        println!("another node makes the report");
        return Ok(());
    };
    println!(
        "inside, with fence {}, certainly for {:?}",
        guard.fence(),
        guard.valid_for()
    );
    tokio::select! {
        () = report() => guard.release().await?,
        loss = guard.lost() => println!("stopped working: {loss}"),
    }

    // The node leaves in good order: others need not wait for its lease.
    node.stop(Duration::from_secs(30)).await;
    Ok(())
}

async fn report() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A cluster of one node, as `soloist init` makes it, but without TLS.
    #[tokio::test]
    async fn runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("soloist.toml");
        let address = soloist_testing::free::address();
        let text = format!(
            "name = \"a\"\naddress = \"{address}\"\ninsecure = true\n\
             [keepers]\na = \"{address}\"\n"
        );
        fs::write(&file, text).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(
            folder.path().join("data").join(soloist_node::FIRST_START),
            "",
        )
        .unwrap();
        run(&file).await.unwrap();
    }
}
