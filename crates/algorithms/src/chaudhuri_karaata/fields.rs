//! The state in the paper's names: Chaudhuri and Karaata 1998, section 3.

use super::ChaudhuriKaraata;
use super::head::Token;
use crate::{Field, FieldKind, Fields, PHASE, Role, Value};

const TOKEN: Field = Field::new(
    "token",
    FieldKind::Text,
    "colour of the head's token: GREEN or YELLOW if its plane is privileged, else RED",
);
const GRANTED: Field = Field::new(
    "granted",
    FieldKind::Node,
    "the node of this plane that has the permission",
)
.role(Role::Granted);
const TOWARDS: Field = Field::new(
    "towards",
    FieldKind::Node,
    "neighbouring head in the direction of the privileged plane",
)
.role(Role::Pointer);
const ASKED: Field = Field::new(
    "asked",
    FieldKind::Flag,
    "whether that head was asked for the privilege",
);
const Q: Field = Field::new(
    "Q",
    FieldKind::Queue,
    "nodes that asked this head, in order",
)
.role(Role::Queue);

impl ChaudhuriKaraata {
    pub(super) fn name_fields(&self, fields: &mut dyn Fields) {
        let head = self.head.as_deref();
        let (mut colour, mut granted) = (Value::Absent, Value::Absent);
        let (mut towards, mut asked) = (Value::Absent, Value::Absent);
        match head.map(|head| (head.token, head.as_published)) {
            None => {}
            Some((Token::Green, _)) => colour = Value::Text("GREEN"),
            Some((Token::Yellow { granted: node }, _)) => {
                colour = Value::Text("YELLOW");
                granted = Value::Node(node);
            }
            Some((
                Token::Red {
                    towards: to,
                    asked: has_asked,
                },
                as_published,
            )) => {
                colour = Value::Text("RED");
                towards = Value::Node(to).only_if(!as_published);
                asked = Value::Flag(has_asked).only_if(!as_published);
            }
        }
        fields.add(&PHASE, self.phase.into());
        fields.add(&TOKEN, colour);
        fields.add(&GRANTED, granted);
        fields.add(&TOWARDS, towards);
        fields.add(&ASKED, asked);
        let queue = head.map(|head| Value::from(&head.queue));
        fields.add(&Q, queue.unwrap_or(Value::Absent));
    }
}
