//! Logs the notices of the epochs.

use soloist_core::limits::Limits;
use soloist_core::notice::Notice;

/// Logs notices, in order.
pub(crate) fn log(notices: Vec<Notice>) {
    for notice in notices {
        log_one(notice);
    }
}

fn log_one(notice: Notice) {
    match notice {
        Notice::Left(name) => tracing::info!(%name, "a member left"),
        Notice::Evicted { member, reason } => {
            tracing::warn!(name = %member, reason, "a member is evicted");
        }
        Notice::LateReport(name) => tracing::warn!(
            %name,
            "a member did not report in time: it is evicted and must wait before it may join"
        ),
        Notice::Partitioned { member, from } => tracing::warn!(
            name = %member, apart_from = ?from,
            "members cannot reach each other: one of them is evicted"
        ),
        Notice::MostPartitioned => {
            tracing::warn!("most members cannot reach each other: none is evicted");
        }
        Notice::TooMuchHeld { member, pieces } => tracing::error!(
            name = %member, pieces,
            "members hold more locks than an epoch can begin with (maximum: {}): this one is \
             evicted; hold fewer locks",
            Limits::HOLDS_MAX
        ),
        Notice::HeldTwice([one, other]) => tracing::error!(
            %one, %other,
            "two members report that they hold the same lock: both are evicted"
        ),
        Notice::EarlyMessage(error) => {
            tracing::error!("refused a message that arrived before its epoch: {error}");
        }
        Notice::TooManyPieces(pieces) => {
            tracing::error!(
                pieces,
                "members hold more locks than an epoch can begin with"
            );
        }
        Notice::UnsoundPieces => tracing::error!(
            "the leader's data for the next epoch is inconsistent; requesting it again"
        ),
    }
}
