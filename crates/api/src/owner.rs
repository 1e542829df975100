//! Names of holders and waiters.

/// Maximum length of an owner in bytes.
const LEN_MAX: usize = 256;

/// Why a text cannot be an owner, the name of a holder or waiter.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The owner has this many bytes.
    #[error("the owner has {0} bytes (maximum: {LEN_MAX})")]
    TooLong(usize),
    /// The owner contains a control character, which could garble a log or a terminal.
    #[error("the owner contains the control character {0:?}: remove it")]
    Control(char),
}

/// Checks an owner, see [`Request::owner`](crate::Request::owner).
pub fn check_owner(owner: &str) -> Result<(), OwnerError> {
    if owner.len() > LEN_MAX {
        return Err(OwnerError::TooLong(owner.len()));
    }
    match owner.chars().find(|c| c.is_control()) {
        Some(control) => Err(OwnerError::Control(control)),
        None => Ok(()),
    }
}
