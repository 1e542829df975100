//! A process that opens connections and shows nothing. It is one of its own, so that the nodes share
//! neither their threads nor their limit of open files with it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::PATIENCE;
use crate::client_hello::half_of_client_hello;

/// Set for the process of the strangers: its [`Orders`].
const STRANGERS: &str = "SOLOIST_TEST_STRANGERS";

/// The strangers say this often how many connections they have opened.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// A connection that was closed is opened again after this time. It makes no difference if there are
/// thousands: they come as fast as one thread can open them.
const PAUSE: Duration = Duration::from_millis(10);

/// What strangers do.
#[derive(Serialize, Deserialize)]
struct Orders {
    addresses: Vec<String>,
    connections: usize,
    manner: Manner,
}

/// What strangers send.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Manner {
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

/// The process of the strangers. It ends with this.
pub struct Strangers {
    opened: watch::Receiver<usize>,
    process: Child,
}

impl Strangers {
    /// Opens this many connections to each address, and each again a while after it was closed.
    /// Returns when all were opened once.
    pub async fn start(addresses: &[Address], connections: usize, manner: Manner) -> Self {
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
        let waiting = timeout(PATIENCE, strangers.opened.wait_for(are_all));
        let is_done = matches!(waiting.await, Ok(Ok(_)));
        assert!(is_done, "{} of {all} were opened", strangers.opened());
        strangers
    }

    /// Number of connections opened so far.
    pub fn opened(&self) -> usize {
        *self.opened.borrow()
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test by itself: the process that [`Strangers`] starts. It ends when its input does.
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
                        // It answers nothing, so this ends when the node has closed it.
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
