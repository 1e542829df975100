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

/// n4, whose link to n5 is down, whose certificate expires tomorrow, whose clock is slow, whose
/// lease was not renewed, whose version differs, and where a client waits.
fn troubled() -> Facts {
    let mut facts = healthy();
    let report = report(&mut facts, 3);
    report.certificate_ends_ms = Some(NOW_MS + DAY_MS);
    report.links_down = vec![("n5".to_owned(), 3_000)];
    report.version = "0.2.0".to_owned();
    report.oldest_wait = Some(("x".to_owned(), "ledger".to_owned(), WAIT_UNUSUAL_MS));
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
    alone.standing = Standing::Outside {
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
    let overview = later(6_000).judge(&mut problems);
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
fn a_wait_behind_a_longer_one_is_not_called_over() {
    let mut problems = SeenProblems::default();
    let first = troubled().judge(&mut problems);
    assert!(seen(&first).contains(&(ProblemCode::LongWait, false, 0)));
    // The longest wait ended. Others for the same lock may go on behind a wait for another one,
    // which is all that the node tells.
    let mut facts = later(1_000);
    let longer = ("y".to_owned(), "ledger".to_owned(), WAIT_UNUSUAL_MS);
    report(&mut facts, 3).oldest_wait = Some(longer);
    let second = facts.judge(&mut problems);
    let is_wait = |(code, ..): &(ProblemCode, bool, u64)| *code == ProblemCode::LongWait;
    assert!(!seen(&second).iter().any(is_wait), "{second:?}");
}
