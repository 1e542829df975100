//! Fences (fencing tokens) strictly increase. Every message carries the highest fence that its
//! sender knows, a receiver keeps the higher one, and an entry takes one more than its node knows.
//! So fences increase if and only if a chain of messages leads from each entry to the next.
//!
//! One bit per node and message is enough: does it know the *highest* fence? A node that does not
//! can only learn it from one that does; how far behind it is makes no difference. With this bit
//! instead of the number, endless runs have finitely many states.

use soloist_algorithms::NodeId;

use super::View;
use crate::world::Fault;

pub(super) fn judge(view: &View, newcomer: NodeId) -> Result<(), Fault> {
    if view.entry.knew {
        Ok(())
    } else {
        Err(Fault::Fence(newcomer))
    }
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::central::{Central, CentralMessage};
    use soloist_algorithms::shape::Complete;
    use soloist_algorithms::{Algorithm, Config, Info, Outbox, Phase, Place, Violation};

    use super::*;
    use crate::search::Bounds;
    use crate::search::plan::Plan;
    use crate::search::system::{Action, Halt, System};

    /// Enters without asking any other node.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Bold(Place<Complete>, Phase);

    impl Algorithm for Bold {
        type Message = CentralMessage;
        type Shape = Complete;
        const INFO: Info = Central::INFO;

        fn new(config: &Config<Complete>) -> Self {
            Bold(config.place.clone(), Phase::Idle)
        }

        fn request(&mut self, out: &mut Outbox<CentralMessage>) -> Result<(), Violation> {
            self.1 = Phase::Inside;
            out.enter();
            Ok(())
        }

        fn receive(
            &mut self,
            _: NodeId,
            _: CentralMessage,
            _: &mut Outbox<CentralMessage>,
        ) -> Result<(), Violation> {
            Ok(())
        }

        fn release(&mut self, _: &mut Outbox<CentralMessage>) -> Result<(), Violation> {
            self.1 = Phase::Idle;
            Ok(())
        }

        fn phase(&self) -> Phase {
            self.1
        }
    }

    /// The entries do not overlap, so two nodes are never inside; but no message tells the second
    /// node of the first one's entries.
    #[test]
    fn an_entry_without_a_message_chain_from_the_last_one_is_found() {
        let plan = Plan::of::<Bold>(&Bounds::of::<Bold>(&[2, 1]));
        let mut interner = plan.interner();
        let (system, mut state, _) = System::new(&plan, &mut interner).unwrap();
        let (first, second) = (NodeId::new(0), NodeId::new(1));
        let mut judged = Vec::new();
        for action in [
            Action::Request(first),
            Action::Release(first),
            Action::Request(first),
            Action::Release(first),
            Action::Request(second),
        ] {
            let mut after = Vec::new();
            let entry = loop {
                match system.step(&interner, &state, action, &mut after) {
                    Ok(entry) => break entry,
                    Err(Halt::Unknown(cause)) => interner.learn(cause).unwrap(),
                    Err(Halt::Broken(fault)) => panic!("{fault}"),
                }
            };
            state = after;
            let view = View {
                system: &system,
                interner: &interner,
                state: &state,
                entry,
            };
            judged.push(view.judge_step());
        }
        let fault = judged.pop().unwrap();
        assert_eq!(fault, Err(Fault::Fence(second)));
        assert!(judged.iter().all(Result::is_ok), "{judged:?}");
    }
}
