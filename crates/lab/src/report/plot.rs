//! Messages per entry against the number of nodes, as an SVG picture.

use std::collections::BTreeMap;
use std::ops::Range;

use plotters::prelude::*;

use crate::simulate::Report;

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture: {0}")]
pub struct PlotError(String);

const PANEL_WIDTH: u32 = 900;
const HEIGHT: u32 = 640;

/// Distinct colours, after Okabe and Ito and further; lines also differ in their marks.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(120, 60, 20),
];

/// Draws one panel a load, one line an algorithm, both axes logarithmic. Points without any
/// message (a cluster of one node) have no place on such an axis and are left out.
pub fn plot(reports: &[Report]) -> Result<String, PlotError> {
    let mut loads: Vec<&str> = Vec::new();
    for report in reports {
        if !loads.contains(&report.load.as_str()) {
            loads.push(&report.load);
        }
    }
    let mut svg = String::new();
    draw(&mut svg, reports, &loads).map_err(|error| PlotError(error.to_string()))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    reports: &[Report],
    loads: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    let width = PANEL_WIDTH * u32::try_from(loads.len().max(1))?;
    let root = SVGBackend::with_string(svg, (width, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, load) in root.split_evenly((1, loads.len().max(1))).iter().zip(loads) {
        let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for report in reports.iter().filter(|report| report.load == **load) {
            let point = (report.nodes as f64, report.measures.messages_per_entry);
            let line = lines.entry(label(report)).or_default();
            if point.1 > 0.0 {
                line.push(point);
            }
        }
        let points = || lines.values().flatten();
        let nodes = bounds(points().map(|point| point.0));
        let messages = bounds(points().map(|point| point.1));
        let mut chart = ChartBuilder::on(panel)
            .caption(format!("{load} load"), ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .right_y_label_area_size(8)
            .build_cartesian_2d(nodes.log_scale(), messages.log_scale())?;
        chart
            .configure_mesh()
            .x_desc("nodes")
            .y_desc("messages per entry")
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 16))
            .draw()?;
        for (index, (name, line)) in lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let hollow = index >= COLOURS.len();
            let mark = |colour: RGBColor| {
                if hollow {
                    colour.stroke_width(2)
                } else {
                    colour.filled()
                }
            };
            chart
                .draw_series(LineSeries::new(
                    line.iter().copied(),
                    colour.stroke_width(2),
                ))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            chart.draw_series(
                line.iter()
                    .map(|point| Circle::new(*point, 4, mark(colour))),
            )?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
    }
    root.present()?;
    Ok(())
}

fn label(report: &Report) -> String {
    if report.variant.is_empty() {
        report.algorithm.to_owned()
    } else {
        format!("{} ({})", report.algorithm, report.variant)
    }
}

/// From a bit below the least to a bit above the greatest value; of something, even for nothing.
fn bounds(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return 1.0..10.0;
    }
    low * 0.9..high * 1.1
}
