//! Charts as data, and their drawing as SVG.
//!
//! A chart has panels that share both axes. Lines differ in colour, dashes and marker, and have
//! their names at their ends. Ticks of the horizontal axis are where the data are. A caption says
//! how the data were obtained. The SVG follows the reader's choice of light or dark, and the same
//! chart gives the same bytes.

mod axis;
mod draw;
mod rows;
mod style;
mod svg;

use serde::Serialize;

pub use axis::{Axis, Scale};
pub use rows::csv;

/// A chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// The horizontal axis of all panels.
    pub x: Axis,
    /// The vertical axis of all panels.
    pub y: Axis,
    /// The panels, side by side.
    pub panels: Vec<Panel>,
    /// How the data were obtained, with all settings.
    pub caption: String,
}

/// A part of a chart with axes of its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Panel {
    /// How this panel differs from the others. Empty if there is one panel only.
    pub title: String,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// The name at the end of the line. Series of the same name look alike in all panels.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// The points, in the order in which they are joined.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// What a paper states: a line without markers.
    Claimed,
    /// Measured values: markers, with their intervals, joined by a line.
    Measured,
    /// Measured values beside a line that a paper states: markers, with their intervals.
    Points,
    /// A curve through measured values, too dense for markers.
    Curve,
    /// Counts or shares: bars.
    Bars,
}

/// A point of a series.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position, such as a mean.
    pub y: f64,
    /// The ends of the interval around `y`, if there is one.
    pub interval: Option<(f64, f64)>,
}

impl Look {
    fn has_markers(self) -> bool {
        matches!(self, Look::Measured | Look::Points)
    }

    /// Name for data files.
    pub fn name(self) -> &'static str {
        match self {
            Look::Claimed => "claimed",
            Look::Measured | Look::Points => "measured",
            Look::Curve => "curve",
            Look::Bars => "bars",
        }
    }
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Point {
            x,
            y,
            interval: None,
        }
    }
}

impl Series {
    /// A series through these points.
    pub fn new(
        name: impl Into<String>,
        look: Look,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Series {
            name: name.into(),
            look,
            points: points.into_iter().collect(),
        }
    }

    /// A line that a paper states, through these points.
    pub fn claimed(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y));
        Series::new(name, Look::Claimed, points)
    }
}

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }
}
