//! Percent-encoding for the API's URLs.

use std::fmt::Write as _;

/// Escapes `text` for use as one path segment or one query parameter. Everything that could have a
/// special meaning is percent-encoded.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        // Dots are escaped too: a segment of `.` or `..` would be taken for a relative path.
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
