//! Golden bytes of messages that only this crate can build. A line of such a file is a message and
//! its encoding in hex.
//!
//! Set `UPDATE_GOLDEN=1` to rewrite the files, and read the diff before you commit it: a changed
//! line means that nodes of different releases do not understand each other.

use std::fmt::{Debug, Write as _};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The lines of a golden file.
#[derive(Default)]
pub(crate) struct GoldenBytes(String);

impl GoldenBytes {
    /// Adds a message, and checks that its bytes are read back as the same message.
    pub(crate) fn add<T: Serialize + DeserializeOwned + Debug>(
        &mut self,
        label: &str,
        message: &T,
    ) {
        let bytes = postcard::to_allocvec(message).unwrap();
        let (read, rest): (T, _) = postcard::take_from_bytes(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{message:?}"));
        assert!(rest.is_empty(), "{label}");
        self.add_bytes(label, &bytes);
    }

    /// Adds bytes that were encoded elsewhere.
    pub(crate) fn add_bytes(&mut self, label: &str, bytes: &[u8]) {
        write!(self.0, "{label} =").unwrap();
        for byte in bytes {
            write!(self.0, " {byte:02x}").unwrap();
        }
        self.0.push('\n');
    }

    /// Compares the lines with `tests/golden/<name>`, or rewrites that file.
    #[track_caller]
    pub(crate) fn check(&self, name: &str) {
        soloist_testing::golden_file::assert_golden(name, &self.0);
    }
}
