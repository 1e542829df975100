//! `soloist bench --faults`: the cost of fault tolerance, and how long faults are felt.

mod change;
mod renewals;
mod takeover;

use std::time::Duration;

use anyhow::Result;

use super::{Report, floors};

/// The default lease and the shortest one.
const LEASES: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(500)];

pub const EXPLANATION: &str = "\
With --faults:
  tls                       a floor, as above
  takeover                  kill -9 of a holder's node, until the next one is inside; beside the lease
  orderly leave             SIGTERM to a holder's node, until the next one is inside
  change of epoch           how long locks stand still on a node when one of 25 leaves, while 10,000 locks are held
  renewals                  words between nodes and the keepers' leader, a second: of real nodes, and of 1,000 simulated ones";

/// Names of all workloads.
pub fn workloads() -> Vec<String> {
    let others = ["tls", LEAVE, CHANGE].map(str::to_owned);
    let takeovers = LEASES.map(takeover_name);
    let renewals = [(5, true), (60, true)].into_iter();
    let renewals = renewals.chain(SIMULATED.map(|nodes| (nodes, false)));
    let renewals = renewals.map(|(nodes, is_real)| renewals::name(nodes, is_real));
    let all = others.into_iter().chain(takeovers).chain(renewals);
    all.collect()
}

const LEAVE: &str = "orderly leave";
const CHANGE: &str = "change of epoch";
const SIMULATED: [usize; 3] = [5, 60, 1000];

fn takeover_name(lease: Duration) -> String {
    format!("takeover, lease {lease:?}")
}

pub(super) async fn measure(report: &mut Report<'_>) -> Result<()> {
    let quick = report.args.quick;
    let times = |full: usize| if quick { full.div_ceil(5) } else { full };
    let rounds = |full: usize| if quick { full / 10 } else { full };
    report.add(floors::tls(rounds(20_000)).await?)?;
    for lease in LEASES {
        let name = takeover_name(lease);
        if report.wants(&name) {
            report.add(takeover::killed(name, lease, times(10)).await?)?;
        }
    }
    if report.wants(LEAVE) {
        let measured = takeover::leaving(times(10)).await?;
        report.add(measured.beside("tls", &report.measured))?;
    }
    if report.wants(CHANGE) {
        report.add(change::measure(25, 10_000, times(5)).await?)?;
    }
    for nodes in [5, 60] {
        if report.wants(&renewals::name(nodes, true)) {
            report.add(renewals::real(nodes).await?)?;
        }
    }
    for nodes in SIMULATED {
        if report.wants(&renewals::name(nodes, false)) {
            report.add(renewals::simulated(nodes))?;
        }
    }
    Ok(())
}
