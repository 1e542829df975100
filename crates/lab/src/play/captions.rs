//! What the comments of a scenario say to the viewer.

/// Comments that were read and not yet used.
#[derive(Default)]
pub(super) struct Comments {
    caption: Vec<String>,
    question: Vec<String>,
}

impl Comments {
    /// Takes note of a comment or an empty line. A comment that begins with `?` is a question, and
    /// so are the lines that follow it.
    pub(super) fn read(&mut self, line: &str) {
        let text = line.trim_start_matches('#').trim();
        if let Some(question) = text.strip_prefix('?') {
            self.question.push(question.trim().to_owned());
        } else if !text.is_empty() {
            let asks = !self.question.is_empty();
            let lines = if asks {
                &mut self.question
            } else {
                &mut self.caption
            };
            lines.push(text.to_owned());
        }
    }

    /// Takes the caption since the last call, if there is one.
    pub(super) fn take_caption(&mut self) -> Option<String> {
        joined(std::mem::take(&mut self.caption))
    }

    /// Takes the question since the last call, if there is one.
    pub(super) fn take_question(&mut self) -> Option<String> {
        joined(std::mem::take(&mut self.question))
    }
}

fn joined(lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// The first sentence of a text, without the full stop. A full stop ends a sentence only before a
/// space and a capital letter: "Fig. 7" does not.
pub(super) fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(place, _)| place);
    let is_end = |place: &usize| {
        let before = text[..*place].rsplit(' ').next().unwrap_or_default();
        let after = text[place + 2..].chars().next();
        !["Fig", "Figs", "et al"].contains(&before) && after.is_some_and(char::is_uppercase)
    };
    let end = ends.into_iter().find(is_end);
    end.map_or(text.trim_end_matches('.'), |end| &text[..end])
}
