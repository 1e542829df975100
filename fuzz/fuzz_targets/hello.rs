//! The first bytes of a connection: no input panics, and what is read back is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use soloist_transport::hello::{Hello, PREFACE, Reply};

/// Bytes of the length that follows the preface.
const LENGTH_BYTES: usize = 2;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((hello, version)) = Hello::decode(bytes) {
        let again = hello.encode();
        let content = &again[PREFACE.len() + LENGTH_BYTES..];
        assert_eq!(Hello::decode(content), Ok((hello, version)));
    }
    if let Ok(reply) = Reply::decode(bytes) {
        let _ = reply.encode();
    }
});
