//! Encoding of records: golden bytes, decoding from arbitrary pieces, and malformed input.

use proptest::prelude::*;
use soloist_core::Incarnation;
use soloist_transport::links::frame::{
    DATA_HEADER_BYTES, Decoder, FrameError, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX, Record,
};

/// Lower than the limit of links, so that tests reach it.
const SHORT_MAX: usize = 4 << 10;

fn bytes_of(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

fn feed(decoder: &mut Decoder, bytes: &[u8]) {
    decoder.space().extend_from_slice(bytes);
}

fn only_error(bytes: &[u8]) -> FrameError {
    let mut decoder = Decoder::new(SHORT_MAX);
    feed(&mut decoder, bytes);
    let mut records = decoder.records();
    let error = records.next().unwrap().unwrap_err();
    assert!(records.next().is_none(), "nothing follows an error");
    error
}

#[test]
fn golden_bytes_of_each_kind() {
    assert_eq!(
        bytes_of(&Record::Welcome {
            incarnation: Incarnation(7),
            next: 258
        }),
        [
            17, 0, 0, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0
        ]
    );
    assert_eq!(
        bytes_of(&Record::Refused { reason: "no" }),
        [3, 0, 0, 0, 3, b'n', b'o']
    );
    assert_eq!(
        bytes_of(&Record::Data {
            number: 5,
            payload: b"xy"
        }),
        [11, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, b'x', b'y']
    );
    assert_eq!(
        bytes_of(&Record::Ack { up_to: 5 }),
        [9, 0, 0, 0, 5, 5, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(bytes_of(&Record::Ping), [1, 0, 0, 0, 6]);
    assert_eq!(bytes_of(&Record::Goodbye), [1, 0, 0, 0, 7]);
}

#[test]
fn errors_name_the_wrong_value() {
    assert_eq!(only_error(&[0, 0, 0, 0]), FrameError::Empty);
    assert_eq!(only_error(&[1, 0, 0, 0, 9]), FrameError::UnknownKind(9));
    assert_eq!(only_error(&[1, 0, 0, 0, 1]), FrameError::UnknownKind(1));
    assert_eq!(only_error(&[1, 0, 0, 0, 0]), FrameError::UnknownKind(0));
    assert_eq!(
        only_error(b"GET / HTTP/1.1\r\n"),
        FrameError::TooLong {
            bytes: u32::from_le_bytes(*b"GET ") as usize,
            limit: SHORT_MAX
        }
    );
    assert_eq!(
        only_error(&[3, 0, 0, 0, 7, b'n', b'o']),
        FrameError::WrongSize {
            kind: "Goodbye",
            bytes: 2
        }
    );
    assert_eq!(
        only_error(&[3, 0, 0, 0, 5, 1, 1]),
        FrameError::WrongSize {
            kind: "Ack",
            bytes: 2
        }
    );
    assert_eq!(
        only_error(&[2, 0, 0, 0, 6, 0]),
        FrameError::WrongSize {
            kind: "Ping",
            bytes: 1
        }
    );
    assert_eq!(
        only_error(&[2, 0, 0, 0, 3, 0xff]),
        FrameError::NotText("Refused")
    );
}

#[test]
fn a_reason_is_cut_between_characters() {
    let reason = "é".repeat(1000);
    let bytes = bytes_of(&Record::Refused { reason: &reason });
    let mut decoder = Decoder::new(SHORT_MAX);
    feed(&mut decoder, &bytes);
    let record = decoder.records().next().unwrap().unwrap();
    assert_eq!(
        record,
        Record::Refused {
            reason: &"é".repeat(512)
        }
    );
}

#[test]
fn the_largest_frame_fits_and_its_memory_is_given_back() {
    let payload = vec![7; PAYLOAD_BYTES_MAX];
    let bytes = bytes_of(&Record::Data {
        number: 1,
        payload: &payload,
    });
    assert_eq!(bytes.len(), PAYLOAD_BYTES_MAX + DATA_HEADER_BYTES);
    let mut decoder = Decoder::new(RECORD_BYTES_MAX);
    for piece in bytes.chunks(16 << 10) {
        assert!(decoder.records().next().is_none());
        feed(&mut decoder, piece);
    }
    let found = decoder.records().next().unwrap().unwrap();
    assert!(matches!(found, Record::Data { payload: p, .. } if p == payload));
    decoder.space();
    assert!(decoder.capacity() <= 64 << 10);
}

fn a_record() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<[u64; 2]>().prop_map(|[incarnation, next]| {
            let incarnation = Incarnation(incarnation);
            bytes_of(&Record::Welcome { incarnation, next })
        }),
        ".{0,50}".prop_map(|reason| bytes_of(&Record::Refused { reason: &reason })),
        (any::<u64>(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(number, payload)| {
            bytes_of(&Record::Data {
                number,
                payload: &payload,
            })
        }),
        any::<u64>().prop_map(|up_to| bytes_of(&Record::Ack { up_to })),
        Just(bytes_of(&Record::Ping)),
        Just(bytes_of(&Record::Goodbye)),
    ]
}

/// Feeds the bytes in pieces, and encodes the decoded records again.
fn through(decoder: &mut Decoder, bytes: &[u8], mut pieces: Vec<usize>) -> Vec<u8> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let size = pieces.pop().unwrap_or(rest.len()).clamp(1, rest.len());
        feed(decoder, &rest[..size]);
        rest = &rest[size..];
        for record in decoder.records() {
            match record {
                Ok(record) => record.encode(&mut found),
                Err(_) => return found,
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_records(
        records in prop::collection::vec(a_record(), 0..20),
        pieces in prop::collection::vec(1..200usize, 0..100),
    ) {
        let bytes = records.concat();
        let found = through(&mut Decoder::new(RECORD_BYTES_MAX), &bytes, pieces);
        prop_assert_eq!(found, bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
        pieces in prop::collection::vec(1..4000usize, 0..100),
    ) {
        let mut decoder = Decoder::new(SHORT_MAX);
        through(&mut decoder, &bytes, pieces);
        prop_assert!(decoder.capacity() <= 4 * (SHORT_MAX + 4000));
    }

    /// Nearly valid input finds more bugs: real records with a few bytes changed.
    #[test]
    fn changed_records_do_no_harm(
        records in prop::collection::vec(a_record(), 1..10),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        pieces in prop::collection::vec(1..200usize, 0..100),
    ) {
        let mut bytes = records.concat();
        for (place, value) in changes {
            *place.get_mut(&mut bytes) = value;
        }
        let mut decoder = Decoder::new(SHORT_MAX);
        let found = through(&mut decoder, &bytes, pieces);
        prop_assert!(found.len() <= bytes.len());
    }
}
