//! What tells the lines of a chart apart: colour, dashes and marker together, so that each of them
//! may fail, in print or for a reader who does not see colours.

/// A colour on light and on dark paper.
type Colours = [&'static str; 2];

pub(super) struct Theme {
    pub(super) paper: Colours,
    pub(super) ink: Colours,
    pub(super) muted: Colours,
    pub(super) hair: Colours,
}

/// The colours of the project's pages.
pub(super) const THEME: Theme = Theme {
    paper: ["#FBFAF7", "#12151A"],
    ink: ["#1B1F24", "#E6E8EB"],
    muted: ["#5F6770", "#98A2AD"],
    hair: ["#DDDDDB", "#30343A"],
};

/// Colours of the lines, after Okabe and Ito, with at least 3:1 contrast to the paper.
pub(super) const SERIES: [Colours; 7] = [
    ["#0072B2", "#3D9BE9"],
    ["#D55E00", "#FF8A4C"],
    ["#008A64", "#33C79A"],
    ["#B85C95", "#E39BC4"],
    ["#3592CC", "#A6DBFF"],
    ["#AD7300", "#F5C04A"],
    ["#464646", "#C4C9CF"],
];

/// Five patterns of dashes, seven colours and eight markers: no two of 280 lines look alike.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "12 4"];

/// Markers as paths around their centre, and whether they are filled.
const MARKERS: [(&str, bool); 8] = [
    ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", true),
    ("m-3.5 -3.5h7v7h-7z", true),
    ("m0 -4.6l4.4 7.8h-8.8z", true),
    ("m0 -5l5 5l-5 5l-5 -5z", true),
    ("m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", false),
    ("m-3.3 -3.3h6.6v6.6h-6.6z", false),
    ("m0 4.6l4.4 -7.8h-8.8z", false),
    ("m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z", false),
];

/// The style of a line.
#[derive(Clone, Copy)]
pub(super) struct Style {
    index: usize,
}

impl Style {
    /// The style of the line with this index.
    pub(super) fn new(index: usize) -> Self {
        Style { index }
    }

    /// Class of the stroke.
    pub(super) fn stroke(self) -> String {
        format!("s{}", self.index % SERIES.len())
    }

    /// Class of the area.
    pub(super) fn fill(self) -> String {
        format!("f{}", self.index % SERIES.len())
    }

    /// Pattern of the dashes.
    pub(super) fn dash(self) -> &'static str {
        DASHES[self.index % DASHES.len()]
    }

    /// Path and class of the marker.
    pub(super) fn marker(self) -> (&'static str, String) {
        let (path, filled) = MARKERS[self.index % MARKERS.len()];
        match filled {
            true => (path, format!("{} edge", self.fill())),
            false => (path, format!("{} hole", self.stroke())),
        }
    }
}

/// Pattern of the dashes of the line that a paper states, by its number in the chart.
pub(super) fn claimed_dash(index: usize) -> &'static str {
    const PATTERNS: [&str; 4] = ["", "6 4", "2 3", "10 3 2 3"];
    PATTERNS[index % PATTERNS.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_lines_look_alike() {
        let styles = (0..280).map(Style::new);
        let looks = styles.map(|style| (style.stroke(), style.dash(), style.marker().0));
        assert_eq!(looks.collect::<BTreeSet<_>>().len(), 280);
    }
}
