//! What a dashboard is sent, and what `soloist doctor` asks for.

mod figures;
mod listing;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use soloist_api::dashboard::{Change, ChangeKind, KeeperState, Level, Overview, ProblemCode};
use soloist_api::session::{LockAnswer, LocksAnswer, NodeMessage};
use soloist_api::{Cluster, Event, EventKind};
use soloist_node::Locks;

use crate::cluster::{served, until};
use crate::sessions::Socket;

/// The next message that `read` accepts. Others are skipped.
async fn next<T>(socket: &mut Socket, read: impl Fn(NodeMessage) -> Option<T>) -> T {
    loop {
        if let Some(found) = read(socket.next().await) {
            return found;
        }
    }
}

async fn overview(socket: &mut Socket, wanted: impl Fn(&Overview) -> bool) -> Overview {
    next(socket, |message| match message {
        NodeMessage::Overview(overview) if wanted(&overview) => Some(*overview),
        _ => None,
    })
    .await
}

async fn change(socket: &mut Socket, wanted: impl Fn(&Change) -> bool) -> Change {
    next(socket, |message| match message {
        NodeMessage::Changes(changes) => changes.changes.into_iter().find(&wanted),
        _ => None,
    })
    .await
}

async fn locks(socket: &mut Socket, n: u64, prefix: &str) -> LocksAnswer {
    let query = json!({ "n": n, "sort": "wait", "prefix": prefix });
    socket.send(json!({ "locks": query })).await;
    next(socket, |message| match message {
        NodeMessage::Locks(answer) => Some(answer),
        _ => None,
    })
    .await
}

async fn lock(socket: &mut Socket, n: u64, name: &str) -> LockAnswer {
    socket
        .send(json!({ "lock": { "n": n, "lock": name } }))
        .await;
    next(socket, |message| match message {
        NodeMessage::Lock(answer) => Some(answer),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_dashboard_gets_everything_first_and_then_what_is_new() {
    let served = served(3).await;
    let (mut socket, _) = Socket::start(&served.https[1]).await;
    socket.send(json!({ "follow": { "n": 1 } })).await;
    assert_eq!(socket.done().await, 1);
    let NodeMessage::Overview(first) = socket.next().await else {
        panic!("the overview comes first");
    };
    assert_eq!((first.from.as_str(), first.members.len()), ("n2", 3));
    let NodeMessage::History(history) = socket.next().await else {
        panic!("the history comes next");
    };
    assert_eq!(history.points.len(), 900);
    let NodeMessage::Changes(changes) = socket.next().await else {
        panic!("the changes come last");
    };
    let kinds: Vec<ChangeKind> = changes.changes.iter().map(|change| change.kind).collect();
    assert!(kinds.contains(&ChangeKind::Elected), "{changes:?}");
    assert!(kinds.contains(&ChangeKind::Epoch), "{changes:?}");

    let well = overview(&mut socket, |overview| overview.level == Level::Ok).await;
    assert_eq!(well.problems, [], "{well:?}");
    let keepers: Vec<KeeperState> = well.keepers.iter().map(|keeper| keeper.state).collect();
    let leading = keepers.iter().filter(|state| **state == KeeperState::Leads);
    assert_eq!((keepers.len(), leading.count()), (3, 1), "{well:?}");

    // Entries on all nodes are in the history, as points of single seconds.
    for http in &served.https {
        let hold = http.hold("a").await;
        assert_eq!(http.release(&hold).await.status, 204);
    }
    let to_s = history.from_s + 900;
    let mut points_of: BTreeMap<u64, u64> = BTreeMap::new();
    while points_of.values().sum::<u64>() < 3 {
        let points = next(&mut socket, |message| match message {
            NodeMessage::History(history) => Some(history),
            _ => None,
        })
        .await;
        let known = points_of
            .last_key_value()
            .map_or(to_s, |(last, _)| last + 1);
        assert!(points.from_s <= known, "no second is left out");
        // A point of a known second replaces it.
        let points = (points.from_s..).zip(points.points);
        points_of.extend(points.map(|(second, point)| (second, point.map_or(0, |it| it.entries))));
    }
    assert_eq!(points_of.values().sum::<u64>(), 3);

    // A node that leaves is a change, and is no longer a member.
    served.cluster.nodes[2].stop(Duration::ZERO).await;
    let left = change(&mut socket, |change| change.kind == ChangeKind::Left).await;
    assert_eq!(left.node.as_deref(), Some("n3"));
    let without = overview(&mut socket, |overview| overview.members.len() == 2).await;
    let outside: Vec<&str> = without
        .outside
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(outside, ["n3"]);
    // It was a keeper.
    let problem = &without.problems[0];
    assert_eq!(
        (problem.code, problem.level),
        (ProblemCode::KeeperDown, Level::Critical)
    );
    let cluster: Cluster = served.https[0].get("/v1/cluster").await.ok();
    assert_eq!(cluster.departed.len(), 1, "{cluster:?}");
    assert_eq!(
        (
            cluster.departed[0].name.as_str(),
            cluster.departed[0].evicted
        ),
        ("n3", false)
    );
    let judged: Overview = served.https[0].get("/v1/overview").await.ok();
    assert_eq!(
        (judged.from.as_str(), judged.level),
        ("n1", Level::Critical)
    );

    socket.send(json!({ "unfollow": { "n": 2 } })).await;
    next(&mut socket, |message| match message {
        NodeMessage::Done(done) => (done.n == 2).then_some(()),
        _ => None,
    })
    .await;
    socket.send(json!({ "ping": { "n": 3 } })).await;
    assert!(matches!(socket.next().await, NodeMessage::Pong(_)));
    served.stop().await;
}

#[tokio::test]
async fn the_longest_wait_comes_first_and_a_lock_has_its_last_events() {
    let served = served(2).await;
    let mut held = Vec::new();
    for name in ["a-1", "a-2", "a-3", "b"] {
        held.push(served.https[0].hold(name).await);
    }
    let (mut socket, _) = Socket::start(&served.https[1]).await;
    socket.acquire(1, "a-3").await;
    until("it has waited for a while", async || {
        let info = served.waiting("a-3", 1).await;
        (info.waiters[0].waited_for_ms > 100).then_some(())
    })
    .await;
    socket.acquire(2, "a-2").await;
    served.waiting("a-2", 1).await;
    let answer = locks(&mut socket, 3, "a-").await;
    let names: Vec<&str> = answer
        .page
        .locks
        .iter()
        .map(|lock| lock.name.as_str())
        .collect();
    assert_eq!(
        (&names[..], answer.total),
        (&["a-3", "a-2", "a-1"][..], Some(3))
    );
    assert_eq!(locks(&mut socket, 4, "").await.total, Some(4));
    assert_eq!(locks(&mut socket, 5, "c").await.total, Some(0));

    assert_eq!(served.https[0].release(&held[2]).await.status, 204);
    socket.granted().await;
    let recent = lock(&mut socket, 6, "a-3").await.recent;
    // The first holder may have waited for the lock to come from the other node.
    let seen: Vec<(&str, &str)> = recent
        .iter()
        .skip_while(|event| event.event == EventKind::Waiting)
        .map(|event| (event.event.name(), event.node.as_str()))
        .collect();
    let expected = [
        ("acquired", "n1"),
        ("waiting", "n2"),
        ("released", "n1"),
        ("acquired", "n2"),
    ];
    assert_eq!(seen, expected);
    served.stop().await;
}

#[tokio::test]
async fn events_of_all_members_can_be_resumed_on_another_node() {
    let served = served(3).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let watch = |n: u64, after: Option<&str>| json!({ "watch": { "n": n, "all": true, "prefix": "a-", "after": after } });
    let event = |message| match message {
        NodeMessage::Event(event) => Some(event),
        _ => None,
    };
    socket.send(watch(1, None)).await;
    assert_eq!(socket.done().await, 1);
    // One by one, because the events of different nodes are ordered by their clocks.
    for (name, http) in [("a-1", 1), ("b-1", 1), ("a-2", 2)] {
        let hold = served.https[http].hold(name).await;
        assert_eq!(served.https[http].release(&hold).await.status, 204);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut events: Vec<Event> = Vec::new();
    let is_last =
        |event: &Event| (event.event, event.lock.as_str()) == (EventKind::Released, "a-2");
    while !events.last().is_some_and(is_last) {
        events.push(next(&mut socket, event).await);
    }
    // A lock that comes from another node is waited for.
    let others = events
        .iter()
        .filter(|event| event.event != EventKind::Waiting);
    let seen: Vec<(&str, &str)> = others
        .map(|event| (event.event.name(), event.lock.as_str()))
        .collect();
    let expected = [
        ("acquired", "a-1"),
        ("released", "a-1"),
        ("acquired", "a-2"),
        ("released", "a-2"),
    ];
    assert_eq!(seen, expected);

    // A reader that stopped after any of them continues there, on any node.
    for (index, before) in events.iter().enumerate() {
        let (mut other, _) = Socket::start(&served.https[2]).await;
        other.send(watch(1, before.cursor.as_deref())).await;
        assert_eq!(other.done().await, 1);
        for after in &events[index + 1..] {
            let resumed = next(&mut other, event).await;
            assert_eq!((&resumed.lock, resumed.event), (&after.lock, after.event));
            assert_eq!(resumed.at_unix_ms, after.at_unix_ms);
        }
    }
    // A waiter that gave up is there, and a node with other numbers has lost events.
    let hold = served.https[1].hold("a-3").await;
    let late = served.https[2]
        .acquire("a-3", json!({ "wait_ms": 1 }))
        .await;
    assert_eq!(late.status, 409);
    let gave_up = |message| event(message).filter(|event| event.event == EventKind::GaveUp);
    assert_eq!(next(&mut socket, gave_up).await.node, "n3");
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    let (mut other, _) = Socket::start(&served.https[2]).await;
    other.send(watch(1, Some("n2:1"))).await;
    let missed = next(&mut other, event).await;
    assert_eq!(
        (missed.event, missed.node.as_str()),
        (EventKind::Missed, "n2")
    );
    other.send(watch(2, Some("nonsense"))).await;
    next(&mut other, |message| match message {
        NodeMessage::Error(failure) => (failure.n == 2).then_some(()),
        _ => None,
    })
    .await;
    served.stop().await;
}

#[tokio::test]
async fn members_are_not_asked_while_no_client_follows() {
    let served = served(2).await;
    let frames = || {
        let links = served.cluster.nodes[0].links();
        links.iter().map(|link| link.frames_sent).sum::<u64>()
    };
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let (mut second, _) = Socket::start(&served.https[0]).await;
    socket.send(json!({ "follow": { "n": 1 } })).await;
    second.send(json!({ "follow": { "n": 1 } })).await;
    let before = frames();
    // Two dashboards share the questions: one to the other member for each look.
    let mut looks = 0;
    while looks < 3 {
        overview(&mut socket, |_| true).await;
        looks += 1;
    }
    assert!(
        frames() - before <= 2 * looks,
        "{} frames",
        frames() - before
    );
    drop((socket, second));
    until("the looks have ended", async || {
        let before = frames();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        (frames() == before).then_some(())
    })
    .await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_waits_of_many_locks_take_two_questions() {
    const LOCKS: usize = 20_000;
    let served = served(2).await;
    let nodes = &served.cluster.nodes;
    // Tasks of a fixed number, so that it takes no quota of waiters.
    let tasks = (0..40).map(|task| {
        let node = nodes[task % 2].clone();
        tokio::spawn(async move {
            let mut guards = Vec::new();
            for index in (task..LOCKS).step_by(40) {
                let lock = node.lock(&format!("a-{index:05}")).unwrap();
                guards.push(lock.acquire().await.unwrap());
            }
            guards
        })
    });
    let mut guards = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        guards.extend(task.await.unwrap());
    }
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let (mut waiter, _) = Socket::start(&served.https[1]).await;
    waiter.acquire(1, "a-19000").await;
    served.waiting("a-19000", 1).await;
    let frames = || {
        let links = nodes[0].links();
        links.iter().map(|link| link.frames_sent).sum::<u64>()
    };
    // To the other member: one for its longest waits, and one for those to show.
    let mut n = 0;
    let answer = until("both answer", async || {
        n += 1;
        let before = frames();
        let answer = locks(&mut socket, n, "a-").await;
        assert!(frames() - before <= 2, "{} questions", frames() - before);
        answer.page.silent.is_empty().then_some(answer)
    })
    .await;
    assert_eq!(answer.total, Some(LOCKS as u64));
    assert_eq!(answer.page.locks.len(), 1000);
    let first = &answer.page.locks[0];
    assert_eq!((first.name.as_str(), first.waiting), ("a-19000", 1));
    // It is held on one of the nodes, and waited for on the other.
    assert!(first.holder.is_some());

    // Other dashboards get what was found just now.
    let before = frames();
    let (mut second, _) = Socket::start(&served.https[0]).await;
    for n in 1..=20 {
        assert_eq!(locks(&mut second, n, "a-").await.total, answer.total);
    }
    assert!(frames() - before <= 20, "{} questions", frames() - before);
    drop(guards);
    served.stop().await;
}

#[tokio::test]
async fn a_long_cursor_does_not_make_events_long() {
    let served = served(2).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let unknown: Vec<String> = (0..5000).map(|node| format!("x{node}:0")).collect();
    let cursor = unknown.join(",");
    let watch = json!({ "n": 1, "all": true, "after": cursor });
    socket.send(json!({ "watch": watch })).await;
    assert_eq!(socket.done().await, 1);
    let hold = served.https[1].hold("a").await;
    let event = next(&mut socket, |message| match message {
        NodeMessage::Event(event) if event.event == EventKind::Acquired => Some(event),
        _ => None,
    })
    .await;
    let cursor = event.cursor.expect("a cursor");
    assert!(cursor.len() < 500, "{} bytes", cursor.len());
    assert!(cursor.contains("n2:"), "{cursor}");
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn a_member_that_did_not_answer_at_first_repeats_no_old_events() {
    let served = served(2).await;
    let hold = served.https[1].hold("old").await;
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // The cursor of a reader that began now, and that nobody has answered.
    let cursor = format!("@:{:x}", now.as_millis());
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let watch = json!({ "n": 1, "all": true, "after": cursor });
    socket.send(json!({ "watch": watch })).await;
    assert_eq!(socket.done().await, 1);
    let hold = served.https[1].hold("new").await;
    let first = next(&mut socket, |message| match message {
        NodeMessage::Event(event) => Some(event),
        _ => None,
    })
    .await;
    assert_eq!((first.lock.as_str(), first.node.as_str()), ("new", "n2"));
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    served.stop().await;
}

#[tokio::test]
async fn watchers_share_their_questions() {
    const WATCHERS: u64 = 20;
    let served = served(2).await;
    let frames = || {
        let links = served.cluster.nodes[0].links();
        links.iter().map(|link| link.frames_sent).sum::<u64>()
    };
    let mut sockets = Vec::new();
    for watcher in 0..WATCHERS {
        let (mut socket, _) = Socket::start(&served.https[0]).await;
        let watch = json!({ "n": 1, "all": true, "prefix": format!("a-{watcher}") });
        socket.send(json!({ "watch": watch })).await;
        assert_eq!(socket.done().await, 1);
        sockets.push(socket);
    }
    let (before, since) = (frames(), Instant::now());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let rounds = since.elapsed().as_millis() as u64 / 200 + 2;
    let questions = frames() - before;
    assert!(
        questions <= rounds,
        "{questions} questions in {rounds} rounds"
    );
    // Each still gets its events.
    let hold = served.https[1].hold("a-7").await;
    let got = next(&mut sockets[7], |message| match message {
        NodeMessage::Event(event) => Some(event),
        _ => None,
    })
    .await;
    assert_eq!(got.lock, "a-7");
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    served.stop().await;
}
