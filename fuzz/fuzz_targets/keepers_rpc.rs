//! Frames between keepers, with requests and answers: no input panics, and what is read back is the
//! same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use soloist_node::keepers::rpc::fuzzing::{answer, frame, frames, request};

fuzz_target!(|input: (u8, u8, Vec<u8>)| {
    let (sender, term, bytes) = input;
    // Small numbers, so that a request is often in its sender's name. Those in the bytes may be large.
    let (sender, term) = (u64::from(sender), u64::from(term));
    for (number, content) in frames(&bytes) {
        let again = frames(&frame(number, &content));
        assert_eq!(again, [(number, content)]);
    }
    if let Some(written) = request(&bytes, sender, term) {
        assert_eq!(request(&written, sender, term), Some(written));
    }
    if let Some(written) = answer(&bytes) {
        assert_eq!(answer(&written), Some(written));
    }
});
