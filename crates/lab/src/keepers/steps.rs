//! The rules of the steps: which are possible, and what they do.

pub(super) mod election;
pub(super) mod leader;
pub(super) mod operator;
