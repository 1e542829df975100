//! Buffers are bounded on both sides.

use soloist_transport::links::frame::DATA_HEADER_BYTES;
use soloist_transport::links::{LinkChange, SendError};

use crate::net::{B, listener, pair, roster, settings, start, until};

const FRAME: usize = 1000;
const BUFFER: usize = 256 << 10;
const FIT: usize = BUFFER / (FRAME + DATA_HEADER_BYTES);

#[tokio::test]
async fn a_full_buffer_is_reported_once() {
    let (at_a, a) = listener().await;
    // Nothing accepts at b's address. The open listener keeps the port from being reused.
    let (_at_b, b) = listener().await;
    let mut settings = settings("a");
    settings.limits.buffer_bytes = BUFFER;
    let a = start(settings, roster(&[("a", &a), ("b", &b)]), at_a);
    for _ in 0..FIT {
        a.links.send(B, &[0; FRAME]).unwrap();
    }
    for _ in 0..3 {
        let sent = a.links.send(B, &[0; FRAME]);
        let Err(SendError::Full(full)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!((full.buffered_frames, full.bytes_max), (FIT, BUFFER));
    }
    let fulls = || {
        let changes = a.seen.changes();
        changes
            .iter()
            .filter(|(peer, change)| peer == "b" && *change == LinkChange::Full)
            .count()
    };
    until("the handler is told", || fulls() > 0).await;
    assert_eq!(fulls(), 1);
    assert_eq!(a.links.counters().full, 3);
    assert!(
        a.links.send(B, b"small").is_ok(),
        "what fits is still taken"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_reader_does_not_grow_memory() {
    let (a, b) = pair(|settings| settings.limits.buffer_bytes = BUFFER).await;
    let mut accepted = 0;
    let gate = b.seen.shut();
    // Far more than the buffer holds. Every unacknowledged frame counts, wherever it is.
    for number in 0..10 * FIT as u32 {
        let mut frame = [0; FRAME];
        frame[..4].copy_from_slice(&number.to_le_bytes());
        accepted += usize::from(a.links.send(B, &frame).is_ok());
        tokio::task::yield_now().await;
    }
    until("the reader waits", || b.seen.is_waiting()).await;
    assert_eq!(accepted, FIT, "no more than the buffer holds");
    assert!(a.links.status()[1].buffered_bytes <= BUFFER);
    drop(gate);
    until("what was accepted arrives", || b.seen.count() == accepted).await;
    until("and is acknowledged", || {
        a.links.status()[1].buffered_frames == 0
    })
    .await;
    a.links.send(B, b"room again").unwrap();
    until("and more", || b.seen.count() == accepted + 1).await;
}
