//! The state in the paper's names: Neamatollahi et al. 2017, Fig. 2; and that of the resting form.

use super::Neamatollahi;
use super::resting::Resting;
use crate::{Field, FieldKind, Fields, PHASE, Phase, Role, Value};

const WAITING: Field = Field::new(
    "Waiting",
    FieldKind::Queue,
    "the request that alerted this node, and its own",
)
.role(Role::Queue);
const LATE: Field = Field::new(
    "late",
    FieldKind::Node,
    "a Request that arrived while this node was inside",
);
const ROW_COUNTER: Field = Field::new(
    "RowCounter",
    FieldKind::Number,
    "in the token: rows reached in this round down the column",
);
const COL_COUNTER: Field = Field::new(
    "ColCounter",
    FieldKind::Number,
    "in the token: position in a round of the row; negative while it changes its column",
);
const CHG_COL: Field = Field::new(
    "ChgCol",
    FieldKind::Flag,
    "in the token: whether it changes its column",
);
const ALERTED: Field = Field::new(
    "alerted",
    FieldKind::Flag,
    "whether an alert passed since the token was last here",
);
const BLOCKED: Field = Field::new(
    "blocked",
    FieldKind::Flag,
    "whether an alert was stopped here since then",
);
const TOKEN_IN_ROW: Field = Field::new(
    "token-in-row",
    FieldKind::Flag,
    "at a gate: whether the token is going round this row",
);
const CALLED: Field = Field::new(
    "called",
    FieldKind::Flag,
    "at home: whether a CALL arrived since the token left",
);
const TOKEN: Field = Field::new("token", FieldKind::Flag, "whether the token is here");

impl Neamatollahi {
    pub(super) fn name_fields(&self, fields: &mut dyn Fields) {
        let rests = self.resting.is_some();
        let own = (self.phase != Phase::Idle).then_some(self.place.me);
        let waiting = Value::Nodes(self.alert.into_iter().chain(own).collect());
        fields.add(&PHASE, self.phase.into());
        fields.add(&WAITING, waiting.only_if(!rests));
        fields.add(&LATE, self.late.map_or(Value::Absent, Value::Node));
        let token = self.token;
        let row = token.map(|token| Value::from(u64::from(token.row_counter)));
        let column = token.map(|token| Value::Number(token.col_counter.into()));
        let changes = token.map(|token| Value::Flag(token.chg_col));
        fields.add(&ROW_COUNTER, row.unwrap_or(Value::Absent));
        fields.add(&COL_COUNTER, column.unwrap_or(Value::Absent));
        fields.add(&CHG_COL, changes.unwrap_or(Value::Absent));
        let flag = |value: fn(&Resting) -> bool| {
            let flag = self.resting.as_ref().map(|resting| value(resting).into());
            flag.unwrap_or(Value::Absent)
        };
        fields.add(&ALERTED, flag(|resting| resting.alerted));
        fields.add(&BLOCKED, flag(|resting| resting.blocked));
        fields.add(&TOKEN_IN_ROW, flag(|resting| resting.token_in_row));
        fields.add(&CALLED, flag(|resting| resting.called));
        fields.add(&TOKEN, flag(|resting| resting.token.is_some()));
    }
}
