//! Send and receive windows: over a connection that breaks at any point, every frame arrives once
//! and in order.

use proptest::prelude::*;
use soloist_transport::links::frame::{DATA_HEADER_BYTES, Decoder, RECORD_BYTES_MAX, Record};
use soloist_transport::links::window::{Full, ReceiveWindow, SendWindow, WindowError};

fn pushed(frames: u64) -> SendWindow {
    let mut window = SendWindow::new(1 << 20, 1000);
    for number in 1..=frames {
        window.push(&number.to_le_bytes()).unwrap();
    }
    window
}

/// Numbers of the frames that are taken.
fn numbers(window: &mut SendWindow, bytes: usize) -> Vec<u64> {
    let mut out = Vec::new();
    let frames = window.take(bytes, &mut out);
    let found = decoded(&out);
    assert_eq!(frames, found.len());
    found.into_iter().map(|(number, _)| number).collect()
}

fn decoded(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut decoder = Decoder::new(RECORD_BYTES_MAX);
    decoder.space().extend_from_slice(bytes);
    let frames = decoder.records().map(|record| match record.unwrap() {
        Record::Data { number, payload } => (number, payload.to_vec()),
        other => panic!("{other:?} is not a frame"),
    });
    frames.collect()
}

const SIZE: usize = DATA_HEADER_BYTES + 8;

#[test]
fn frames_leave_together_up_to_the_limit_and_at_least_one() {
    let mut window = pushed(5);
    assert_eq!(numbers(&mut window, 2 * SIZE), [1, 2]);
    assert_eq!(numbers(&mut window, 2 * SIZE - 1), [3]);
    assert_eq!(numbers(&mut window, 1), [4]);
    assert_eq!(numbers(&mut window, 1000), [5]);
    assert_eq!(numbers(&mut window, 1000), [0; 0]);
    assert_eq!((window.sent(), window.resent()), (5, 0));
}

#[test]
fn a_full_window_refuses_until_something_is_acknowledged() {
    let mut window = SendWindow::new(3 * SIZE, 1000);
    for _ in 0..3 {
        window.push(&[0; 8]).unwrap();
    }
    let full = Full {
        frame_bytes: 8,
        buffered_bytes: 3 * SIZE,
        buffered_frames: 3,
        bytes_max: 3 * SIZE,
        frames_max: 1000,
    };
    assert_eq!(window.push(&[0; 8]), Err(full));
    assert_eq!(window.pushed(), 3);
    assert_eq!(numbers(&mut window, 1000), [1, 2, 3]);
    window.acknowledge(1).unwrap();
    window.push(&[0; 8]).unwrap();
    assert_eq!(numbers(&mut window, 1000), [4]);

    let mut few = SendWindow::new(1 << 20, 2);
    few.push(b"").unwrap();
    few.push(b"").unwrap();
    assert_eq!(few.push(b"").unwrap_err().buffered_frames, 2);
    let mut any = SendWindow::new(1 << 30, 2);
    assert!(any.push(&vec![0; RECORD_BYTES_MAX]).is_err(), "never fits");
}

#[test]
fn a_rewind_sends_again_what_the_receiver_lacks() {
    let mut window = pushed(5);
    numbers(&mut window, 4 * SIZE);
    window.acknowledge(1).unwrap();
    window.rewind(3).unwrap();
    assert_eq!(window.buffered_frames(), 3);
    assert_eq!(numbers(&mut window, 1000), [3, 4, 5]);
    assert_eq!((window.sent(), window.resent()), (5, 2));
    window.acknowledge(5).unwrap();
    assert!(window.is_empty());
    window.rewind(6).unwrap();
}

#[test]
fn impossible_claims_are_refused_and_change_nothing() {
    let mut window = pushed(5);
    numbers(&mut window, 3 * SIZE);
    let never = |up_to, sent| Err(WindowError::NeverSent { up_to, sent });
    assert_eq!(window.acknowledge(4), never(4, 3));
    assert_eq!(window.acknowledge(u64::MAX), never(u64::MAX, 3));
    assert_eq!(window.rewind(5), never(4, 3));
    window.acknowledge(2).unwrap();
    window.acknowledge(1).unwrap();
    assert_eq!(
        window.rewind(2),
        Err(WindowError::Forgotten { next: 2, first: 3 })
    );
    assert_eq!(
        window.rewind(0),
        Err(WindowError::Forgotten { next: 0, first: 3 })
    );
    assert_eq!(numbers(&mut window, 1000), [4, 5]);
    window.rewind(3).unwrap();
    assert_eq!(
        window.acknowledge(3),
        never(3, 2),
        "not sent on this connection yet"
    );
}

#[test]
fn the_receiver_takes_the_next_drops_the_old_refuses_gaps() {
    let mut window = ReceiveWindow::default();
    assert_eq!(window.accept(1), Ok(true));
    assert_eq!(window.accept(1), Ok(false));
    assert_eq!(window.accept(0), Ok(false));
    assert_eq!(
        window.accept(3),
        Err(WindowError::Gap { number: 3, next: 2 })
    );
    assert_eq!(window.accept(2), Ok(true));
    assert_eq!((window.received(), window.duplicates()), (2, 2));
}

/// Events at a sender, a receiver and the connection between them.
#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Write(usize),
    /// This many of the bytes in transit arrive.
    Arrive(usize),
    Acknowledge,
    /// The acknowledgement in transit arrives.
    AckArrives,
    /// The connection breaks, losing what is in transit, and another one opens.
    Break,
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..100usize).prop_map(Step::Push),
        3 => (1..300usize).prop_map(Step::Write),
        3 => (1..300usize).prop_map(Step::Arrive),
        2 => Just(Step::Acknowledge),
        2 => Just(Step::AckArrives),
        1 => Just(Step::Break),
    ]
}

/// A sender, a receiver, and what is in transit between them.
struct Pair {
    sender: SendWindow,
    receiver: ReceiveWindow,
    decoder: Decoder,
    transit: Vec<u8>,
    ack: Option<u64>,
    given: Vec<Vec<u8>>,
    got: Vec<Vec<u8>>,
}

impl Pair {
    fn step(&mut self, step: Step) {
        match step {
            Step::Push(size) => {
                let frame = vec![self.given.len() as u8; size];
                if self.sender.push(&frame).is_ok() {
                    self.given.push(frame);
                }
            }
            Step::Write(bytes) => {
                self.sender.take(bytes, &mut self.transit);
            }
            Step::Arrive(bytes) => self.arrive(bytes),
            Step::Acknowledge => self.ack = Some(self.receiver.next() - 1),
            Step::AckArrives => {
                if let Some(up_to) = self.ack.take() {
                    self.sender.acknowledge(up_to).unwrap();
                }
            }
            Step::Break => {
                self.transit.clear();
                self.ack = None;
                self.decoder = Decoder::new(RECORD_BYTES_MAX);
                self.sender.rewind(self.receiver.next()).unwrap();
            }
        }
    }

    fn arrive(&mut self, bytes: usize) {
        let bytes = bytes.min(self.transit.len());
        self.decoder
            .space()
            .extend_from_slice(&self.transit[..bytes]);
        self.transit.drain(..bytes);
        for record in self.decoder.records() {
            let Record::Data { number, payload } = record.unwrap() else {
                panic!("only frames were sent");
            };
            if self.receiver.accept(number).unwrap() {
                self.got.push(payload.to_vec());
            }
        }
    }
}

proptest! {
    #[test]
    fn everything_arrives_once_and_in_order(steps in prop::collection::vec(a_step(), 0..400)) {
        let mut pair = Pair {
            sender: SendWindow::new(2000, 30),
            receiver: ReceiveWindow::default(),
            decoder: Decoder::new(RECORD_BYTES_MAX),
            transit: Vec::new(),
            ack: None,
            given: Vec::new(),
            got: Vec::new(),
        };
        for step in steps {
            pair.step(step);
            prop_assert!(pair.sender.buffered_bytes() <= 2000);
            prop_assert!(pair.sender.buffered_frames() <= 30);
            prop_assert!(pair.given.starts_with(&pair.got));
        }
        for step in [Step::Break, Step::Write(1 << 20), Step::Arrive(1 << 20)] {
            pair.step(step);
        }
        prop_assert_eq!(&pair.got, &pair.given);
        for step in [Step::Acknowledge, Step::AckArrives] {
            pair.step(step);
        }
        prop_assert!(pair.sender.is_empty());
        prop_assert_eq!(pair.sender.buffered_bytes(), 0);
    }
}

#[test]
fn nothing_is_allocated_in_the_steady_state() {
    let mut window = SendWindow::new(1 << 20, 1000);
    let mut out = Vec::new();
    let mut round = |rounds: u64| {
        for _ in 0..rounds {
            for _ in 0..10 {
                window.push(&[7; 100]).unwrap();
            }
            out.clear();
            window.take(1 << 20, &mut out);
            window.acknowledge(window.pushed() - 5).unwrap();
        }
    };
    round(100);
    let counted = allocation_counter::measure(|| round(1000));
    assert_eq!(counted.count_total, 0);
}
