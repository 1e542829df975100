//! Logs the notices of the epochs.

use soloist_core::epochs::pieces::HOLDS_BYTES_MAX;
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
            "a member did not report in time: it is evicted, and waits before it may join"
        ),
        Notice::Partitioned { member, from } => tracing::warn!(
            name = %member, apart_from = ?from,
            "members cannot reach each other: one of them is evicted"
        ),
        Notice::MostPartitioned => {
            tracing::warn!("most members cannot reach each other: none is evicted for it");
        }
        Notice::TooMuchHeld { member, pieces } => tracing::error!(
            name = %member, pieces,
            "members hold more locks than can be agreed on ({HOLDS_BYTES_MAX} bytes of names): \
             this one is evicted; hold fewer locks, or give them shorter names"
        ),
        Notice::HeldTwice(lock) => {
            tracing::error!(?lock, "two members report that they hold the same lock");
        }
        Notice::EarlyMessage(error) => {
            tracing::error!("a message that came before its epoch is refused: {error}");
        }
        Notice::TooManyPieces(pieces) => {
            tracing::error!(pieces, "more is held than an epoch can begin with");
        }
        Notice::UnreadablePiece => {
            tracing::error!("the leader sent what cannot be decoded; it is requested again");
        }
    }
}
