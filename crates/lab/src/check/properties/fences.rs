//! Fences strictly rise. Every message carries the highest fence that its sender knows, a receiver
//! keeps the higher one, and an entry takes one more than its node knows. So they rise if and only if a
//! chain of messages leads from each entry to the next.
//!
//! It is enough to keep a bit for each node and message: does it know the *highest* fence there
//! is? Who knows less can only learn it from who knows; how much less makes no difference. With that
//! bit instead of the number, endless runs have finitely many states.

use soloist_algorithms::{Algorithm, NodeId};

use super::View;
use crate::world::Fault;

pub(super) fn judge<A: Algorithm>(view: &View<A>, newcomer: NodeId) -> Result<(), Fault> {
    if view.entry.knew {
        Ok(())
    } else {
        Err(Fault::Fence(newcomer))
    }
}
