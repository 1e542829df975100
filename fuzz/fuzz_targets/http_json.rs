//! Bodies and names of HTTP requests: no input panics, and what is read back is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use soloist_api::{AcquireRequest, LockName, NodeName, RenewRequest, parse_duration};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = serde_json::from_slice::<AcquireRequest>(bytes) {
        let text = serde_json::to_vec(&request).expect("a request can be written");
        let again: AcquireRequest = serde_json::from_slice(&text).expect("it was written");
        assert_eq!(again, request);
    }
    let _ = serde_json::from_slice::<RenewRequest>(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        if let Ok(name) = LockName::new(text) {
            assert_eq!(name.as_str(), text);
        }
        let _ = text.parse::<NodeName>();
        let _ = parse_duration(text);
    }
});
