//! `soloist bench --api`: clients of node processes, beside what the machine can do in the same
//! run.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use soloist_bench::{Client, Cores, Failure, Placement, Report, System, Usage, workloads};
use soloist_client::{ClientGuard, Guard, Locks};
use soloist_core::epochs::lease::Lease;

use super::Args;
use crate::processes::{Processes, Settings};

/// Time for the last releases to arrive.
const SETTLE: Duration = Duration::from_secs(5);

/// The workloads, for the help.
pub(super) fn explanation() -> String {
    "\
With --api, for each placement (clients and nodes on one core, on two cores,
or where the scheduler puts them):
  unix, tcp           floors: one byte to another process and back, blocking
  three hops          floor: one byte through two processes and back
  1 client            acquire and release; the release is not awaited
  1 client, release awaited
  8 clients, 8 locks  each client has a lock of its own
  5 clients, 1 lock   and the hand-over: from a release to the next entry on
                      another node
  27 clients, 1 lock
  8 clients, 1000 locks
                      each client takes another lock each time

The nodes are processes that this command starts, and clients use their Unix
sockets. Each workload runs several times; the table shows the median, and
the CPU time and context switches per acquisition of clients and of nodes."
        .to_owned()
}

pub(super) async fn measure(args: &Args, report: &mut Report) -> Result<()> {
    let cores = Cores::find().context("cannot find out which cores may be used")?;
    for placement in workloads::placements(report, &cores) {
        let pinned = "cannot pin a thread to a core";
        workloads::measure_floors(report, &cores, placement)?;
        cores.pin_as_server(placement).context(pinned)?;
        let processes = Processes::start(Settings {
            nodes: args.nodes.into(),
            lease: Lease::default().length,
            algorithm: &args.algorithm,
            max_local_turns: args.max_local_turns,
            io_threads: args.io_threads.into(),
        });
        let cluster = Cluster {
            processes: processes.await?,
            max_local_turns: args.max_local_turns,
            spin: Duration::from_micros(args.spin.into()),
        };
        cores.pin_as_client(placement).context(pinned)?;
        workloads::measure(report, &cluster, placement)?;
        cores.pin_as_client(Placement::Free).context(pinned)?;
    }
    Ok(())
}

/// Node processes.
struct Cluster {
    processes: Processes,
    max_local_turns: u32,
    spin: Duration,
}

impl System for Cluster {
    type Client = Session;

    fn servers(&self) -> usize {
        self.processes.len()
    }

    async fn connect(&self, server: usize) -> Result<Session, Failure> {
        let target = self.processes.target(server + 1);
        let settings = soloist_client::Client::builder().spin(self.spin);
        let client = settings.connect(target).await?;
        Ok(Session { client, held: None })
    }

    fn usage(&self) -> io::Result<Usage> {
        self.processes.usage()
    }

    fn starved(&self, entries: usize, hand_overs: usize) -> Option<f64> {
        match self.servers() {
            1 => None,
            _ => super::contention::starved(entries, hand_overs, self.max_local_turns),
        }
    }
}

/// A client, and the lock that it holds.
struct Session {
    client: soloist_client::Client,
    held: Option<ClientGuard>,
}

impl Client for Session {
    async fn acquire(&mut self, lock: &str) -> Result<(), Failure> {
        self.held = Some(self.client.lock(lock)?.acquire().await?);
        Ok(())
    }

    async fn release(&mut self, is_awaited: bool) -> Result<(), Failure> {
        if let Some(guard) = self.held.take()
            && is_awaited
        {
            guard.release().await?;
        }
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), Failure> {
        self.client.settle(SETTLE).await;
        Ok(())
    }
}
