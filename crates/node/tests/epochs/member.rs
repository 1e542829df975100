//! A participant by itself: words in an order that the network may choose.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_node::Moment;
use soloist_node::epochs::lease::Lease;
use soloist_node::epochs::member::{MemberEffects, Participant, Standing};
use soloist_node::epochs::message::{ToKeepers, ToMember};
use soloist_node::epochs::roster::Change;
use soloist_node::locks::{Ask, LockName};

use crate::setup::{member, rules, table};

#[test]
fn a_lease_that_ran_out_before_it_was_heard_of_lets_nobody_in() {
    let rules = rules(Choice::parse("raymond", "").unwrap(), 1, 1);
    let begin = Moment::default();
    let lease = Lease::default();
    let mut node = Participant::new(member(0, 1), table(&rules, 0, 1), lease, begin);
    let mut out = MemberEffects::default();
    let ask = Ask::new("somebody");
    let lock = LockName::new("a").unwrap();
    node.acquire(begin, &lock, ask, &mut out).unwrap();
    let change = Change {
        epoch: 1,
        members: vec![member(0, 1)],
    };
    node.hear(begin, ToMember::Begin(change.clone()), &mut out);
    assert!(matches!(
        out.keepers[..],
        [ToKeepers::Report { .. }, ToKeepers::Renew { number: 1, .. }]
    ));
    // The process sleeps; when it wakes up, both words are there.
    let late = begin + lease.length + Duration::from_secs(5);
    let holds = Vec::new();
    node.hear(late, ToMember::Install { change, holds }, &mut out);
    node.hear(late, ToMember::Granted { number: 1 }, &mut out);
    assert_eq!(node.standing(), Standing::Changing(1));
    assert_eq!(node.table().holds(), 0);
    // A lease that is heard of in time lets it in.
    out = MemberEffects::default();
    node.tick(late, &mut out);
    let [ToKeepers::Renew { number, .. }] = out.keepers[..] else {
        panic!("it renews: {:?}", out.keepers);
    };
    node.hear(late, ToMember::Granted { number }, &mut out);
    assert_eq!(node.standing(), Standing::Member(1));
    assert_eq!(node.table().holds(), 1);
}
