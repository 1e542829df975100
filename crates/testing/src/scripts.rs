//! Shell scripts that behave differently when they are told to end.

/// Prints its process id and ends at once on SIGTERM.
pub const QUICK: &str = "echo $$; exec sleep 1000";

/// Prints its process id and takes 400 ms to clean up on SIGTERM.
pub const TIDY: &str = "trap 'sleep 0.4; exit 0' TERM; echo $$; while :; do sleep 0.02; done";

/// Prints its process id and ignores SIGTERM.
pub const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.02; done";

/// Prints `both` if a process runs, and `alone` if it does not.
pub fn look_for(process: i32) -> String {
    format!("kill -0 {process} 2>/dev/null && echo both || echo alone")
}
