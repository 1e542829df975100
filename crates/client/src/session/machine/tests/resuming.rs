//! Broken connections, sessions that end, and clients that move.

use super::*;

#[test]
fn unanswered_messages_are_sent_again_with_their_numbers() {
    let (mut played, id) = Played::held();
    let other = played.acquire(0);
    played.machine.release(at(1), id, &mut played.out);
    assert_eq!(played.sent(), ["release 3 of 1"]);
    // The node has handled number 2 before the connection broke.
    played.resume(100, resumed(2, 1, &[1], &[2]));
    assert_eq!(played.sent(), ["release 3 of 1"]);
    played.receive(100, done(3, 2));
    assert!(matches!(played.machine.released(id), Some(Ok(()))));
    played.receive(100, granted(2, 3, promise(3, 3000)));
    assert!(matches!(played.machine.acquired(other), Some(Ok(_))));
}

#[test]
fn a_grant_that_was_not_read_is_read_after_a_resume_and_only_once() {
    let mut played = Played::connected();
    let id = played.acquire(0);
    played.resume(100, resumed(1, 1, &[1], &[]));
    assert!(played.machine.acquired(id).is_none(), "a list is no grant");
    played.receive(100, granted(1, 1, promise(0, 3000)));
    assert!(matches!(played.machine.acquired(id), Some(Ok(_))));
    assert_eq!(played.until(id), at(3_100));
    played.machine.drop_request(at(200), id, &mut played.out);
    assert_eq!(played.sent(), ["release 2 of 1"]);
    played.receive(200, done(2, 2));
    played.receive(200, granted(1, 1, promise(2, 3000)));
    assert!(played.sent().is_empty(), "a repeated outcome has no effect");
    let Some(resume) = played.machine.hello(None).resume else {
        panic!("it does not resume");
    };
    assert_eq!(resume.seen, 2);
}

#[test]
fn a_request_whose_refusal_was_lost_is_sent_again_with_a_new_number() {
    let (mut played, _) = Played::held();
    let id = played.acquire(0);
    // Handled, but neither waiting nor held, and without an outcome up to `last_seq`.
    played.resume(100, resumed(2, 2, &[1], &[]));
    assert!(played.sent().is_empty(), "the outcome may still come");
    let lost = Lost {
        hold: 1,
        seq: 2,
        reason: EndReason::EpochLost,
        promise: promise(0, 0),
    };
    played.receive(100, NodeMessage::Lost(lost));
    assert_eq!(played.sent(), ["acquire 3"]);
    played.receive(100, granted(3, 3, promise(3, 3000)));
    assert!(matches!(played.machine.acquired(id), Some(Ok(_))));
}

#[test]
fn a_hold_or_request_that_nobody_knows_is_cancelled_after_a_resume() {
    let mut played = Played::connected();
    played.machine.last_n = 7;
    played.resume(100, resumed(7, 3, &[5], &[7]));
    assert_eq!(played.sent(), ["cancel 8 of 5", "cancel 9 of 7"]);
}

#[test]
fn a_hold_that_the_node_does_not_have_is_lost() {
    let (mut played, id) = Played::held();
    played.resume(100, resumed(1, 1, &[], &[]));
    let loss = played.loss(id).expect("it is lost");
    assert_eq!((loss.reason, loss.since), (EndReason::Forgotten, at(100)));
}

#[test]
fn numbers_are_sent_in_their_order_also_after_a_resume() {
    let (mut played, id) = Played::held();
    played.machine.cut();
    let other = played.acquire(2_900);
    // Its promise has passed by the time of the resume: it is released with a new number.
    played.resume(3_000, resumed(1, 1, &[1], &[]));
    assert_eq!(played.sent(), ["acquire 2", "release 3 of 1"]);
    assert!(played.loss(id).is_some());
    assert!(played.machine.acquired(other).is_none());
}

#[test]
fn busy_requests_are_sent_again_with_what_was_seen() {
    let mut played = Played::connected();
    let count = UNSEEN_MAX as u64;
    for _ in 0..count {
        played.acquire(0);
    }
    let id = played.acquire(0);
    for n in 1..=count {
        played.receive(1, granted(n, n, promise(count, 3000)));
    }
    played.receive(1, error(count + 1, Code::Busy));
    let sent = played.out.send.pop();
    let Some(ClientMessage::Acquire(acquire)) = sent else {
        panic!("it is not sent again: {sent:?}");
    };
    assert_eq!((acquire.n, acquire.seen), (count + 2, Some(count)));
    played.receive(1, granted(count + 2, count + 1, promise(count + 2, 3000)));
    assert!(matches!(played.machine.acquired(id), Some(Ok(_))));
}

#[test]
fn a_loss_with_notice_leaves_time_to_release() {
    let (mut played, id) = Played::held();
    let lost = Lost {
        hold: 1,
        seq: 2,
        reason: EndReason::NodeStopped,
        promise: promise(1, 3000),
    };
    played.receive(1_000, NodeMessage::Lost(lost));
    let loss = played.loss(id).expect("it is told");
    assert_eq!(
        (loss.reason, loss.since),
        (EndReason::NodeStopped, at(3_000))
    );
    played.machine.release(at(2_000), id, &mut played.out);
    assert_eq!(played.sent(), ["release 2 of 1"]);
    played.receive(2_000, done(2, 3));
    assert!(matches!(played.machine.released(id), Some(Ok(()))));
}

#[test]
fn a_session_that_has_ended_loses_its_holds_and_keeps_its_waiters() {
    let (mut played, id) = Played::held();
    let waits = played.acquire(0);
    played.machine.end(at(500), &mut played.out);
    let loss = played.loss(id).expect("it is lost");
    assert_eq!((loss.reason, loss.since), (EndReason::Forgotten, at(500)));
    assert!(played.machine.hello(None).resume.is_none());
    played
        .machine
        .welcome(at(600), at(600), welcome(), &mut played.out);
    assert_eq!(played.sent(), ["acquire 2"]);
    played.receive(600, granted(2, 1, promise(2, 3000)));
    assert!(matches!(played.machine.acquired(waits), Some(Ok(_))));
}

#[test]
fn a_release_in_a_session_that_has_ended_is_done() {
    let (mut played, id) = Played::held();
    played.machine.release(at(100), id, &mut played.out);
    played.machine.end(at(5_000), &mut played.out);
    assert!(matches!(played.machine.released(id), Some(Ok(()))));
    assert!(played.machine.is_idle());
}

#[test]
fn requests_that_are_given_up_are_cancelled_when_the_session_is_resumed() {
    let mut played = Played::connected();
    let id = played.acquire(0);
    played.machine.cut();
    played
        .machine
        .give_up(at(10), &"gone", |_| true, &mut played.out);
    let answer = played.machine.acquired(id);
    assert!(
        matches!(answer, Some(Err(Denial::GivenUp("gone")))),
        "{answer:?}"
    );
    played.resume(100, resumed(1, 1, &[1], &[]));
    assert_eq!(played.sent(), ["cancel 2 of 1"]);
    played.receive(100, granted(1, 1, promise(0, 3000)));
    assert!(played.sent().is_empty());
}

#[test]
fn a_promise_from_a_message_of_an_earlier_connection_is_refused() {
    let (mut played, _) = Played::held();
    played.resume(2_000, resumed(1, 1, &[1], &[]));
    let pong = NodeMessage::Pong(Pong {
        n: 1,
        promise: promise(1, 3000),
    });
    let received = played.machine.receive(at(2_000), pong, &mut played.out);
    assert!(received.is_err());
}

#[test]
fn a_session_that_was_left_names_what_was_read_and_uses_no_later_grant() {
    let (mut played, id) = Played::held();
    let waits = played.acquire(0);
    played.machine.drop_request(at(1), id, &mut played.out);
    assert_eq!(played.sent(), ["release 3 of 1"]);
    played.machine.cut();
    let left = played.machine.leave(at(10), &"moved", &mut played.out);
    let left = left.expect("it began");
    assert_eq!((left.node.as_str(), left.seen), ("n1", 1));
    assert_eq!(left.release, [1]);
    let denied = |answer| matches!(answer, Some(Err(Denial::GivenUp("moved"))));
    assert!(denied(played.machine.acquired(waits)));
    let late = played.acquire(20);
    assert!(denied(played.machine.acquired(late)), "it is not sent");
    // The old node is back, and has granted the request meanwhile.
    played.resume(100, resumed(2, 2, &[2], &[]));
    assert_eq!(played.sent(), ["release 3 of 1", "cancel 4 of 2"]);
    played.receive(100, granted(2, 2, promise(0, 3000)));
    assert!(played.sent().is_empty());
}

#[test]
fn a_hold_is_kept_in_a_session_that_was_left() {
    let (mut played, id) = Played::held();
    played.machine.cut();
    played.machine.leave(at(10), &"moved", &mut played.out);
    played.resume(100, resumed(1, 1, &[1], &[]));
    assert_eq!(played.until(id), at(3_100));
    played.machine.release(at(200), id, &mut played.out);
    assert_eq!(played.sent(), ["release 2 of 1"]);
}
