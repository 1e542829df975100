//! Records of a link: they are the same however reads split the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use soloist_transport::links::frame::Decoder;

const RECORD_BYTES_MAX: usize = 1 << 10;

/// All records of these bytes as text, when they arrive in pieces of this size.
fn records(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut decoder = Decoder::new(RECORD_BYTES_MAX);
    let mut found = Vec::new();
    for part in bytes.chunks(piece) {
        decoder.space().extend_from_slice(part);
        for record in decoder.records() {
            let has_failed = record.is_err();
            found.push(format!("{record:?}"));
            if has_failed {
                return found;
            }
        }
    }
    found
}

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (piece, bytes) = input;
    let whole = records(&bytes, bytes.len().max(1));
    assert_eq!(records(&bytes, usize::from(piece) + 1), whole);
});
