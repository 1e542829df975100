//! Writes SVG elements. The same calls give the same text, byte for byte.

use std::fmt::Write as _;

use super::style::{SERIES, THEME};
use crate::svg_text::{FONT, escape, number};

/// An SVG document that is being written.
pub(super) struct Svg {
    body: String,
}

/// Where a text is relative to its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new() -> Self {
        Svg {
            body: String::new(),
        }
    }

    /// The document with this size. The title is what screen readers say.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let (width, height) = (number(width), number(height));
        let mut style = format!("text{{font:12px {FONT};fill:{}}}", THEME.ink[0]);
        let mut dark = format!("text{{fill:{}}}", THEME.ink[1]);
        let rules = [
            ("paper", "fill", THEME.paper),
            ("muted", "fill", THEME.muted),
            ("hair", "stroke", THEME.hair),
            ("axis", "stroke", THEME.muted),
            ("ink", "stroke", THEME.ink),
        ];
        for (class, property, colours) in rules {
            let _ = write!(style, ".{class}{{{property}:{}}}", colours[0]);
            let _ = write!(dark, ".{class}{{{property}:{}}}", colours[1]);
        }
        for (index, colours) in SERIES.iter().enumerate() {
            for (colour, sheet) in colours.iter().zip([&mut style, &mut dark]) {
                let _ = write!(
                    sheet,
                    ".s{index}{{stroke:{colour}}}.f{index}{{fill:{colour}}}"
                );
            }
        }
        for (colour, sheet) in THEME.paper.iter().zip([&mut style, &mut dark]) {
            let _ = write!(sheet, ".hole{{fill:{colour}}}.edge{{stroke:{colour}}}");
        }
        style.push_str(".title{font-weight:600;font-size:15px}.panel{font-weight:600}");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n\
             <style>{style}@media(prefers-color-scheme:dark){{{dark}}}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            escape(title),
            self.body
        )
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let (x, y) = (number(at.0), number(at.1));
        let text = escape(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\"{anchor}{class}>{text}</text>"
        );
    }

    /// A path that is not filled, through these points. `dash` is its pattern, or empty.
    pub(super) fn line(&mut self, points: &[(f64, f64)], class: &str, width: f64, dash: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{} {}", number(*x), number(*y));
        }
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        let width = number(width);
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" d=\"{path}\" fill=\"none\" stroke-width=\"{width}\"{dash}/>"
        );
    }

    /// A shape around `at`, such as a marker. `path` is relative to it.
    pub(super) fn shape(&mut self, at: (f64, f64), class: &str, path: &str, width: f64) {
        let (x, y, width) = (number(at.0), number(at.1), number(width));
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" d=\"M{x} {y}{path}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn bar(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(number);
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let mut svg = Svg::new();
        svg.text((1.0, 2.0), Anchor::Start, "", "a<b>&\"c\"");
        let document = svg.finish(10.0, 10.0, "x\" onload=\"y");
        assert!(
            document.contains(">a&lt;b&gt;&amp;&quot;c&quot;</text>"),
            "{document}"
        );
        assert!(document.contains("aria-label=\"x&quot; onload=&quot;y\""));
    }
}
