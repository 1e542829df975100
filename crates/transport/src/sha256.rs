//! SHA-256, from the library that TLS uses too.

use ring::digest;

/// Returns the SHA-256 hash of these bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, bytes);
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
