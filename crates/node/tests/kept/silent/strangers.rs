//! A process that opens connections without identifying itself. It is a separate process, so that
//! it shares neither threads nor the limit of open files with the nodes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::Address;
use soloist_testing::client_hello::half_of_client_hello;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::TIMEOUT;

/// Environment variable with the [`Orders`] of the strangers' process.
const STRANGERS: &str = "SOLOIST_TEST_STRANGERS";

/// How often the strangers report the number of connections that they have opened.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// A connection that was closed is opened again after this time. With thousands of connections this
/// pause makes no difference: one thread opens them as fast as it can.
const PAUSE: Duration = Duration::from_millis(10);

/// Instructions for the strangers' process.
#[derive(Serialize, Deserialize)]
struct Orders {
    addresses: Vec<String>,
    connections: usize,
    manner: Manner,
}

/// What strangers send.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Manner {
    Silent,
    HalfOfClientHello,
}

impl Manner {
    fn bytes(self) -> Vec<u8> {
        match self {
            Manner::Silent => Vec::new(),
            Manner::HalfOfClientHello => half_of_client_hello(),
        }
    }
}

/// Handle of the strangers' process, which is killed when this is dropped.
pub(super) struct Strangers {
    opened: watch::Receiver<usize>,
    process: Child,
}

impl Strangers {
    /// Opens this many connections to each address, and reopens each a moment after it was closed.
    /// Returns when as many as these were opened in total.
    pub(super) async fn start(addresses: &[Address], connections: usize, manner: Manner) -> Self {
        let all = addresses.len() * connections;
        let addresses: Vec<_> = addresses.iter().map(Address::to_string).collect();
        let orders = Orders {
            addresses,
            connections,
            manner,
        };
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "silent::strangers::process", "--nocapture"])
            .env(STRANGERS, serde_json::to_string(&orders).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tell, opened) = watch::channel(0);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(count) = line.strip_prefix("opened ") {
                    tell.send_replace(count.parse().unwrap());
                }
            }
        });
        let mut strangers = Strangers { opened, process };
        let are_all = |opened: &usize| *opened >= all;
        let waiting = timeout(TIMEOUT, strangers.opened.wait_for(are_all));
        let is_done = matches!(waiting.await, Ok(Ok(_)));
        assert!(is_done, "{} of {all} were opened", strangers.opened());
        strangers
    }

    /// Number of connections opened so far.
    pub(super) fn opened(&self) -> usize {
        *self.opened.borrow()
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test by itself: the process that [`Strangers`] starts. It exits when its standard input is
/// closed.
#[tokio::test]
async fn process() {
    let Ok(orders) = std::env::var(STRANGERS) else {
        return;
    };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    soloist_node::files::raise_limit();
    let bytes: Arc<[u8]> = orders.manner.bytes().into();
    let opened = Arc::<AtomicUsize>::default();
    for address in &orders.addresses {
        for _ in 0..orders.connections {
            let (address, bytes, opened) = (address.clone(), bytes.clone(), opened.clone());
            tokio::spawn(async move {
                loop {
                    if let Ok(mut tcp) = TcpStream::connect(&address).await {
                        opened.fetch_add(1, Ordering::Relaxed);
                        let _ = tcp.write_all(&bytes).await;
                        // The node sends nothing, so this returns when the node closes the
                        // connection.
                        let _ = tcp.read_to_end(&mut Vec::new()).await;
                    }
                    sleep(PAUSE).await;
                }
            });
        }
    }
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    loop {
        sleep(TELL_EVERY).await;
        println!("opened {}", opened.load(Ordering::Relaxed));
    }
}
