//! Which peers are accepted, tested with real TLS in memory, and the errors for unusable files.

mod files;
mod handshake;

use std::time::{Duration, SystemTime};

use soloist_api::NodeName;
use soloist_transport::identity::{Authority, Identity, Issued, Validity};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn node(authority: &Authority, node: &str) -> Identity {
    let issued = authority.issue(&name(node), &[]).unwrap();
    identity(authority, &issued)
}

fn identity(authority: &Authority, issued: &Issued) -> Identity {
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key).unwrap()
}

/// Valid from the day before yesterday until yesterday.
fn past() -> Validity {
    let now = SystemTime::now();
    Validity {
        from: now - 2 * DAY,
        until: now - DAY,
    }
}

/// Valid from tomorrow.
fn future() -> Validity {
    let now = SystemTime::now();
    Validity {
        from: now + DAY,
        until: now + 2 * DAY,
    }
}
