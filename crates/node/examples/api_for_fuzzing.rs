//! Three nodes for fuzzing the HTTP API. The first node serves it on a free TCP port of this
//! machine; its address is printed. Exits when standard input is closed. Holds expire after a
//! fraction of a second, so no request waits long.

use std::io::Read;
use std::time::Duration;

use soloist_api::NodeName;
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::config::{Api, ApiTcp, Config, Members, Metrics, Nodes, Security, Ttl};
use soloist_node::{FIRST_START, Node, http};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("soloist-fuzz-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut listeners = Vec::new();
    let mut roster = Vec::new();
    for name in ["n1", "n2", "n3"] {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let name: NodeName = name.parse()?;
        roster.push((name.clone(), listener.local_addr()?.into()));
        listeners.push((name, listener));
    }
    let keepers = Nodes::new(roster)?;
    let rules = Rules::for_any(&RuleSettings::default(), &[])?;
    std::fs::create_dir(folder.join("n1"))?;
    std::fs::write(folder.join("n1").join(FIRST_START), "")?;
    let mut running = Vec::new();
    for (name, listener) in listeners {
        let config = Config {
            members: Members {
                address: listener.local_addr()?.into(),
                keepers: keepers.clone(),
                data: folder.join(name.as_str()),
                lease: Lease::default(),
            },
            listen: None,
            security: Security::Insecure,
            rules: rules.clone(),
            ttl: Ttl {
                default: Duration::from_millis(50),
                max: Duration::from_millis(100),
            },
            api: Api {
                tcp: Some(ApiTcp {
                    listen: "127.0.0.1:0".parse()?,
                    token_file: None,
                    tls: None,
                }),
                ..Api::at(folder.join(format!("{name}.sock")))
            },
            limits: Limits::default(),
            metrics: Metrics::default(),
            io_threads: Config::IO_THREADS,
            name,
        };
        let node = Node::start_on(config, None, listener).await?;
        let server = http::serve(&node).await?;
        running.push((node, server));
    }
    for (node, _) in &running {
        node.ready().await;
    }
    let address = running[0].1.addresses().tcp.ok_or("no TCP address")?;
    println!("http://{address}");
    let input = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(input).await??;
    for (node, server) in running {
        node.stop(Duration::ZERO).await;
        server.stop().await;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
