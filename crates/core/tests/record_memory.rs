//! How much memory a node needs to remember the last minutes.

use std::time::Duration;

use soloist_api::{EndReason, Fence, LockName};
use soloist_core::locks::LockEvent;
use soloist_core::record::{
    DEPARTURES_MAX, EVENTS_KEPT, JOURNAL_MAX, Journal, Note, Recorder, SECONDS_KEPT,
};

/// An event whose names have this length.
fn event(number: usize, length: usize) -> LockEvent {
    let name = |kind: char| format!("{kind}{number:>width$}", width = length - 1);
    LockEvent::Ended {
        hold: "00112233445566778899aabbccddeeff".parse().unwrap(),
        lock: LockName::new(&name('l')).unwrap(),
        owner: name('o').into(),
        fence: Fence::first_of(7),
        end: EndReason::Expired,
        held: Duration::from_millis(3),
    }
}

/// Highest number of bytes that both take, if something happens in every second for half an hour,
/// with names of this length; and with as many evictions, if wanted.
fn bytes(length: usize, has_evictions: bool) -> u64 {
    let mut kept = None;
    let measured = allocation_counter::measure(|| {
        let mut recorder = Recorder::new(1);
        let mut journal = Journal::new(1);
        for number in 0..4 * EVENTS_KEPT.max(JOURNAL_MAX) {
            let at_ms = 1000 * (number as u64 / 9);
            let event = event(number, length);
            recorder.note(at_ms, &event);
            if let LockEvent::Ended { lock, .. } = &event {
                // The reasons alternate, so that losses do not share a note.
                let reasons = [EndReason::Expired, EndReason::EpochLost];
                journal.lost(at_ms, lock, reasons[number % 2]);
            }
            if has_evictions {
                let evicted = Note::Evicted {
                    node: format!("{number:>63}"),
                    epoch: number as u64,
                    reason: "r".repeat(200),
                    holds: Some(1),
                };
                journal.note(at_ms, evicted);
            }
        }
        kept = Some((recorder, journal));
    });
    let (recorder, journal) = kept.unwrap();
    assert_eq!(recorder.seconds().from(0).count() as u64, SECONDS_KEPT);
    assert_eq!(recorder.events().iter().count(), EVENTS_KEPT);
    let notes = journal.after(0).map(|notes| notes.len());
    let expected = match has_evictions {
        true => [DEPARTURES_MAX, JOURNAL_MAX, JOURNAL_MAX],
        false => [0, 0, JOURNAL_MAX],
    };
    assert_eq!(notes, expected);
    measured.bytes_max
}

#[test]
fn what_is_remembered_takes_1_5_mb_and_at_most_5_mb() {
    let (usual, most) = (bytes(20, false), bytes(256, true));
    println!("{usual} bytes with short names, {most} bytes with the longest");
    assert!(usual < 3 << 19, "{usual}");
    assert!(most < 5 << 20, "{most}");
}
