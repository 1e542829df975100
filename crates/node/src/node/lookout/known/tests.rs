use soloist_api::EndReason;
use soloist_api::dashboard::{ChangeKind, OutsideState};
use soloist_core::record::{Note, OwnMembership, Report};

use super::super::facts::outside;
use super::*;

const NODE: &str = "n2";
const LEASE: Duration = Duration::from_secs(3);
const MEMBER: OwnMembership = OwnMembership::Member {
    lease_left_ms: 2_500,
};

/// A node that has recorded since second 0, and has two entries in each second.
fn kept(now_s: u64, seconds_from: u64, notes: Vec<(u64, Noted)>) -> Kept {
    let entries = |entries| Second {
        entries,
        ..Second::default()
    };
    // The second that it is now has only begun.
    let second = |at| (at, entries(if at < now_s { 2 } else { 1 }));
    Kept {
        report: Report::default(),
        since_s: 0,
        now_s,
        seconds: (seconds_from..=now_s).map(second).collect(),
        notes,
    }
}

fn learn(known: &mut Known, now_s: u64, kept: Option<Kept>) {
    let answer = kept.map(|kept| (kept, 0.4));
    let mut answers = Answers {
        led: None,
        kept: BTreeMap::from([(NODE.to_owned(), answer)]),
    };
    known.learn(&mut answers, now_s, true, LEASE);
}

/// Looks at one node, whose clock may be behind or ahead.
fn look(known: &mut Known, now_s: u64, ahead_s: i64) {
    known.begin(now_s);
    let from = known.seconds_from(NODE, now_s);
    let kept = kept(now_s.saturating_add_signed(ahead_s), from, Vec::new());
    learn(known, now_s, Some(kept));
}

fn look_in_vain(known: &mut Known, now_s: u64) {
    known.begin(now_s);
    learn(known, now_s, None);
}

/// The entries of these seconds.
fn entries(known: &Known, seconds: std::ops::Range<u64>) -> Vec<Option<u64>> {
    let from_s = known.history.from_s;
    let point = |second: u64| known.history.points[(second - from_s) as usize];
    let points = seconds.map(|second| point(second).map(|point| point.entries));
    points.collect()
}

#[test]
fn each_second_of_a_node_counts_once_whatever_its_clock_shows() {
    for ahead_s in -5..=5 {
        let mut known = Known::default();
        for now_s in 10_000..10_050 {
            look(&mut known, now_s, ahead_s);
            // Some looks are early, because there was news.
            look(&mut known, now_s, ahead_s);
        }
        let counted = entries(&known, 9_200..10_040);
        assert_eq!(counted, vec![Some(2); 840], "{ahead_s}");
    }
}

#[test]
fn a_node_that_missed_looks_tells_what_happened_meanwhile() {
    let mut known = Known::default();
    look(&mut known, 10_000, 0);
    (10_001..10_010).for_each(|now_s| look_in_vain(&mut known, now_s));
    assert_eq!(entries(&known, 9_998..10_000), [Some(2), Some(0)]);
    look(&mut known, 10_010, 0);
    assert_eq!(entries(&known, 9_998..10_009), vec![Some(2); 11]);
}

#[test]
fn seconds_without_a_lease_are_unknown_until_the_members_have_told() {
    let mut known = Known::default();
    look(&mut known, 10_000, 0);
    for now_s in 10_001..10_005 {
        let mut alone = Answers {
            led: None,
            kept: BTreeMap::new(),
        };
        known.begin(now_s);
        known.learn(&mut alone, now_s, false, LEASE);
    }
    assert_eq!(entries(&known, 9_998..10_002), [Some(2), None, None, None]);
    look_in_vain(&mut known, 10_005);
    assert_eq!(entries(&known, 9_999..10_000), [None]);
    look(&mut known, 10_006, 0);
    assert_eq!(entries(&known, 9_998..10_005), vec![Some(2); 7]);
}

#[test]
fn a_clock_that_is_set_back_does_not_freeze_the_history() {
    let mut known = Known::default();
    look(&mut known, 10_000, 0);
    // The clocks of all.
    look(&mut known, 9_000, 0);
    let end = known.history.from_s + known.history.points.len() as u64;
    assert_eq!(end, 8_999);
    assert_eq!(entries(&known, 8_900..8_999), vec![Some(2); 99]);
    // The clock of a member: the look after that counts all of its seconds again.
    for now_s in 9_001..9_010 {
        look(&mut known, now_s, -3);
    }
    assert_eq!(entries(&known, 8_900..9_000), vec![Some(2); 100]);
}

fn lost(number: u64, at_ms: u64, holds: u32) -> (u64, Noted) {
    let note = Note::Lost {
        reason: EndReason::Expired,
        holds,
        locks: vec!["x".to_owned()],
    };
    (number, Noted { at_ms, note })
}

#[test]
fn a_loss_that_grows_is_asked_for_again() {
    let mut known = Known::default();
    let tell = |known: &mut Known, notes| {
        let kept = kept(10, 10, notes);
        learn(known, 10, Some(kept));
        known.changes[0].what.clone()
    };
    let first = tell(&mut known, vec![lost(500, 10_000, 1)]);
    assert_eq!(first, "1 hold lost on n2");
    assert_eq!(known.notes_after(NODE), 499);
    let next = tell(&mut known, vec![lost(500, 10_000, 50)]);
    assert_eq!(next, "50 holds lost on n2");
    assert_eq!(known.changes.len(), 1);
}

/// An eviction, and then losses at many nodes.
fn eviction_and_losses() -> Known {
    let mut known = Known::default();
    let gone = Note::Installed {
        epoch: 8,
        before: Some(7),
        members: 2,
        joined: Vec::new(),
        gone: vec!["n3".to_owned()],
        stood_still_us: None,
    };
    let noted = Noted {
        at_ms: 1_000,
        note: gone,
    };
    learn(&mut known, 10, Some(kept(10, 10, vec![(1, noted)])));
    for node in 0..10 {
        let losses = (1..=JOURNAL_MAX as u64).map(|number| lost(number, 2_000 * number, 1));
        let mut answers = Answers {
            led: None,
            kept: BTreeMap::from([(
                format!("m{node}"),
                Some((kept(10, 10, losses.collect()), 0.4)),
            )]),
        };
        known.learn(&mut answers, 10, true, LEASE);
    }
    known
}

#[test]
fn an_evicted_node_is_outside_whatever_is_lost_afterwards() {
    let known = eviction_and_losses();
    let losses = known.changes.iter();
    let losses = losses.filter(|change| change.kind == ChangeKind::Lost);
    assert_eq!(losses.count(), JOURNAL_MAX);
    let outside = outside(&known.changes, &[], None, &|_| false, 2_000_000, &MEMBER);
    let states: Vec<(&str, OutsideState)> = outside
        .iter()
        .map(|node| (node.name.as_str(), node.state))
        .collect();
    assert_eq!(states, [("n3", OutsideState::Evicted)]);
}

#[test]
fn what_was_dropped_is_not_asked_for_again() {
    let mut known = eviction_and_losses();
    assert_eq!(known.local.len(), NOTES_MAX);
    let old = (1..=10).map(|number| lost(number, number, 1)).collect();
    learn(&mut known, 10, Some(kept(10, 10, old)));
    assert!(!known.local.contains_key(&(NODE.to_owned(), 1)));
    assert_eq!(known.notes_after(NODE), 9);
}

#[test]
fn an_eviction_outlives_later_epochs_until_the_node_joins_again() {
    let mut known = eviction_and_losses();
    let installed = |epoch: u64, joined: &[&str]| {
        let note = Note::Installed {
            epoch,
            before: Some(epoch - 1),
            members: 2,
            joined: joined.iter().map(|name| (*name).to_owned()).collect(),
            gone: Vec::new(),
            stood_still_us: None,
        };
        let at_ms = 1_000 * epoch;
        (epoch, Noted { at_ms, note })
    };
    let is_gone = |known: &Known| {
        let mut changes = known.changes.iter();
        changes.any(|change| change.kind == ChangeKind::Evicted)
    };
    let epochs = |from: u64| (from..=from + NOTES_MAX as u64).map(|epoch| installed(epoch, &[]));
    learn(&mut known, 10, Some(kept(10, 10, epochs(9).collect())));
    assert!(is_gone(&known));
    assert_eq!(known.membership.len(), NOTES_MAX);
    learn(
        &mut known,
        10,
        Some(kept(10, 10, vec![installed(5_000, &["n3"])])),
    );
    learn(&mut known, 10, Some(kept(10, 10, epochs(5_001).collect())));
    assert!(!is_gone(&known));
}

/// The lost holds of all seconds.
fn lost_in_all(known: &Known) -> u64 {
    let points = known.history.points.iter().flatten();
    points.map(|point| point.lost).sum()
}

/// A member answers until it dies, and is evicted 3 s later. The leader of that time, if it lives,
/// knows that it had this many holds.
fn member_dies(holds: Option<u32>) -> Known {
    let mut known = Known::default();
    for now_s in 990..1_000 {
        known.begin(now_s);
        let mut dying = kept(now_s, now_s, Vec::new());
        dying.report.holds = 7;
        tell(
            &mut known,
            now_s,
            [("n1", kept(now_s, now_s, Vec::new())), ("n9", dying)],
        );
    }
    assert_eq!(lost_in_all(&known), 0);
    let evicted = Note::Evicted {
        node: "n9".to_owned(),
        epoch: 8,
        reason: "its lease expired".to_owned(),
        holds,
    };
    let installed = Note::Installed {
        epoch: 8,
        before: Some(7),
        members: 1,
        joined: Vec::new(),
        gone: vec!["n9".to_owned()],
        stood_still_us: None,
    };
    let at_ms = 1_003_000;
    let notes = [evicted, installed].map(|note| Noted { at_ms, note });
    let notes = (1..).zip(notes).collect();
    known.begin(1_006);
    tell(&mut known, 1_006, [("n1", kept(1_006, 1_006, notes))]);
    known
}

/// A look at which these nodes answer.
fn tell<const N: usize>(known: &mut Known, now_s: u64, kept: [(&str, Kept); N]) {
    let kept = kept.map(|(name, kept)| (name.to_owned(), Some((kept, 0.4))));
    let mut answers = Answers {
        led: None,
        kept: kept.into(),
    };
    known.learn(&mut answers, now_s, true, LEASE);
}

#[test]
fn the_holds_of_a_member_that_died_are_lost() {
    for (holds, lost) in [(Some(2), 2), (Some(0), 0), (None, 7)] {
        let mut known = member_dies(holds);
        let at = |known: &Known| {
            let point = known.history.points[(1_003 - known.history.from_s) as usize];
            point.map(|point| point.lost)
        };
        assert_eq!(
            (at(&known), lost_in_all(&known)),
            (Some(lost), lost),
            "{holds:?}"
        );
        // It is restarted, and knows nothing of its former life.
        known.begin(1_010);
        let mut restarted = kept(1_010, 1_010, Vec::new());
        restarted.since_s = 1_005;
        tell(&mut known, 1_010, [("n9", restarted)]);
        assert_eq!(lost_in_all(&known), lost, "{holds:?}");
    }
}

#[test]
fn a_member_that_lived_on_tells_its_losses_itself() {
    let mut known = member_dies(Some(2));
    known.begin(1_010);
    let mut back = kept(1_010, 1_010, Vec::new());
    let lost = Second {
        lost: 1,
        ..Second::default()
    };
    // When its lease expired it had one hold only.
    back.seconds = vec![(1_002, lost)];
    tell(&mut known, 1_010, [("n9", back)]);
    assert_eq!(lost_in_all(&known), 1);
}
