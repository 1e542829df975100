//! What is wrong with a cluster: one function per kind of problem.

mod keepers;
mod seen;

pub use seen::SeenProblems;

use std::collections::BTreeMap;

use soloist_api::dashboard::{Advice, Level, OutsideState, Problem, ProblemCode};

use super::facts::{Facts, HolderFact, OwnMembership};
use super::words::{argument, names, span};

/// A wait shorter than this is never unusual, in milliseconds.
pub const WAIT_UNUSUAL_MS: u64 = 15_000;

/// A wait is unusual if it is this many times as long as the 99th percentile.
const WAIT_UNUSUAL_TIMES: f64 = 10.0;

/// A wait this long is always unusual, in milliseconds. If only few clients wait, the 99th
/// percentile is about the longest wait: a single one must not hide the next ones for 15 minutes.
const WAIT_UNUSUAL_MS_MAX: u64 = 60_000;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How long a node that left or was evicted is shown, in milliseconds.
pub const OUTSIDE_SHOWN_MS: u64 = DAY_MS;

/// A certificate that expires within this time is a problem.
const CERTIFICATE_WARNING_MS: u64 = 30 * DAY_MS;

/// A certificate that expires within this time is a critical problem.
const CERTIFICATE_CRITICAL_MS: u64 = 7 * DAY_MS;

impl Facts {
    /// All problems that are found.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.majority_lost(&mut problems);
        self.no_lease(&mut problems);
        self.no_leader(&mut problems);
        self.changing(&mut problems);
        self.keepers_down(&mut problems);
        self.clocks_apart(&mut problems);
        self.nodes_outside(&mut problems);
        self.certificates(&mut problems);
        self.leases(&mut problems);
        self.nodes_silent(&mut problems);
        self.links(&mut problems);
        self.long_waits(&mut problems);
        self.versions(&mut problems);
        problems
    }

    pub(super) fn is_outside(&self) -> bool {
        matches!(self.membership, OwnMembership::Outside { .. })
    }

    fn problem(&self, code: ProblemCode, level: Level, title: String, text: String) -> Problem {
        Problem {
            code,
            level,
            title,
            since_ms: self.now_ms,
            last_seen_ms: self.now_ms,
            is_over: false,
            text,
            link: code.name().to_owned(),
            lock: None,
            node: None,
            from: None,
            commands: Vec::new(),
        }
    }

    fn clocks_apart(&self, problems: &mut Vec<Problem>) {
        for (node, percent) in &self.clocks {
            let rate = match percent {
                0.. => "fast",
                _ => "slow",
            };
            let text = format!(
                "It runs {} % too {rate} beside the leader's, and {} % are tolerated. Leases rely \
                 on equal rates: until the clock is repaired, two holders are possible, and only \
                 fences are reliable.",
                percent.unsigned_abs(),
                self.drift_percent
            );
            let title = format!("The clock of {node} runs too {rate}");
            let command = format!("ssh {node} 'dmesg | grep -i clocksource'");
            problems.push(Problem {
                node: Some(node.clone()),
                commands: vec![advice("See the clock source", &command)],
                ..self.problem(ProblemCode::ClocksApart, Level::Critical, title, text)
            });
        }
    }

    fn nodes_outside(&self, problems: &mut Vec<Problem>) {
        let is_missing = |state| matches!(state, OutsideState::Evicted | OutsideState::Down);
        let missing = self.outside.iter();
        for node in missing.filter(|node| is_missing(node.state)) {
            let name = &node.name;
            // A keeper that is down is a problem of its own.
            if self.is_keeper_down(name) {
                continue;
            }
            let keeper = match node.is_keeper {
                true => " Its keeper works.",
                false => "",
            };
            let text = format!(
                "{} It grants nothing, and its holds are lost.{keeper} It joins again by itself \
                 when it runs and reaches the keepers and all members.",
                node.reason
            );
            problems.push(Problem {
                since_ms: node.since_ms.unwrap_or(self.now_ms),
                node: Some(name.clone()),
                commands: vec![advice("See why", &look_at(name))],
                ..self.problem(
                    ProblemCode::NodeOutside,
                    Level::Warning,
                    format!("{name} is not a member"),
                    text,
                )
            });
        }
    }

    fn certificates(&self, problems: &mut Vec<Problem>) {
        for (node, report) in self.reports() {
            let Some(ends_ms) = report.certificate_ends_ms else {
                continue;
            };
            let left = ends_ms.saturating_sub(self.now_ms);
            if left > CERTIFICATE_WARNING_MS {
                continue;
            }
            let (level, title) = match left {
                0 => (
                    Level::Critical,
                    format!("The certificate of {node} has expired"),
                ),
                _ => {
                    let title = format!("The certificate of {node} expires in {}", span(left));
                    let is_near = left <= CERTIFICATE_CRITICAL_MS;
                    (
                        if is_near {
                            Level::Critical
                        } else {
                            Level::Warning
                        },
                        title,
                    )
                }
            };
            let text = format!(
                "Afterwards no other node accepts connections of {node}, and it drops out of the \
                 cluster. Make a new certificate and restart the node."
            );
            let command =
                format!("ssh {node} openssl x509 -noout -enddate -in /var/lib/soloist/node.pem");
            problems.push(Problem {
                since_ms: ends_ms.saturating_sub(CERTIFICATE_WARNING_MS),
                node: Some(node.to_owned()),
                commands: vec![advice("See its dates", &command)],
                ..self.problem(ProblemCode::CertificateExpires, level, title, text)
            });
        }
    }

    fn leases(&self, problems: &mut Vec<Problem>) {
        for member in &self.members {
            let Some(left) = member
                .lease_left_ms
                .filter(|left| *left < self.renewed_every_ms())
            else {
                continue;
            };
            let name = &member.name;
            let text = format!(
                "{} of {} are left. A member renews its lease when two thirds are left: {name} is \
                 stopping, overloaded or cut off. When the lease has expired, {name} is evicted \
                 and its holds are lost.",
                span(left),
                span(self.lease_ms)
            );
            problems.push(Problem {
                node: Some(name.clone()),
                commands: vec![advice("See why", &look_at(name))],
                ..self.problem(
                    ProblemCode::LeaseNearEnd,
                    Level::Warning,
                    format!("The lease of {name} is not renewed"),
                    text,
                )
            });
        }
    }

    fn nodes_silent(&self, problems: &mut Vec<Problem>) {
        for name in self.silent() {
            let text = format!(
                "{name} is a member, but did not answer {} within a second. Holders and waiters \
                 there are missing from lists.",
                self.me
            );
            problems.push(Problem {
                node: Some(name.to_owned()),
                commands: vec![advice("See why", &look_at(name))],
                ..self.problem(
                    ProblemCode::NodeSilent,
                    Level::Warning,
                    format!("{name} does not answer"),
                    text,
                )
            });
        }
    }

    fn links(&self, problems: &mut Vec<Problem>) {
        let silent: Vec<&str> = self.silent().collect();
        let down = self.links_down().into_iter();
        // The link to a silent member is down because the member is.
        for link in down.filter(|link| !silent.contains(&link.to.as_str())) {
            if self.now_ms.saturating_sub(link.since_ms) < self.lease_ms {
                continue;
            }
            let (from, to) = (&link.from, &link.to);
            let text = format!(
                "Locks that need a message from {from} to {to} wait. If it lasts, one of the two \
                 is evicted, so that the others continue."
            );
            problems.push(Problem {
                since_ms: link.since_ms,
                node: Some(to.clone()),
                from: Some(from.clone()),
                commands: vec![advice("Try the way", &format!("ssh {from} ping -c 3 {to}"))],
                ..self.problem(
                    ProblemCode::LinkDown,
                    Level::Warning,
                    format!("{from} does not reach {to}"),
                    text,
                )
            });
        }
    }

    /// How long a wait has to be to count as unusual, in milliseconds.
    pub(super) fn unusual_wait_ms(&self) -> u64 {
        let usual = self.wait_p99_ms.unwrap_or_default();
        let limit_ms = (usual * WAIT_UNUSUAL_TIMES) as u64;
        limit_ms.clamp(WAIT_UNUSUAL_MS, WAIT_UNUSUAL_MS_MAX)
    }

    fn long_waits(&self, problems: &mut Vec<Problem>) {
        let limit = self.unusual_wait_ms();
        for wait in self.waits.iter().filter(|wait| wait.waited_ms >= limit) {
            let holder = match &wait.holder {
                Some(holder) => format!(
                    "{} on {} has held it for {}.",
                    holder.owner,
                    holder.node,
                    span(holder.held_ms)
                ),
                None => "No holder was found.".to_owned(),
            };
            let usual = match self.wait_p99_ms {
                Some(ms) => format!(
                    " In the last 15 minutes, 99 of 100 waits took at most {}.",
                    span(ms.ceil() as u64)
                ),
                None => String::new(),
            };
            let text = format!(
                "{} on {} has waited for {}. {holder}{usual}",
                wait.owner,
                wait.node,
                span(wait.waited_ms)
            );
            let who = format!("soloist who {}", argument(&wait.lock));
            let mut commands = vec![advice("See holder and waiters", &who)];
            if let Some(holder) = &wait.holder {
                commands.extend(look_at_process(holder));
                commands.push(advice("Look at the holder's node", &look_at(&holder.node)));
            }
            problems.push(Problem {
                since_ms: self.now_ms.saturating_sub(wait.waited_ms),
                lock: Some(wait.lock.clone()),
                node: Some(wait.node.clone()),
                commands,
                ..self.problem(
                    ProblemCode::LongWait,
                    Level::Warning,
                    format!("{} is waited for", wait.lock),
                    text,
                )
            });
        }
    }

    /// The members of each version.
    pub(super) fn by_version(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (node, report) in self.reports() {
            versions.entry(&report.version).or_default().push(node);
        }
        versions
    }

    fn versions(&self, problems: &mut Vec<Problem>) {
        let versions = self.by_version();
        if versions.len() < 2 {
            return;
        }
        let each = versions.iter();
        let each = each.map(|(version, nodes)| format!("{version} on {}", names(nodes)));
        let text = format!(
            "{}. That is expected during an upgrade; finish it.",
            each.collect::<Vec<_>>().join("; ")
        );
        problems.push(self.problem(
            ProblemCode::VersionsDiffer,
            Level::Warning,
            format!("Members have {} versions", versions.len()),
            text,
        ));
    }
}

fn advice(label: &str, command: &str) -> Advice {
    Advice {
        label: label.to_owned(),
        command: command.to_owned(),
    }
}

fn look_at(node: &str) -> String {
    format!("ssh {node} systemctl status soloist")
}

/// A command about the holder's process, if its owner ends as `soloist lock` writes it, as in
/// `ann@web1: backup.sh, process 4711`. A client may write anything there, so it does not choose
/// the host of an `ssh` command.
fn look_at_process(holder: &HolderFact) -> Option<Advice> {
    let (program, process) = holder.owner.rsplit_once(", process ")?;
    let process: u32 = process.parse().ok()?;
    let command = format!("ps -fp {process}");
    let host = program
        .split_once(": ")
        .and_then(|(user, _)| user.split_once('@'));
    let is_plain = |host: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !host.is_empty() && host.chars().all(plain)
    };
    Some(match host {
        Some((_, host)) if is_plain(host) && host != holder.node => {
            advice(&format!("On {host}, see the process"), &command)
        }
        _ => {
            let command = format!("ssh {} {command}", holder.node);
            advice("See the holder's process", &command)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about_process(owner: &str) -> Option<[String; 2]> {
        let holder = HolderFact {
            owner: owner.to_owned(),
            node: "n5".to_owned(),
            held_ms: 192_000,
        };
        look_at_process(&holder).map(|advice| [advice.label, advice.command])
    }

    #[test]
    fn a_holder_that_names_its_process_can_be_looked_at() {
        let told = |label: &str, command: &str| Some([label, command].map(str::to_owned));
        let there = told("See the holder's process", "ssh n5 ps -fp 4711");
        assert_eq!(about_process("ann@n5: backup.sh, process 4711"), there);
        assert_eq!(about_process("backup, process 4711"), there);
        assert_eq!(about_process("ann@$(reboot): x, process 4711"), there);
        // The client runs elsewhere. Its own text does not choose where an operator logs in.
        let elsewhere = told("On web1, see the process", "ps -fp 4711");
        assert_eq!(
            about_process("ann@web1: backup.sh, process 4711"),
            elsewhere
        );
        for nothing in ["deploy", "x, process 1;reboot", "x, process 99999999999"] {
            assert_eq!(about_process(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn every_problem_has_an_entry_in_the_manual() {
        let manual = include_str!("../../../../docs/operations.md");
        let headings = manual.lines().filter_map(|line| line.strip_prefix('#'));
        let anchors: Vec<String> = headings
            .map(|heading| {
                let heading = heading.trim_start_matches('#').trim().to_lowercase();
                let kept = heading
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.collect::<String>().replace(' ', "-")
            })
            .collect();
        for code in ProblemCode::ALL {
            assert!(anchors.iter().any(|anchor| anchor == code.name()), "{code}");
        }
    }
}
