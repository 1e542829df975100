//! Ids of 128 bits as text.

/// The number of 32 hexadecimal digits, or `None` if the text is anything else.
pub(crate) fn parse(text: &str) -> Option<u128> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}
