//! The state in the paper's names: Lodha and Kshemkalyani 2000, Fig. 2.

use super::LodhaKshemkalyani;
use crate::{Field, FieldKind, Fields, PHASE, Role, Value};

const OWN: Field = Field::new(
    "own",
    FieldKind::Number,
    "number of this node's latest request",
);
const SEEN: Field = Field::new("seen", FieldKind::Number, "highest number seen").role(Role::Clock);
const RV: Field = Field::new(
    "RV",
    FieldKind::Set,
    "nodes that have answered this node's request",
)
.role(Role::Answered);
const LRQ: Field = Field::new(
    "LRQ",
    FieldKind::Requests,
    "this node's request and those concurrent with it, in order",
)
.role(Role::Queue);
const DEFERRED: Field = Field::new(
    "deferred",
    FieldKind::Set,
    "nodes that are answered when this node leaves",
);
const DONE: Field = Field::new(
    "done",
    FieldKind::Request,
    "latest request that this node knows to be satisfied",
);
const ERRANDS: Field = Field::new(
    "errands",
    FieldKind::Requests,
    "requests whose answers this node carries on",
);
const ANSWERED_BY: Field = Field::new(
    "answered-by",
    FieldKind::Queue,
    "the nodes that answer those requests",
);

impl LodhaKshemkalyani {
    pub(super) fn name_fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&OWN, self.my_sequence_number.into());
        fields.add(&SEEN, self.highest_sequence_number_seen.into());
        fields.add(&RV, (&self.rv).into());
        fields.add(&LRQ, (&self.lrq).into());
        fields.add(&DEFERRED, (&self.deferred).into());
        fields.add(&DONE, self.done.map_or(Value::Absent, Value::Request));
        let carries = !self.errands.is_empty();
        let requests = self.errands.iter().map(|errand| errand.request).collect();
        fields.add(&ERRANDS, Value::Requests(requests).only_if(carries));
        let nodes = self.errands.iter().map(|errand| errand.answers).collect();
        fields.add(&ANSWERED_BY, Value::Nodes(nodes).only_if(carries));
    }
}
