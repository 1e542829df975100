//! Paths of the API.

use std::fmt::Write as _;

/// One segment of a path, or the value of a parameter: whatever could mean something else is escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        // A dot is harmless, but a name of dots alone would be taken for a step in the path.
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_segment() {
        assert_eq!(escaped("nightly-report_1"), "nightly-report_1");
        assert_eq!(escaped("a/b?c#d%"), "a%2Fb%3Fc%23d%25");
        assert_eq!(escaped(".."), "%2E%2E");
        assert_eq!(escaped("ü \n"), "%C3%BC%20%0A");
    }
}
