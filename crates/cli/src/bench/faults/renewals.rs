//! Workload: messages between the nodes and the keepers' leader while nothing happens.

use std::time::{Duration, Instant};

use anyhow::Result;
use soloist_api::Moment;
use soloist_bench::{Measured, Samples};
use soloist_core::Incarnation;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberEffects, Participant};
use soloist_core::epochs::message::ToMember;
use soloist_core::epochs::roster::{Applied, Command, Member, Roster};
use soloist_core::limits::Limits;
use soloist_core::locks::{Settings, Table};
use soloist_core::name_hash::HashKeys;
use soloist_core::rules::{RuleSettings, Rules};

use crate::bench::single::cluster;

const WHAT: &str = "messages between nodes and the keepers' leader";

pub(super) fn name(nodes: usize, is_real: bool) -> String {
    let how = if is_real { "" } else { ", simulated" };
    format!("renewals, {nodes} nodes{how}")
}

/// Counts the messages of real nodes.
pub(super) async fn real(nodes: usize) -> Result<Measured> {
    let (cluster, _folder) = cluster(nodes, RuleSettings::ALGORITHM, true).await?;
    let words = || {
        cluster
            .nodes
            .iter()
            .map(|node| node.leader_messages())
            .sum::<u64>()
    };
    let (before, begin) = (words(), Instant::now());
    tokio::time::sleep(Lease::default().length * 2).await;
    let (after, seconds) = (words(), begin.elapsed().as_secs_f64());
    cluster.stop().await;
    Ok(counted(name(nodes, true), after - before, seconds))
}

fn counted(name: String, words: u64, seconds: f64) -> Measured {
    let mut measured = Measured::new(name, WHAT, seconds, &Samples::default());
    measured.operations = usize::try_from(words).unwrap_or(usize::MAX);
    measured.operations_per_second = words as f64 / seconds;
    measured
}

/// Runs the same state machines without sockets, for one simulated minute.
pub(super) fn simulated(nodes: usize) -> Measured {
    let mut cluster = Simulation::new(nodes);
    cluster.run_until(Duration::from_secs(5));
    let before = cluster.words;
    cluster.run_until(Duration::from_secs(65));
    counted(name(nodes, false), cluster.words - before, 60.0)
}

/// A call to the leader.
type Act<'a> = Box<dyn FnOnce(&mut Leader, Moment, &Roster, &mut LeaderEffects) + 'a>;

/// A cluster whose leader is always confirmed, whose proposals always commit, and whose messages
/// arrive immediately.
struct Simulation {
    now: Moment,
    roster: Roster,
    leader: Leader,
    nodes: Vec<Participant>,
    words: u64,
}

impl Simulation {
    fn new(nodes: usize) -> Self {
        let lease = Lease::default();
        let rules = Rules::new(nodes, &RuleSettings::default(), &[]);
        let rules = rules.expect("the default rules support every number of nodes");
        let now = Moment::default();
        let node = |number: usize| {
            let name = format!("n{number}");
            let me = Member {
                address: format!("{name}:7401").parse().expect("an address"),
                name: name.parse().expect("a name"),
                incarnation: Incarnation(number as u64),
            };
            let table = Table::new(Settings {
                rules: rules.clone(),
                ttl_max: Duration::from_secs(3600),
                limits: Limits::default(),
                locks_max: 1,
                forget_after: Duration::from_secs(10),
                turns_away_after: None,
                seed: [0; 32],
            });
            Participant::new(me, table, lease, now)
        };
        let mut roster = Roster::default();
        roster.apply(Command::Lead {
            lease: lease.guarded(),
        });
        Simulation {
            now,
            leader: Leader::elected(lease, now, &roster, HashKeys::new([0; 16])),
            roster,
            nodes: (0..nodes).map(node).collect(),
            words: 0,
        }
    }

    fn run_until(&mut self, end: Duration) {
        while self.now < Moment::new(end) {
            for node in 0..self.nodes.len() {
                let mut out = MemberEffects::default();
                if self.nodes[node]
                    .next_deadline()
                    .is_some_and(|at| at <= self.now)
                {
                    self.nodes[node].tick(self.now, &mut out);
                }
                self.send(node, out);
            }
            self.lead(Box::new(Leader::tick));
            self.now = self.now + Duration::from_millis(5);
        }
    }

    fn send(&mut self, node: usize, out: MemberEffects) {
        let from = self.nodes[node].me().clone();
        for message in out.keepers {
            self.words += 1;
            self.lead(Box::new(|leader, now, roster, out| {
                leader.receive(now, roster, &from, message, out);
            }));
        }
    }

    fn lead(&mut self, act: Act<'_>) {
        let mut out = LeaderEffects::default();
        act(&mut self.leader, self.now, &self.roster, &mut out);
        for (member, message) in std::mem::take(&mut out.sends) {
            self.words += 1;
            self.deliver(&member, message);
        }
        if out.confirm {
            self.lead(Box::new(Leader::confirmed));
        }
        if let Some(command) = out.propose {
            assert_eq!(
                self.roster.apply(command),
                Applied::Done,
                "no other keeper leads"
            );
            self.lead(Box::new(Leader::applied));
        }
    }

    fn deliver(&mut self, to: &Member, message: ToMember) {
        let node = to.incarnation.0 as usize;
        let mut out = MemberEffects::default();
        self.nodes[node].receive_from_leader(self.now, message, &mut out);
        self.send(node, out);
    }
}
