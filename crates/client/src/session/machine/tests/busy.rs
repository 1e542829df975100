//! Refusals because the sessions of others have too many unseen outcomes.

use super::*;

/// Lets time pass until the next call of `tick` that sends something. Returns when that is.
fn next_sent(played: &mut Played, mut now: u64) -> u64 {
    loop {
        let next = played.machine.tick(at(now), &mut played.out);
        if !played.out.send.is_empty() {
            return now;
        }
        let Next::At(moment) = next else {
            panic!("{next:?}");
        };
        let ms = moment.since(at(0)).as_millis() as u64;
        assert!(ms > now, "it is due at once, and sends nothing");
        now = ms;
    }
}

fn wait_until(played: &mut Played, ms: u64) -> RequestId {
    let wish = Wish {
        wait: Wait::Until(at(ms)),
        ..wish("a")
    };
    let id = played.machine.acquire(at(0), wish, &mut played.out);
    played.sent();
    id
}

#[test]
fn a_busy_node_is_asked_again_after_pauses_that_grow() {
    let mut played = Played::connected();
    let id = played.acquire(0);
    let (mut now, mut n) = (0, 1);
    let mut pauses = Vec::new();
    for _ in 0..10 {
        played.receive(now, error(n, Code::Busy));
        assert!(played.out.is_sooner, "the driver must look");
        assert!(played.sent().is_empty(), "it is not sent again at once");
        let begun = now;
        now = next_sent(&mut played, now);
        pauses.push(now - begun);
        let sent = played.sent();
        let again = sent[0].strip_prefix("acquire ").expect("it is sent again");
        n = again.parse().unwrap();
        // A ping may be due as well.
        let last = played.machine.last_n;
        let pong = Pong {
            n: last,
            promise: promise(last, 3000),
        };
        played.receive(now, NodeMessage::Pong(pong));
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    let last = played.machine.last_n;
    played.receive(now, granted(n, 1, promise(last, 3000)));
    assert!(matches!(played.machine.acquired(id), Some(Ok(_))));
}

#[test]
fn pauses_are_short_again_after_an_outcome_was_read() {
    let mut played = Played::connected();
    let (first, second) = (played.acquire(0), played.acquire(0));
    played.receive(0, error(2, Code::Busy));
    let now = next_sent(&mut played, 0);
    assert_eq!(played.sent(), ["acquire 3"]);
    played.receive(now, granted(1, 1, promise(3, 3000)));
    assert!(matches!(played.machine.acquired(first), Some(Ok(_))));
    // The next message reports the grant.
    played.receive(now, error(3, Code::Busy));
    assert_eq!(played.sent(), ["acquire 4"]);
    played.receive(now, error(4, Code::Busy));
    assert_eq!(next_sent(&mut played, now), now + 10);
    assert_eq!(played.sent(), ["acquire 5"]);
    assert!(played.machine.acquired(second).is_none());
}

#[test]
fn a_request_that_is_refused_as_busy_keeps_its_deadline() {
    let mut played = Played::connected();
    let (late, waits) = (wait_until(&mut played, 25), played.acquire(0));
    for n in [1, 2] {
        played.receive(0, error(n, Code::Busy));
    }
    assert_eq!(next_sent(&mut played, 0), 10);
    assert_eq!(played.sent(), ["acquire 3", "acquire 4"]);
    for n in [3, 4] {
        played.receive(10, error(n, Code::Busy));
    }
    let next = played.machine.tick(at(10), &mut played.out);
    assert_eq!(next, Next::At(at(25)), "before the pause is over");
    played.machine.tick(at(25), &mut played.out);
    let Some(Err(Denial::Refused(failure))) = played.machine.acquired(late) else {
        panic!("its time is up");
    };
    assert_eq!((failure.n, failure.code), (3, Code::Busy));
    assert!(played.sent().is_empty());
    assert_eq!(next_sent(&mut played, 25), 30);
    assert_eq!(played.sent(), ["acquire 5"]);
    assert!(played.machine.acquired(waits).is_none());
}

#[test]
fn a_request_that_may_not_wait_does_not_wait_for_a_busy_node() {
    let mut played = Played::connected();
    let wish = Wish {
        wait: Wait::Try,
        ..wish("a")
    };
    let id = played.machine.acquire(at(0), wish, &mut played.out);
    played.sent();
    played.receive(0, error(1, Code::Busy));
    let answer = played.machine.acquired(id);
    assert!(
        matches!(&answer, Some(Err(Denial::Refused(failure))) if failure.code == Code::Busy),
        "{answer:?}"
    );
    assert!(played.machine.is_idle());
}

#[test]
fn a_dropped_request_is_not_sent_again_after_its_pause() {
    let mut played = Played::connected();
    let (dropped, waits) = (played.acquire(0), played.acquire(0));
    played.receive(0, error(1, Code::Busy));
    played.machine.drop_request(at(1), dropped, &mut played.out);
    assert_eq!(played.sent(), ["cancel 3 of 1"]);
    played.machine.tick(at(10), &mut played.out);
    assert!(played.sent().is_empty());
    assert!(played.machine.acquired(waits).is_none());
}

/// The repeated outcomes come first: they may have the answer.
#[test]
fn a_resume_sends_refused_messages_again_once() {
    let mut played = Played::connected();
    let id = played.acquire(0);
    played.receive(0, error(1, Code::Busy));
    played.resume(5, resumed(1, 0, &[], &[]));
    assert_eq!(played.sent(), ["acquire 2"]);
    played.machine.tick(at(1_005), &mut played.out);
    assert_eq!(played.sent(), ["ping 3"]);
    assert!(played.machine.acquired(id).is_none());
}
