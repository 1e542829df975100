//! An algorithm of your own: implement `Algorithm`, then simulate it and search every interleaving.
//! Here a token circulates on a ring, and the node that has it may enter. A hasty node does not
//! wait for the token.

use std::fmt;

use serde::{Deserialize, Serialize};
use soloist_algorithms::shape::Ring;
use soloist_algorithms::{Algorithm, Channels, Config, Info, Message, NodeId, Outbox};
use soloist_algorithms::{Field, FieldKind, Fields, PHASE, Phase, Place, VariantSet, Violation};
use soloist_lab::search::{Bounds, ENDLESS, Outcome, check};
use soloist_lab::simulate::{Setup, simulate_own};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
struct Token;
type Outgoing = Outbox<Token>;

impl Message for Token {
    const KINDS: &'static [&'static str] = &["TOKEN"];
    fn kind(&self) -> usize {
        0
    }
    fn is_roaming(&self) -> bool {
        true // it also moves while no node wants it
    }
    fn examples() -> Vec<Self> {
        vec![Token]
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct TokenRing<const HASTY: bool> {
    place: Place<Ring>,
    phase: Phase,
    token: bool,
}

impl<const HASTY: bool> TokenRing<HASTY> {
    fn pass(&mut self, out: &mut Outgoing) {
        if self.token && self.phase == Phase::Idle && self.place.nodes() > 1 {
            self.token = false;
            out.send(self.place.shape.right(self.place.me), Token);
        }
    }
}

impl<const HASTY: bool> Algorithm for TokenRing<HASTY> {
    type Message = Token;
    type Shape = Ring;
    const INFO: Info = Info::new("token-ring", Channels::Any);

    fn new(config: &Config<Ring>) -> Self {
        TokenRing {
            place: config.place.clone(),
            phase: config.start.phase(config.place.me),
            token: config.start.token() == config.place.me,
        }
    }
    fn start(&mut self, out: &mut Outgoing) {
        self.pass(out);
    }
    fn request(&mut self, out: &mut Outgoing) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        if self.token || HASTY {
            self.phase = Phase::Inside;
            out.enter();
        }
        Ok(())
    }
    fn receive(&mut self, from: NodeId, _: Token, out: &mut Outgoing) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        self.token = true;
        if self.phase == Phase::Waiting {
            self.phase = Phase::Inside;
            out.enter();
        }
        self.pass(out);
        Ok(())
    }
    fn release(&mut self, out: &mut Outgoing) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        self.pass(out);
        Ok(())
    }
    fn phase(&self) -> Phase {
        self.phase
    }
    fn fields(&self, fields: &mut dyn Fields) {
        const TOKEN: Field = Field::new("token", FieldKind::Flag, "whether the token is here");
        fields.add(&PHASE, self.phase.into());
        fields.add(&TOKEN, self.token.into());
    }
}

/// Prints what the simulator and the search find out about both.
pub(crate) fn main() {
    let setup = Setup::new(VariantSet::default(), 5);
    let report = simulate_own::<TokenRing<false>>(&setup, &mut |_| ()).expect("five nodes");
    assert!(report.is_well());
    println!("{} messages per entry", report.measures.messages_per_entry);
    let bounds = Bounds::of::<TokenRing<false>>(&[ENDLESS; 4]);
    let patient = check::<TokenRing<false>>(&bounds, &mut |_| true);
    let hasty = check::<TokenRing<true>>(&bounds, &mut |_| true);
    println!("patient: {patient:?}\nhasty: {hasty:#?}");
    assert!(matches!(patient, Outcome::Holds { .. }));
    assert!(matches!(hasty, Outcome::Broken { fault, .. } if fault.is_two_inside()));
}
