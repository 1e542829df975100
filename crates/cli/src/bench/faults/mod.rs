//! `soloist bench --faults`: the cost of fault tolerance, and how long faults are felt.

mod change;
mod renewals;
mod takeover;

use std::time::Duration;

use anyhow::Result;
use soloist_bench::Report;
use soloist_core::epochs::lease::Lease;

use super::floors;

/// The default lease and the shortest one.
fn leases() -> [Duration; 2] {
    [Lease::default().length, Lease::LEAST]
}

/// The workloads, for the help.
pub(super) fn explanation() -> String {
    let [.., simulated] = SIMULATED;
    format!(
        "\
With --faults:
  tls                 a floor, as above
  takeover            from kill -9 of a holder's node to the next entry
  orderly leave       from SIGTERM to a holder's node to the next entry
  change of epoch     how long locks stand still when one of {CHANGE_NODES} nodes leaves
                      while {CHANGE_LOCKS} locks are held
  renewals            messages per second between nodes and the keepers' leader,
                      of real nodes and of up to {simulated} simulated ones"
    )
}

/// Names of all workloads.
pub(super) fn workloads() -> Vec<String> {
    let others = ["tls", LEAVE, CHANGE].map(str::to_owned);
    let takeovers = leases().map(takeover_name);
    let renewals = REAL.map(|nodes| (nodes, true)).into_iter();
    let renewals = renewals.chain(SIMULATED.map(|nodes| (nodes, false)));
    let renewals = renewals.map(|(nodes, is_real)| renewals::name(nodes, is_real));
    let all = others.into_iter().chain(takeovers).chain(renewals);
    all.collect()
}

const LEAVE: &str = "orderly leave";
const CHANGE: &str = "change of epoch";
const SIMULATED: [usize; 3] = [5, 60, 1000];
const REAL: [usize; 2] = [5, 60];
const CHANGE_NODES: usize = 25;
const CHANGE_LOCKS: usize = 10_000;

fn takeover_name(lease: Duration) -> String {
    format!("takeover, lease {lease:?}")
}

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let quick = report.is_quick;
    let times = |full: usize| if quick { full.div_ceil(5) } else { full };
    let rounds = |full: usize| if quick { full / 10 } else { full };
    report.add(floors::tls(rounds(20_000)).await?)?;
    for lease in leases() {
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
        report.add(change::measure(CHANGE_NODES, CHANGE_LOCKS, times(5)).await?)?;
    }
    for nodes in REAL {
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
