//! Problems that were seen before: a problem is over only if somebody could examine it.

use super::*;

/// The problems, with whether they are over, and for how long they were not seen.
fn seen(overview: &Overview) -> Vec<(ProblemCode, bool, u64)> {
    let problems = overview.problems.iter();
    let seen = problems.map(|problem| {
        let unseen_ms = overview.at_ms - problem.last_seen_ms;
        (problem.code, problem.is_over, unseen_ms)
    });
    seen.collect()
}

fn wait(node: &str) -> WaitFact {
    WaitFact {
        lock: "x".to_owned(),
        owner: "ledger".to_owned(),
        node: node.to_owned(),
        waited_ms: WAIT_UNUSUAL_MS,
        holder: None,
    }
}

/// The same wait, as its node reports it.
fn long_wait(lock: &str) -> (String, String, u64) {
    (lock.to_owned(), "ledger".to_owned(), WAIT_UNUSUAL_MS)
}

/// n4, whose link to n5 is down, whose certificate expires tomorrow, whose clock is slow, whose
/// lease was not renewed, whose version differs, and where a client waits.
fn troubled() -> Facts {
    let mut facts = healthy();
    let report = report(&mut facts, 3);
    report.certificate_ends_ms = Some(NOW_MS + DAY_MS);
    report.links_down = vec![("n5".to_owned(), 3_000)];
    report.version = "0.2.0".to_owned();
    report.long_waits = vec![long_wait("x")];
    facts.waits = vec![wait("n4")];
    facts.members[3].lease_left_ms = Some(900);
    facts.clocks = vec![("n4".to_owned(), -12)];
    facts
}

const TROUBLES: [ProblemCode; 6] = [
    ProblemCode::ClocksApart,
    ProblemCode::CertificateExpires,
    ProblemCode::LeaseNearEnd,
    ProblemCode::LinkDown,
    ProblemCode::LongWait,
    ProblemCode::VersionsDiffer,
];

/// A later look at a healthy cluster.
fn later(ms: u64) -> Facts {
    Facts {
        now_ms: NOW_MS + ms,
        ..healthy()
    }
}

#[test]
fn what_a_silent_member_told_is_not_over() {
    let mut problems = SeenProblems::default();
    let first = troubled().judge(&mut problems);
    assert_eq!(seen(&first), TROUBLES.map(|code| (code, false, 0)));

    // Neither n4 nor the leader answers.
    let mut silent = later(20_000);
    silent.members[3].report = None;
    silent.leader = None;
    for member in &mut silent.members {
        member.lease_left_ms = None;
    }
    let overview = silent.judge(&mut problems);
    let mut expected: Vec<_> = TROUBLES.map(|code| (code, false, 20_000)).into();
    expected.push((ProblemCode::NoLeader, false, 0));
    expected.push((ProblemCode::NodeSilent, false, 0));
    expected.sort();
    let mut found = seen(&overview);
    found.sort();
    assert_eq!(found, expected);
    // They count: nobody knows that they are over.
    assert_eq!(overview.level, Level::Critical);
    assert!(
        overview.verdict.ends_with("Eight things need you."),
        "{}",
        overview.verdict
    );
    for line in ["Certificates", "Links", "Waits", "Versions", "Clocks"] {
        assert!(
            !overview.well.iter().any(|well| well.starts_with(line)),
            "{line}"
        );
    }
    let certificate = &overview.problems[1];
    assert_eq!(certificate.code, ProblemCode::CertificateExpires);
    assert!(certificate.is_unexamined(overview.at_ms));
    assert_eq!(certificate.since_ms, first.problems[1].since_ms);

    // A minute later they are still there, and when n4 is well they are over.
    silent.now_ms += 600_000;
    assert_eq!(silent.judge(&mut problems).problems.len(), 8);
    let well = later(621_000).judge(&mut problems);
    assert!(
        well.problems.iter().all(|problem| problem.is_over),
        "{well:?}"
    );
    assert_eq!(well.problems.len(), 8);
    assert_eq!((well.level, &*well.verdict), (Level::Ok, "All is well."));
    assert_eq!(later(680_000).judge(&mut problems).problems.len(), 8);
    assert_eq!(later(681_000).judge(&mut problems).problems, []);
}

#[test]
fn a_problem_that_was_examined_is_over_and_comes_back_as_a_new_one() {
    let mut problems = SeenProblems::default();
    troubled().judge(&mut problems);
    let overview = later(1_000).judge(&mut problems);
    assert_eq!(seen(&overview), TROUBLES.map(|code| (code, true, 1_000)));
    assert_eq!(overview.level, Level::Ok);
    let mut again = later(2_000);
    again.clocks = vec![("n4".to_owned(), -12)];
    let overview = again.judge(&mut problems);
    let clock = &overview.problems[0];
    assert_eq!(
        (clock.code, clock.since_ms),
        (ProblemCode::ClocksApart, NOW_MS + 2_000)
    );
    assert_eq!(
        overview.verdict,
        "Working, but at risk. One thing needs you."
    );
}

#[test]
fn a_node_without_a_lease_can_tell_of_no_other_node() {
    let mut problems = SeenProblems::default();
    let mut before = troubled();
    before.keepers[2].state = KeeperState::Down;
    before.outside = vec![OutsideInfo {
        name: "n7".to_owned(),
        is_keeper: false,
        state: OutsideState::Evicted,
        reason: "Its lease expired.".to_owned(),
        since_ms: Some(NOW_MS - 40_000),
    }];
    before.judge(&mut problems);
    let mut alone = later(5_000);
    alone.leader = None;
    alone.members.clear();
    alone.membership = OwnMembership::Outside {
        since_ms: NOW_MS + 4_000,
        why: "it cannot find the keepers' leader".to_owned(),
    };
    let overview = alone.judge(&mut problems);
    let found = seen(&overview);
    assert!(
        found.contains(&(ProblemCode::NoLease, false, 0)),
        "{found:?}"
    );
    let unexamined = [ProblemCode::KeeperDown, ProblemCode::NodeOutside];
    for code in TROUBLES.into_iter().chain(unexamined) {
        assert!(found.contains(&(code, false, 5_000)), "{code} in {found:?}");
    }
    // With a lease again, it has examined everything.
    let mut back = later(6_000);
    back.members.push(member("n7", false));
    let overview = back.judge(&mut problems);
    assert!(
        overview.problems.iter().all(|problem| problem.is_over),
        "{overview:?}"
    );
}

#[test]
fn each_link_is_a_problem_of_its_own() {
    let mut problems = SeenProblems::default();
    let mut facts = healthy();
    for from in [0, 1] {
        report(&mut facts, from).links_down = vec![("n5".to_owned(), 3_000)];
    }
    facts.judge(&mut problems);
    // n1 reaches it again; n2 does not answer.
    let mut after = later(1_000);
    after.members[1].report = None;
    let overview = after.judge(&mut problems);
    let links = overview.problems.iter();
    let links = links.filter(|problem| problem.code == ProblemCode::LinkDown);
    let links: Vec<(&str, bool)> = links
        .map(|link| (link.title.as_str(), link.is_over))
        .collect();
    assert_eq!(
        links,
        [
            ("n2 does not reach n5", false),
            ("n1 does not reach n5", true)
        ]
    );
}

#[test]
fn a_problem_is_not_over_because_another_one_says_more() {
    let mut problems = SeenProblems::default();
    let mut before = healthy();
    before.members[3].report = None;
    before.members[3].lease_left_ms = Some(100);
    before.waits = vec![wait("n2")];
    before.judge(&mut problems);
    // n4 is evicted, and another client on n3 waits for the same lock.
    let mut after = later(1_000);
    after.members.remove(3);
    after.outside = vec![OutsideInfo {
        name: "n4".to_owned(),
        is_keeper: false,
        state: OutsideState::Evicted,
        reason: "Its lease expired.".to_owned(),
        since_ms: Some(NOW_MS + 900),
    }];
    after.waits = vec![wait("n3")];
    let overview = after.judge(&mut problems);
    let expected = [
        (ProblemCode::NodeOutside, false, 0),
        (ProblemCode::LongWait, false, 0),
    ];
    assert_eq!(seen(&overview), expected);
    // It left for good: nothing about it is of interest.
    let mut certificate = later(2_000);
    report(&mut certificate, 4).certificate_ends_ms = Some(NOW_MS + DAY_MS);
    certificate.judge(&mut problems);
    let mut left = later(3_000);
    left.members.pop();
    let overview = left.judge(&mut problems);
    let codes: Vec<ProblemCode> = overview.problems.iter().map(|it| it.code).collect();
    assert!(
        !codes.contains(&ProblemCode::CertificateExpires),
        "{codes:?}"
    );
}

#[test]
fn what_was_seen_is_forgotten_if_nobody_looks() {
    let mut problems = SeenProblems::default();
    troubled().judge(&mut problems);
    let mut silent = later(15 * 60_000);
    silent.members[3].report = None;
    let codes = |overview: &Overview| overview.problems.len();
    assert!(codes(&silent.judge(&mut problems.clone())) > 4);
    silent.now_ms += 1;
    only(
        &silent.judge(&mut problems),
        ProblemCode::NodeSilent,
        Level::Warning,
    );
}

#[test]
fn a_wait_that_may_go_on_is_not_called_over() {
    let is_wait = |(code, ..): &(ProblemCode, bool, u64)| *code == ProblemCode::LongWait;
    let after = |change: &dyn Fn(&mut Facts)| {
        let mut problems = SeenProblems::default();
        let first = troubled().judge(&mut problems);
        assert!(seen(&first).contains(&(ProblemCode::LongWait, false, 0)));
        let mut facts = later(1_000);
        change(&mut facts);
        let found = seen(&facts.judge(&mut problems));
        found.into_iter().find(is_wait)
    };
    // It is not unusual any more, and goes on.
    let usual = |facts: &mut Facts| {
        facts.wait_p99_ms = Some(5_000.0);
        facts.waits = vec![wait("n4")];
        report(facts, 3).long_waits = vec![long_wait("x")];
    };
    assert_eq!(after(&usual), None);
    // A client on another node waits for the same lock.
    let elsewhere = |facts: &mut Facts| report(facts, 1).long_waits = vec![long_wait("x")];
    assert_eq!(after(&elsewhere), None);
    // It may have gone on behind longer ones, which are all that the node tells.
    let behind = |facts: &mut Facts| {
        report(facts, 3).long_waits = ["a", "b", "c"].map(long_wait).into();
        report(facts, 3).has_more_waits = true;
    };
    assert_eq!(after(&behind), None);
    // The node tells all long waits, and this one is not among them.
    let ended = |facts: &mut Facts| report(facts, 3).long_waits = vec![long_wait("a")];
    assert_eq!(after(&ended), Some((ProblemCode::LongWait, true, 1_000)));
}

#[test]
fn a_node_that_is_missing_is_not_over_until_it_is_back_or_has_left() {
    let outside = |state, is_keeper| OutsideInfo {
        name: "n7".to_owned(),
        is_keeper,
        state,
        reason: "Its lease expired.".to_owned(),
        since_ms: Some(NOW_MS - DAY_MS + 5_000),
    };
    let after = |ms: u64, change: &dyn Fn(&mut Facts)| {
        let mut problems = SeenProblems::default();
        let mut first = healthy();
        first.outside = vec![outside(OutsideState::Evicted, false)];
        let first = first.judge(&mut problems);
        only(&first, ProblemCode::NodeOutside, Level::Warning);
        let mut facts = later(ms);
        change(&mut facts);
        seen(&facts.judge(&mut problems))
    };
    let (over, unexamined) = (true, false);
    let still = |is_over| vec![(ProblemCode::NodeOutside, is_over, 1_000)];
    // Its note is gone.
    assert_eq!(after(1_000, &|_| {}), still(unexamined));
    let waits = |facts: &mut Facts| facts.outside = vec![outside(OutsideState::Joining, false)];
    assert_eq!(after(1_000, &waits), still(unexamined));
    // After a day it is not shown any more, and nobody knows that it is well.
    assert_eq!(after(5_001, &|_| {}), []);
    let left = |facts: &mut Facts| facts.outside = vec![outside(OutsideState::Left, false)];
    assert_eq!(after(1_000, &left), still(over));
    let back = |facts: &mut Facts| facts.members.push(member("n7", false));
    assert_eq!(after(1_000, &back), still(over));
    // It has become a keeper, which says more.
    let is_down = |facts: &mut Facts| {
        facts.outside = vec![outside(OutsideState::Evicted, true)];
        facts.keepers.push(keeper("n7", KeeperState::Down));
    };
    assert_eq!(
        after(1_000, &is_down),
        [(ProblemCode::KeeperDown, false, 0)]
    );
}
