//! The channels of a run or a search whose caller does not choose them.

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::{Algorithm, Channels, Choice, VariantSet};

/// The channels that the algorithm assumes, or FIFO if nodes crash and its recovery needs that.
pub fn assumed_channels(choice: Choice, crashes: bool) -> Channels {
    struct Assumed(VariantSet, bool);
    impl Visitor for Assumed {
        type Output = Channels;
        fn visit<A: Algorithm>(self) -> Channels {
            assumed::<A>(self.0, self.1)
        }
    }
    choice.kind.visit(Assumed(choice.variants, crashes))
}

/// See [`assumed_channels`].
pub(crate) fn assumed<A: Algorithm>(variants: VariantSet, crashes: bool) -> Channels {
    let assumed = A::INFO.channels;
    let recovers = |channels| A::recovers(variants, channels);
    if crashes && !recovers(assumed) && recovers(Channels::Fifo) {
        Channels::Fifo
    } else {
        assumed
    }
}
