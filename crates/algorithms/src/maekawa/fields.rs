//! The state in the paper's names: of a requester, and of a member of other nodes' sets.

use super::{Maekawa, MemberLock};
use crate::{Field, FieldKind, Fields, NodeId, PHASE, Phase, Role, Value};

const REQUESTER: &str = "as requester";
const MEMBER: &str = "as member";

const NUMBER: Field = Field::new(
    "number",
    FieldKind::Number,
    "sequence number of the request",
)
.role(Role::Clock)
.group(REQUESTER);
const LOCKED: Field = Field::new("locked", FieldKind::Set, "members whose LOCKED is held")
    .role(Role::Answered)
    .group(REQUESTER);
const FAILED: Field = Field::new(
    "failed",
    FieldKind::Flag,
    "whether a member answered FAILED",
)
.group(REQUESTER);
const INQUIRED: Field = Field::new(
    "inquired",
    FieldKind::Set,
    "members that asked for their LOCKED back and have no answer yet",
)
.group(REQUESTER);
const LOCKED_FOR: Field = Field::new(
    "locked-for",
    FieldKind::Request,
    "the request that this node is locked for",
)
.role(Role::Granted)
.group(MEMBER);
const ASKED_BACK: Field = Field::new(
    "asked-back",
    FieldKind::Flag,
    "whether an INQUIRE about the locking request is not answered yet",
)
.group(MEMBER);
const WAITING: Field = Field::new(
    "waiting",
    FieldKind::Requests,
    "requests that wait for this node, in order of precedence",
)
.role(Role::Queue)
.group(MEMBER);

impl Maekawa {
    pub(super) fn name_fields(&self, fields: &mut dyn Fields) {
        let waits = self.phase == Phase::Waiting;
        let locked = |lock| matches!(lock, MemberLock::Locked | MemberLock::LockedInquired);
        let inquired = |lock| matches!(lock, MemberLock::Inquired | MemberLock::LockedInquired);
        let locked = Value::Nodes(self.members_that(locked));
        let inquired = Value::Nodes(self.members_that(inquired));
        fields.add(&PHASE, self.phase.into());
        fields.add(&NUMBER, Value::from(self.sequence_number).only_if(waits));
        fields.add(&LOCKED, locked.only_if(waits));
        fields.add(&FAILED, Value::from(self.failed).only_if(waits));
        fields.add(&INQUIRED, inquired.only_if(waits));
        let locking = self.locking_request;
        fields.add(
            &LOCKED_FOR,
            locking.map_or(Value::Nil("none"), Value::Request),
        );
        fields.add(&ASKED_BACK, self.inquired.into());
        fields.add(&WAITING, (&self.waiting_queue).into());
    }

    fn members_that(&self, test: impl Fn(MemberLock) -> bool) -> Vec<NodeId> {
        let set = self.place.shape.set(self.place.me).iter();
        let locks = set.zip(&self.members);
        let members = locks.filter(|(_, lock)| test(**lock));
        members.map(|(member, _)| *member).collect()
    }
}
