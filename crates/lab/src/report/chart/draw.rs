//! Draws a chart: where everything goes.

use super::axis::Fitted;
use super::style::{Style, claimed_dash};
use super::svg::{Anchor, Svg};
use super::{Chart, Look, Panel, Point, Series};
use crate::report::distinct;
use crate::svg_text::{text_width, wrap};

const MARGIN: f64 = 20.0;
const FONT: f64 = 12.0;
const TITLE_FONT: f64 = 15.0;
const LINE: f64 = 17.0;
const TITLE_LINE: f64 = 22.0;
/// Width of a panel's data area, if there is one panel and if there are more.
const WIDTHS: [f64; 2] = [500.0, 330.0];
/// Least height of a panel's data area.
const HEIGHT: f64 = 300.0;
/// Panels beside each other; more of them start a new row.
const COLUMNS: usize = 2;
/// Above the data area: the name of the vertical axis, and the panel's title.
const ABOVE: f64 = 26.0;
/// Below the data area: texts of the ticks, and the name of the horizontal axis.
const BELOW: f64 = 48.0;
/// Length of the sample of the line beside its name.
const SAMPLE: f64 = 26.0;
/// From the data area to the sample.
const LEADER: f64 = 16.0;
/// More horizontal ticks than this are not put at the data.
const DATA_TICKS_MAX: usize = 12;

pub(super) fn svg(chart: &Chart) -> String {
    let layout = Layout::of(chart);
    let mut svg = Svg::new();
    let mut top = MARGIN;
    for line in &layout.title {
        svg.text((MARGIN, top + TITLE_FONT), Anchor::Start, "title", line);
        top += TITLE_LINE;
    }
    top += 6.0;
    for (index, panel) in chart.panels.iter().enumerate() {
        let (row, column) = (index / COLUMNS, index % COLUMNS);
        let area = Area {
            left: MARGIN + column as f64 * layout.cell.0 + layout.left,
            top: top + row as f64 * layout.cell.1 + layout.above,
            width: layout.data.0,
            height: layout.data.1,
        };
        let pen = Pen {
            area,
            layout: &layout,
            chart,
        };
        pen.panel(&mut svg, panel);
    }
    let rows = chart.panels.len().div_ceil(COLUMNS);
    top += rows as f64 * layout.cell.1;
    for line in &layout.caption {
        svg.text((MARGIN, top + FONT), Anchor::Start, "muted", line);
        top += LINE;
    }
    svg.finish(layout.width, top + MARGIN, &chart.title)
}

/// Sizes that all panels share.
struct Layout {
    x: Fitted,
    y: Fitted,
    /// Names of measured series and of claimed ones; the index gives the style.
    measured: Vec<String>,
    claimed: Vec<String>,
    title: Vec<String>,
    caption: Vec<String>,
    /// Width left of a data area, and height above it.
    left: f64,
    above: f64,
    /// Size of a data area.
    data: (f64, f64),
    /// Size of a panel with all its texts.
    cell: (f64, f64),
    width: f64,
}

impl Layout {
    fn of(chart: &Chart) -> Self {
        let (x, y) = axes(chart);
        let series = || chart.panels.iter().flat_map(|panel| &panel.series);
        let names = |claimed: bool| {
            let chosen = series().filter(|one| (one.look == Look::Claimed) == claimed);
            distinct(chosen.map(|one| one.name.clone()))
        };
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text_width(text, FONT)).fold(0.0, f64::max)
        };
        let names_width = widest(&mut series().map(|one| one.name.as_str()));
        let left = widest(&mut y.ticks.iter().map(|tick| tick.text.as_str())) + 12.0;
        let columns = chart.panels.len().clamp(1, COLUMNS);
        let most = chart.panels.iter().map(|panel| panel.series.len()).max();
        let data = (
            WIDTHS[columns - 1],
            HEIGHT.max(LINE * most.unwrap_or(0) as f64),
        );
        let cell_width = left + data.0 + LEADER + SAMPLE + 6.0 + names_width + 24.0;
        let width = 2.0 * MARGIN + columns as f64 * cell_width - 24.0;
        let has_titles = chart.panels.iter().any(|panel| !panel.title.is_empty());
        let above = ABOVE + if has_titles { LINE } else { 0.0 };
        Layout {
            measured: names(false),
            claimed: names(true),
            title: wrap(&chart.title, TITLE_FONT, width - 2.0 * MARGIN),
            caption: wrap(&chart.caption, FONT, width - 2.0 * MARGIN),
            left,
            above,
            data,
            cell: (cell_width, above + data.1 + BELOW + 12.0),
            width,
            x,
            y,
        }
    }

    fn style(&self, series: &Series) -> Style {
        let index = self.measured.iter().position(|name| *name == series.name);
        Style::new(index.unwrap_or(0))
    }

    /// Class and dashes of the line of a series.
    fn stroke(&self, series: &Series) -> (String, &'static str) {
        if series.look == Look::Claimed {
            let index = self.claimed.iter().position(|name| *name == series.name);
            return ("ink".to_owned(), claimed_dash(index.unwrap_or(0)));
        }
        let style = self.style(series);
        (style.stroke(), style.dash())
    }
}

/// Both axes, for the values of all panels.
fn axes(chart: &Chart) -> (Fitted, Fitted) {
    let (mut xs, mut ys, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for series in chart.panels.iter().flat_map(|panel| &panel.series) {
        let half = match series.look {
            Look::Bars => bar_width(&series.points) / 2.0,
            Look::Claimed | Look::Measured | Look::Points | Look::Curve => 0.0,
        };
        for point in &series.points {
            xs.extend([point.x - half, point.x + half]);
            ys.push(point.y);
            ys.extend(point.interval.iter().flat_map(|(low, high)| [*low, *high]));
            match series.look {
                Look::Measured | Look::Points | Look::Bars => data.push(point.x),
                Look::Claimed | Look::Curve => {}
            }
        }
        if series.look == Look::Bars {
            ys.push(0.0);
        }
    }
    let mut x = chart.x.fit(&xs, false);
    x.tick_at(&data, DATA_TICKS_MAX);
    (x, chart.y.fit(&ys, true))
}

/// Width of bars, in values: the least distance of two of them.
fn bar_width(points: &[Point]) -> f64 {
    let distances = points.windows(2).map(|pair| (pair[1].x - pair[0].x).abs());
    let least = distances
        .filter(|distance| *distance > 0.0)
        .fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

/// The data area of a panel.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.left + self.width
    }

    fn bottom(self) -> f64 {
        self.top + self.height
    }
}

/// Draws one panel.
struct Pen<'a> {
    area: Area,
    layout: &'a Layout,
    chart: &'a Chart,
}

impl Pen<'_> {
    fn x(&self, value: f64) -> Option<f64> {
        let share = self.layout.x.position(value)?;
        Some(self.area.left + share * self.area.width)
    }

    fn y(&self, value: f64) -> Option<f64> {
        let share = self.layout.y.position(value)?;
        Some(self.area.bottom() - share * self.area.height)
    }

    fn place(&self, point: &Point) -> Option<(f64, f64)> {
        Some((self.x(point.x)?, self.y(point.y)?))
    }

    fn panel(&self, svg: &mut Svg, panel: &Panel) {
        self.axes(svg, &panel.title);
        // Bars behind lines, lines behind markers.
        for series in panel
            .series
            .iter()
            .filter(|series| series.look == Look::Bars)
        {
            self.bars(svg, series);
        }
        for series in &panel.series {
            self.line(svg, series);
        }
        for series in panel
            .series
            .iter()
            .filter(|series| series.look.has_markers())
        {
            self.markers(svg, series);
        }
        self.names(svg, &panel.series);
    }

    fn axes(&self, svg: &mut Svg, title: &str) {
        let area = self.area;
        if !title.is_empty() {
            let at = (area.left - self.layout.left, area.top - ABOVE - 5.0);
            svg.text(at, Anchor::Start, "panel", title);
        }
        let at = (area.left - self.layout.left, area.top - 12.0);
        svg.text(at, Anchor::Start, "muted", &self.chart.y.name);
        for tick in &self.layout.y.ticks {
            let Some(y) = self.y(tick.value) else {
                continue;
            };
            svg.line(&[(area.left, y), (area.right(), y)], "hair", 1.0, "");
            svg.text((area.left - 8.0, y + 4.0), Anchor::End, "", &tick.text);
        }
        let bottom = area.bottom();
        svg.line(
            &[(area.left, bottom), (area.right(), bottom)],
            "axis",
            1.0,
            "",
        );
        if self.layout.y.has_gap() {
            self.gap(svg, (area.left, bottom - 15.0), (4.0, 2.0));
        }
        if self.layout.x.has_gap() {
            self.gap(svg, (area.left + 20.0, bottom), (2.0, -4.0));
        }
        let mut free = f64::NEG_INFINITY;
        for tick in &self.layout.x.ticks {
            let Some(x) = self.x(tick.value) else {
                continue;
            };
            svg.line(&[(x, bottom), (x, bottom + 5.0)], "axis", 1.0, "");
            let half = text_width(&tick.text, FONT) / 2.0;
            if x - half > free {
                svg.text((x, bottom + 19.0), Anchor::Middle, "", &tick.text);
                free = x + half + 4.0;
            }
        }
        let at = (area.left + area.width / 2.0, bottom + 38.0);
        svg.text(at, Anchor::Middle, "muted", &self.chart.x.name);
    }

    /// Two strokes across an axis: zero is not where the scale would put it.
    fn gap(&self, svg: &mut Svg, at: (f64, f64), half: (f64, f64)) {
        let (along, across) = if half.1 < 0.0 { (3.0, 0.0) } else { (0.0, 3.0) };
        for side in [-1.0, 1.0] {
            let (x, y) = (at.0 + side * along, at.1 + side * across);
            let ends = [(x - half.0, y + half.1), (x + half.0, y - half.1)];
            svg.line(&ends, "axis", 1.0, "");
        }
    }

    fn bars(&self, svg: &mut Svg, series: &Series) {
        let width = bar_width(&series.points);
        let fill = self.layout.style(series).fill();
        for point in &series.points {
            let sides = [point.x - 0.42 * width, point.x + 0.42 * width].map(|x| self.x(x));
            let ([Some(left), Some(right)], Some(top)) = (sides, self.y(point.y)) else {
                continue;
            };
            let bottom = self.area.bottom();
            svg.bar((left, top), (right - left, bottom - top), &fill);
        }
    }

    fn line(&self, svg: &mut Svg, series: &Series) {
        let places: Vec<_> = series.points.iter().filter_map(|p| self.place(p)).collect();
        if matches!(series.look, Look::Bars | Look::Points) || places.len() < 2 {
            return;
        }
        let (class, dash) = self.layout.stroke(series);
        let width = if series.look == Look::Claimed {
            1.2
        } else {
            1.8
        };
        svg.line(&places, &class, width, dash);
    }

    fn markers(&self, svg: &mut Svg, series: &Series) {
        let style = self.layout.style(series);
        let (path, class) = style.marker();
        for point in &series.points {
            let Some((x, y)) = self.place(point) else {
                continue;
            };
            let ends = point
                .interval
                .map(|(low, high)| [self.y(low), self.y(high)]);
            if let Some([Some(low), Some(high)]) = ends {
                let stroke = style.stroke();
                svg.line(&[(x, low), (x, high)], &stroke, 1.2, "");
                for end in [low, high] {
                    svg.line(&[(x - 4.0, end), (x + 4.0, end)], &stroke, 1.2, "");
                }
            }
            svg.shape((x, y), &class, path, 1.3);
        }
    }

    /// The names at the ends of the lines, moved apart where they would overlap.
    fn names(&self, svg: &mut Svg, series: &[Series]) {
        let mut labels: Vec<(&Series, (f64, f64))> = Vec::new();
        for one in series {
            let places = one.points.iter().filter_map(|point| self.place(point));
            let last = places.reduce(|one, other| if other.0 >= one.0 { other } else { one });
            labels.extend(last.map(|last| (one, last)));
        }
        labels.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
        let wanted: Vec<f64> = labels.iter().map(|(_, last)| last.1).collect();
        let heights = spread(&wanted, LINE, (self.area.top, self.area.bottom()));
        let left = self.area.right() + LEADER;
        for ((series, last), y) in labels.iter().zip(heights) {
            let (class, dash) = self.layout.stroke(series);
            svg.line(&[*last, (left - 3.0, y)], &class, 0.6, "1 2");
            match series.look {
                Look::Bars => {
                    let fill = self.layout.style(series).fill();
                    svg.bar((left + 6.0, y - 6.0), (12.0, 12.0), &fill);
                }
                Look::Points => {}
                _ => svg.line(&[(left, y), (left + SAMPLE, y)], &class, 1.8, dash),
            }
            if series.look.has_markers() {
                let (path, class) = self.layout.style(series).marker();
                svg.shape((left + SAMPLE / 2.0, y), &class, path, 1.3);
            }
            let at = (left + SAMPLE + 6.0, y + 4.0);
            svg.text(at, Anchor::Start, "", &series.name);
        }
    }
}

/// Moves sorted positions apart to at least this distance, within these limits if they fit, and as
/// near to where they were as a sweep in both directions gets.
fn spread(wanted: &[f64], distance: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut least = low;
    for place in &mut places {
        *place = place.max(least);
        least = *place + distance;
    }
    let mut most = high;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Axis;

    #[test]
    fn names_are_moved_apart_within_the_panel() {
        let places = spread(&[5.0, 6.0, 50.0, 99.0, 100.0], 10.0, (0.0, 100.0));
        assert_eq!(places, [5.0, 15.0, 50.0, 90.0, 100.0]);
    }

    fn chart(name: &str) -> Chart {
        let points = [4.0, 16.0, 64.0].map(|x| Point {
            x,
            y: x / 2.0,
            interval: Some((x / 4.0, x)),
        });
        let measured = Series::new(name, Look::Measured, points);
        let claimed = Series::claimed("N/2", [(4.0, 2.0), (64.0, 32.0)]);
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            series: vec![measured.clone(), claimed.clone()],
        };
        Chart {
            title: "Messages".to_owned(),
            x: Axis::new("nodes"),
            y: Axis::new("messages"),
            panels: vec![panel("light"), panel("heavy")],
            caption: "One seed.".to_owned(),
        }
    }

    #[test]
    fn a_chart_has_its_texts_its_ticks_and_its_intervals() {
        let svg = chart("own").svg();
        for text in [
            "Messages",
            "light",
            "heavy",
            "One seed.",
            "nodes",
            "messages",
            "N/2",
        ] {
            assert!(svg.contains(&format!(">{text}</text>")), "no {text}");
        }
        // Each tick is in both panels; 16 is not a round number of a logarithmic axis.
        assert_eq!(svg.matches(">16</text>").count(), 2);
        // Three markers in each panel, and one beside the name.
        let marker = Style::new(0).marker().0;
        assert_eq!(svg.matches(marker).count(), 8);
        assert_eq!(svg, chart("own").svg());
    }

    #[test]
    fn hostile_names_stay_text() {
        let svg = chart("</text><script>alert(1)</script>").svg();
        assert!(!svg.contains("<script>"));
        assert!(svg.contains("&lt;script&gt;"));
    }

    #[test]
    fn empty_charts_can_be_drawn() {
        let mut empty = chart("own");
        for panel in &mut empty.panels {
            panel.series.clear();
        }
        assert!(empty.svg().ends_with("</svg>\n"));
        empty.panels.clear();
        assert!(empty.svg().ends_with("</svg>\n"));
    }
}
