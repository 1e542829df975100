//! The state in the paper's names: Raymond 1989, §3.1.

use super::Raymond;
use crate::{Field, FieldKind, Fields, Phase, Role, Value};

const HOLDER: Field = Field::new(
    "HOLDER",
    FieldKind::Node,
    "neighbour in the direction of the privilege, or the node itself",
)
.role(Role::Pointer)
.says_self();
const USING: Field = Field::new(
    "USING",
    FieldKind::Flag,
    "whether the node is in the critical section",
);
const REQUEST_Q: Field = Field::new(
    "REQUEST_Q",
    FieldKind::Queue,
    "neighbours that asked this node for the privilege, and the node itself",
)
.role(Role::Queue)
.says_self();
const ASKED: Field = Field::new(
    "ASKED",
    FieldKind::Flag,
    "whether HOLDER was sent a REQUEST that it has not answered",
);
const RECEIVED: Field = Field::new(
    "received",
    FieldKind::Numbers,
    "with counters: PRIVILEGEs received from each neighbour",
);
const INCARNATION: Field = Field::new(
    "incarnation",
    FieldKind::Number,
    "in recovery: the number of this restart",
);
const ADVICE_MISSING: Field = Field::new(
    "advice-missing",
    FieldKind::Number,
    "in recovery: how many ADVISEs have not arrived",
);

impl Raymond {
    pub(super) fn name_fields(&self, fields: &mut dyn Fields) {
        fields.add(&HOLDER, Value::node_or(self.holder, "unknown"));
        fields.add(&USING, (self.phase == Phase::Inside).into());
        fields.add(&REQUEST_Q, (&self.request_q).into());
        fields.add(&ASKED, self.asked.into());
        let received = self.received.as_ref();
        let received = received.map(|received| Value::Numbers(received.to_vec()));
        fields.add(&RECEIVED, received.unwrap_or(Value::Absent));
        let recovery = self.recovery.as_deref();
        let incarnation = recovery.map(|recovery| recovery.incarnation.into());
        fields.add(&INCARNATION, incarnation.unwrap_or(Value::Absent));
        let missing = recovery.map(|recovery| (recovery.missing as u64).into());
        fields.add(&ADVICE_MISSING, missing.unwrap_or(Value::Absent));
    }
}
