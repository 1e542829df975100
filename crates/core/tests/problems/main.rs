//! What a cluster is judged to suffer from: one test per kind of problem.

mod seen;

use soloist_api::dashboard::{
    KeeperState, Level, OutsideInfo, OutsideState, Overview, Problem, ProblemCode,
};
use soloist_core::record::{
    Facts, HolderFact, KeeperFact, MemberFact, OwnMembership, Report, SeenProblems,
    WAIT_UNUSUAL_MS, WaitFact,
};

const NOW_MS: u64 = 1_700_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn keeper(name: &str, state: KeeperState) -> KeeperFact {
    KeeperFact {
        name: name.to_owned(),
        state,
        since_ms: None,
        reason: None,
    }
}

fn member(name: &str, is_keeper: bool) -> MemberFact {
    let report = Report {
        version: "0.1.0".to_owned(),
        certificate_ends_ms: Some(NOW_MS + 3_650 * DAY_MS),
        ..Report::default()
    };
    MemberFact {
        name: name.to_owned(),
        is_keeper,
        lease_left_ms: Some(2_500),
        report: Some((report, 0.4)),
    }
}

/// A healthy cluster of five members, three of which are keepers.
fn healthy() -> Facts {
    Facts {
        me: "n1".to_owned(),
        version: "0.1.0".to_owned(),
        now_ms: NOW_MS,
        membership: OwnMembership::Member {
            lease_left_ms: 2_500,
        },
        epoch: 7,
        changing_for_ms: None,
        lease_ms: 3_000,
        drift_percent: 5,
        leader: Some("n1".to_owned()),
        keepers: vec![
            keeper("n1", KeeperState::Leads),
            keeper("n2", KeeperState::Follows),
            keeper("n3", KeeperState::Follows),
        ],
        members: ["n1", "n2", "n3", "n4", "n5"]
            .map(|name| member(name, name < "n4"))
            .into(),
        outside: Vec::new(),
        clocks: Vec::new(),
        waits: Vec::new(),
        wait_p99_ms: None,
    }
}

/// Judges by one look.
fn judge(facts: &Facts) -> Overview {
    facts.judge(&mut SeenProblems::default())
}

fn report(facts: &mut Facts, member: usize) -> &mut Report {
    &mut facts.members[member].report.as_mut().unwrap().0
}

/// The only problem, which has this code and level.
fn only(overview: &Overview, code: ProblemCode, level: Level) -> &Problem {
    let [problem] = &overview.problems[..] else {
        panic!("{:?}", overview.problems);
    };
    assert_eq!((problem.code, problem.level), (code, level), "{problem:?}");
    problem
}

#[test]
fn a_healthy_cluster_has_no_problem_and_everything_is_listed_as_well() {
    let overview = judge(&healthy());
    assert_eq!(overview.problems, []);
    assert_eq!(overview.level, Level::Ok);
    assert_eq!(overview.verdict, "All is well.");
    assert_eq!(
        overview.detail,
        "Locks are granted. 5 members in epoch 7, 0 outside; 3 of 3 keepers work."
    );
    let expected = [
        "Keepers: all 3 work, n1 leads",
        "Nodes: all 5 members answer",
        "Leases: renewed in time",
        "Clocks: within 5 % of the leader's rate",
        "Certificates: the first expires in 3650 days",
        "Links: none is down",
        "Waits: none is longer than 15 s",
        "Versions: all 0.1.0",
    ];
    assert_eq!(overview.well, expected);
    assert_eq!(overview.lease_left_ms, Some(2_500));
    assert_eq!(overview.without_lease_for_ms, None);
}

#[test]
fn a_lost_keeper_is_critical_if_no_other_may_fail() {
    let mut facts = healthy();
    facts.keepers[2] = KeeperFact {
        state: KeeperState::Down,
        since_ms: Some(NOW_MS - 60_000),
        reason: Some("The leader evicted it because its lease expired.".to_owned()),
        ..facts.keepers[2].clone()
    };
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::KeeperDown, Level::Critical);
    assert_eq!(problem.title, "Keeper n3 is down");
    assert_eq!(problem.since_ms, NOW_MS - 60_000);
    assert!(
        problem.text.starts_with("2 of 3 keepers are left."),
        "{problem:?}"
    );
    let known = "Known of n3: the leader evicted it because its lease expired.";
    assert!(problem.text.ends_with(known), "{problem:?}");
    // n4 is a member and no keeper.
    assert_eq!(
        problem.commands[1].command,
        "soloist cluster promote n4 && soloist cluster demote n3"
    );
    assert_eq!(
        overview.verdict,
        "Working, but at risk. One thing needs you."
    );
    // Of five keepers, one more may fail.
    facts.keepers.push(keeper("n4", KeeperState::Follows));
    facts.keepers.push(keeper("n5", KeeperState::Follows));
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::KeeperDown, Level::Warning);
    assert!(problem.text.contains("1 more may fail"), "{problem:?}");
    assert_eq!(overview.verdict, "Working. One thing needs you.");
}

/// No leader answers the node, which is still a member.
fn without_leader() -> Facts {
    let mut facts = healthy();
    facts.leader = None;
    for keeper in &mut facts.keepers {
        keeper.state = KeeperState::Unknown;
    }
    for member in &mut facts.members {
        member.lease_left_ms = None;
    }
    facts
}

#[test]
fn a_member_that_hears_no_leader_does_not_call_the_cluster_well() {
    let mut facts = without_leader();
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::NoLeader, Level::Warning);
    assert_eq!(problem.title, "No leader of the keepers answers n1");
    assert!(
        problem.text.contains("lasts for another 2.5 s"),
        "{problem:?}"
    );
    assert_eq!(
        overview.detail,
        "Locks are granted until the leases expire. 5 members in epoch 7, 0 outside; no leader of \
         3 keepers answers."
    );
    for unheard in ["Keepers", "Leases", "Clocks"] {
        assert!(!overview.well.iter().any(|line| line.starts_with(unheard)));
    }
    assert_eq!(problem.commands[0].command, "ssh n2 soloist doctor");
    // Its lease was not renewed in time.
    facts.membership = OwnMembership::Member { lease_left_ms: 999 };
    only(&judge(&facts), ProblemCode::NoLeader, Level::Critical);
}

#[test]
fn no_leader_is_critical_if_stopped_and_silent_keepers_leave_no_majority() {
    let mut facts = without_leader();
    facts.keepers[1].state = KeeperState::Down;
    facts.keepers[1].reason = Some("disk full".to_owned());
    let levels = |facts: &Facts| -> Vec<(ProblemCode, Level)> {
        let problems = judge(facts).problems;
        problems.iter().map(|it| (it.code, it.level)).collect()
    };
    let one_stopped = [
        (ProblemCode::KeeperDown, Level::Critical),
        (ProblemCode::NoLeader, Level::Warning),
    ];
    assert_eq!(levels(&facts), one_stopped);
    facts.members[2].report = None;
    let one_silent = [
        (ProblemCode::NoLeader, Level::Critical),
        (ProblemCode::KeeperDown, Level::Critical),
        (ProblemCode::NodeSilent, Level::Warning),
    ];
    assert_eq!(levels(&facts), one_silent);
    let overview = judge(&facts);
    let (no_leader, down) = (&overview.problems[0].text, &overview.problems[1].text);
    assert!(
        no_leader.contains("n2 and n3 cannot be counted on"),
        "{no_leader}"
    );
    assert!(
        down.starts_with("1 of 3 keepers are left, not counting n3, which does not answer."),
        "{down}"
    );
    assert!(down.contains("A majority is 2"), "{down}");
    assert!(down.contains("disk full"), "{down}");
}

#[test]
fn a_change_of_epoch_is_a_problem_if_it_lasts_and_grants_are_never_claimed() {
    let mut facts = healthy();
    facts.changing_for_ms = Some(4);
    let overview = judge(&facts);
    assert_eq!(
        (overview.level, &overview.problems[..]),
        (Level::Ok, &[][..])
    );
    let expected = "No lock is granted until epoch 7 has begun, for 4 ms so far.";
    assert!(overview.detail.starts_with(expected), "{}", overview.detail);
    facts.changing_for_ms = Some(999);
    assert_eq!(judge(&facts).problems, []);
    facts.changing_for_ms = Some(1_000);
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::Changing, Level::Critical);
    assert_eq!(problem.since_ms, NOW_MS - 1_000);
    assert_eq!(overview.verdict, "Locks stand still. One thing needs you.");
    // With long leases, nodes may be far from each other.
    facts.lease_ms = 24_000;
    facts.members.clear();
    assert_eq!(judge(&facts).problems, []);
}

#[test]
fn what_is_well_counts_only_members_that_answered() {
    let mut facts = healthy();
    facts.members[2].report = None;
    facts.keepers[2].state = KeeperState::Unknown;
    let overview = judge(&facts);
    only(&overview, ProblemCode::NodeSilent, Level::Warning);
    assert!(
        overview
            .detail
            .ends_with("2 of 3 keepers work, and 1 cannot be asked."),
        "{}",
        overview.detail
    );
    let expected = [
        "Leases: renewed in time",
        "Clocks: within 5 % of the leader's rate",
        "Certificates: the first expires in 3650 days (4 of 5 members heard)",
        "Links: none is down (4 of 5 members heard)",
        "Waits: none is longer than 15 s (4 of 5 members heard)",
        "Versions: all 0.1.0 (4 of 5 members heard)",
    ];
    assert_eq!(overview.well, expected);
}

#[test]
fn a_node_without_a_lease_does_not_know_the_state_of_the_cluster() {
    let mut facts = healthy();
    facts.leader = None;
    facts.members.truncate(1);
    facts.membership = OwnMembership::Outside {
        since_ms: NOW_MS - 12_000,
        why: "it cannot find the keepers' leader".to_owned(),
    };
    for keeper in &mut facts.keepers {
        keeper.state = KeeperState::Unknown;
    }
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::NoLease, Level::Critical);
    assert_eq!(problem.node.as_deref(), Some("n1"));
    assert_eq!(problem.since_ms, NOW_MS - 12_000);
    // It knows the keepers, though not the members.
    assert_eq!(problem.commands[0].command, "ssh n2 soloist doctor");
    assert_eq!(overview.level, Level::Unknown);
    assert_eq!(
        overview.verdict,
        "From n1, the state of the cluster is unknown."
    );
    assert_eq!(overview.without_lease_for_ms, Some(12_000));
    assert_eq!(overview.lease_left_ms, None);
    // What cannot be examined is not well.
    assert_eq!(overview.well, Vec::<String>::new());
}

#[test]
fn a_lost_majority_is_reported_by_a_node_that_reaches_no_leader() {
    let mut facts = healthy();
    facts.leader = None;
    facts.membership = OwnMembership::Outside {
        since_ms: NOW_MS - 12_000,
        why: "it cannot find the keepers' leader".to_owned(),
    };
    facts.keepers[0].state = KeeperState::Unknown;
    for keeper in &mut facts.keepers[1..] {
        keeper.state = KeeperState::Down;
        keeper.reason = Some("connection refused".to_owned());
    }
    let overview = judge(&facts);
    let codes: Vec<ProblemCode> = overview.problems.iter().map(|p| p.code).collect();
    assert_eq!(codes, [ProblemCode::MajorityLost, ProblemCode::NoLease]);
    let problem = &overview.problems[0];
    assert_eq!(problem.title, "2 of 3 keepers cannot be reached");
    assert!(
        problem.text.contains("n2 (connection refused), n3"),
        "{problem:?}"
    );
    // One keeper of three may be missing.
    facts.keepers[1].state = KeeperState::Unknown;
    only(&judge(&facts), ProblemCode::NoLease, Level::Critical);
}

#[test]
fn a_clock_at_another_rate_is_critical() {
    let mut facts = healthy();
    facts.clocks = vec![("n4".to_owned(), -12)];
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::ClocksApart, Level::Critical);
    assert_eq!(problem.title, "The clock of n4 runs too slow");
    assert!(
        problem.text.starts_with("It runs 12 % too slow"),
        "{problem:?}"
    );
    assert!(!overview.well.iter().any(|line| line.starts_with("Clocks")));
}

#[test]
fn an_evicted_node_is_a_problem_and_one_that_left_is_not() {
    let mut facts = healthy();
    let outside = |name: &str, state| OutsideInfo {
        name: name.to_owned(),
        is_keeper: false,
        state,
        reason: "Its lease expired.".to_owned(),
        since_ms: Some(NOW_MS - 40_000),
    };
    facts.outside = vec![
        outside("n6", OutsideState::Left),
        outside("n7", OutsideState::Evicted),
        outside("n8", OutsideState::Joining),
    ];
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::NodeOutside, Level::Warning);
    assert_eq!(problem.title, "n7 is not a member");
    assert!(
        problem.text.starts_with("Its lease expired."),
        "{problem:?}"
    );
    assert_eq!(overview.outside.len(), 3);
    // An evicted keeper is reported once, as a keeper that is down.
    facts.outside[1].is_keeper = true;
    facts.keepers.push(keeper("n7", KeeperState::Down));
    only(&judge(&facts), ProblemCode::KeeperDown, Level::Critical);
    // If its store works, only the member is missing.
    facts.keepers[3].state = KeeperState::Follows;
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::NodeOutside, Level::Warning);
    assert!(problem.text.contains("Its keeper works."), "{problem:?}");
}

#[test]
fn a_certificate_is_a_warning_for_a_month_and_critical_for_a_week() {
    let mut facts = healthy();
    report(&mut facts, 3).certificate_ends_ms = Some(NOW_MS + 31 * DAY_MS);
    assert_eq!(judge(&facts).problems, []);
    report(&mut facts, 3).certificate_ends_ms = Some(NOW_MS + 20 * DAY_MS);
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::CertificateExpires, Level::Warning);
    assert_eq!(problem.title, "The certificate of n4 expires in 20 days");
    assert_eq!(problem.since_ms, NOW_MS - 10 * DAY_MS);
    report(&mut facts, 3).certificate_ends_ms = Some(NOW_MS + DAY_MS);
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::CertificateExpires, Level::Critical);
    assert_eq!(problem.title, "The certificate of n4 expires in 24 h 0 min");
    report(&mut facts, 3).certificate_ends_ms = Some(NOW_MS - DAY_MS);
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::CertificateExpires, Level::Critical);
    assert_eq!(problem.title, "The certificate of n4 has expired");
}

#[test]
fn a_lease_with_less_than_a_third_left_was_not_renewed() {
    let mut facts = healthy();
    facts.members[4].lease_left_ms = Some(1_000);
    assert_eq!(judge(&facts).problems, []);
    facts.members[4].lease_left_ms = Some(999);
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::LeaseNearEnd, Level::Warning);
    assert_eq!(problem.title, "The lease of n5 is not renewed");
}

#[test]
fn a_silent_member_is_named_and_the_links_to_it_are_not() {
    let mut facts = healthy();
    facts.members[3].report = None;
    report(&mut facts, 0).links_down = vec![("n4".to_owned(), 60_000)];
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::NodeSilent, Level::Warning);
    assert_eq!(problem.title, "n4 does not answer");
    assert_eq!(overview.silent, ["n4"]);
    assert_eq!(overview.members[3].answered_in_ms, None);
    assert_eq!(overview.links_down.len(), 1);
}

#[test]
fn a_link_that_is_down_for_a_lease_is_a_problem() {
    let mut facts = healthy();
    report(&mut facts, 0).links_down = vec![("n4".to_owned(), 2_999)];
    assert_eq!(judge(&facts).problems, []);
    report(&mut facts, 0).links_down = vec![("n4".to_owned(), 3_000), ("n9".to_owned(), 9_000)];
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::LinkDown, Level::Warning);
    assert_eq!(problem.title, "n1 does not reach n4");
    assert_eq!(problem.since_ms, NOW_MS - 3_000);
    // n9 is not a member.
    assert_eq!(overview.links_down.len(), 1);
}

#[test]
fn a_wait_is_unusual_beside_the_other_waits() {
    let mut facts = healthy();
    let wait = WaitFact {
        lock: "it's".to_owned(),
        owner: "ledger".to_owned(),
        node: "n4".to_owned(),
        waited_ms: WAIT_UNUSUAL_MS - 1,
        holder: None,
    };
    facts.waits = vec![wait.clone()];
    assert_eq!(judge(&facts).problems, []);
    facts.waits[0].waited_ms = WAIT_UNUSUAL_MS;
    facts.waits[0].holder = Some(HolderFact {
        owner: "deploy".to_owned(),
        node: "n5".to_owned(),
        held_ms: 192_000,
    });
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::LongWait, Level::Warning);
    assert_eq!(problem.lock.as_deref(), Some("it's"));
    assert!(
        problem
            .text
            .contains("deploy on n5 has held it for 3 min 12 s"),
        "{problem:?}"
    );
    assert_eq!(problem.commands[0].command, r"soloist who 'it'\''s'");
    assert_eq!(problem.commands.len(), 2);
    // Where long waits are usual, this one is not unusual.
    facts.wait_p99_ms = Some(2_000.0);
    let overview = judge(&facts);
    assert_eq!(overview.problems, []);
    assert!(
        overview
            .well
            .contains(&"Waits: none is longer than 20 s".to_owned())
    );
}

#[test]
fn one_long_wait_that_ended_does_not_hide_the_next_one() {
    let mut facts = healthy();
    // The only wait of the last 15 minutes.
    facts.wait_p99_ms = Some(300_000.0);
    facts.waits = vec![WaitFact {
        lock: "x".to_owned(),
        owner: "ledger".to_owned(),
        node: "n4".to_owned(),
        waited_ms: 59_999,
        holder: None,
    }];
    assert_eq!(judge(&facts).problems, []);
    facts.waits[0].waited_ms = 60_000;
    only(&judge(&facts), ProblemCode::LongWait, Level::Warning);
}

#[test]
fn different_versions_are_listed() {
    let mut facts = healthy();
    report(&mut facts, 1).version = "0.2.0".to_owned();
    let overview = judge(&facts);
    let problem = only(&overview, ProblemCode::VersionsDiffer, Level::Warning);
    let expected = "0.1.0 on n1, n3, n4 and n5; 0.2.0 on n2.";
    assert!(problem.text.starts_with(expected), "{problem:?}");
}

#[test]
fn critical_problems_come_first() {
    let mut facts = healthy();
    report(&mut facts, 1).version = "0.2.0".to_owned();
    facts.members[3].report = None;
    facts.keepers[2].state = KeeperState::Down;
    report(&mut facts, 4).certificate_ends_ms = Some(NOW_MS + DAY_MS);
    let overview = judge(&facts);
    let codes: Vec<ProblemCode> = overview.problems.iter().map(|p| p.code).collect();
    let expected = [
        ProblemCode::KeeperDown,
        ProblemCode::CertificateExpires,
        ProblemCode::NodeSilent,
        ProblemCode::VersionsDiffer,
    ];
    assert_eq!(codes, expected);
    assert_eq!(
        overview.verdict,
        "Working, but at risk. Four things need you."
    );
}
