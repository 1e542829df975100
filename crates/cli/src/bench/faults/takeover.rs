//! Workload: time until the next entry when the holder's node dies or leaves.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;
use soloist_bench::{Bound, Measured, Samples};
use soloist_client::{Client, Guard, Locks};
use soloist_core::epochs::lease::Lease;

use crate::processes::{Processes, Settings};

const LOCK: &str = "bench";
/// The node that is stopped. It is not a keeper.
const VICTIM: usize = 5;
const NODES: usize = 5;

/// SIGKILL to the holder's node.
pub(super) async fn killed(name: String, lease: Duration, times: usize) -> Result<Measured> {
    let what = "kill -9 of the holder's node to the next entry";
    let mut measured = again_and_again(name, what, lease, times, Signal::KILL).await?;
    measured.bound = Some(Bound {
        what: "lease + 0.5 s".to_owned(),
        us: (lease + Duration::from_millis(500)).as_secs_f64() * 1e6,
    });
    Ok(measured)
}

/// SIGTERM to the holder's node, without a drain. The holder releases the lock as soon as it is
/// told.
pub(super) async fn leaving(times: usize) -> Result<Measured> {
    let what = "SIGTERM to the holder's node to the next entry";
    let lease = Lease::default().length;
    let name = super::LEAVE.to_owned();
    let mut measured = again_and_again(name, what, lease, times, Signal::TERM).await?;
    measured.bound = Some(Bound {
        what: "100 ms".to_owned(),
        us: 100_000.0,
    });
    Ok(measured)
}

async fn again_and_again(
    name: String,
    what: &'static str,
    lease: Duration,
    times: usize,
    signal: Signal,
) -> Result<Measured> {
    let settings = Settings {
        nodes: NODES,
        lease,
        ..Settings::default()
    };
    let mut processes = Processes::start(settings).await?;
    let mut samples = Samples::default();
    let begin = Instant::now();
    for turn in 0..times {
        let holder = Client::connect(processes.target(VICTIM)).await?;
        let guard = holder.lock(LOCK)?.acquire().await?;
        let holds = tokio::spawn(async move {
            guard.lost().await;
            guard.release().await
        });
        let next = Client::connect(processes.target(1)).await?;
        let next = next.lock(LOCK)?;
        let waiter = tokio::spawn(async move {
            let guard = next.acquire().await?;
            let entered = Instant::now();
            guard.release().await?;
            anyhow::Ok(entered)
        });
        // The kill comes at an arbitrary time after the last renewal, as in production. Multiples
        // of the golden ratio spread these times evenly.
        let pause = lease.mul_f64((0.618 * turn as f64).fract());
        tokio::time::sleep(pause.max(Duration::from_millis(50))).await;
        let signalled = Instant::now();
        processes.signal(VICTIM, signal)?;
        let entered = waiter.await??;
        samples.add(entered.saturating_duration_since(signalled));
        holds.abort();
        processes.ended(VICTIM)?;
        processes.start_node(VICTIM)?;
        processes.takes_part(VICTIM, NODES).await?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Measured::new(name, what, seconds, &samples))
}
