//! Named locks: a pure state machine, with time as a parameter and messages as bytes.
//!
//! [`Table`] has all locks of a node. For each lock it drives the node's state machine of the
//! algorithm, keeps the node's own waiters in order, and tracks the hold. Clients' requests, peers'
//! messages and the time go in; [`Effects`] come out.

mod away;
mod by_name;
mod counts;
mod deadlines;
mod drive;
mod effects;
mod ended;
mod epoch;
mod errors;
mod forget;
mod holds;
mod idle;
mod idle_message;
mod inside;
mod lifetime;
mod lock;
mod quota;
mod requests;
mod session_messages;
mod sessions;
mod settings;
mod stopping;
mod table;
mod view;
pub mod wire;

pub use counts::Counts;
pub use effects::{Denial, Effects, Grant, HoldId, LockEvent, NotAHold, Ticket};
pub use epoch::Epoch;
pub use errors::{HoldError, ReceiveError, RequestError};
pub use inside::{HeldLock, Inside};
pub(crate) use lifetime::Lifetime;
pub use quota::{Client, Quantity, QuotaError};
pub use requests::{FIRST_PROMISE, NotARequestId, RESEND_WITHIN, RequestId, Resumed};
pub use session_messages::{Remaining, TRY_MAX, WAIT_MAX};
pub use sessions::NoSuchSession;
pub use settings::{LockRequest, Settings};
pub use table::Table;
pub use view::{HolderView, LockView, Page, WaitView, WaiterView};
