//! Messages per entry against the number of nodes, as an SVG plot.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::simulate::Report;

/// A plot that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the plot: {0}")]
pub struct PlotError(String);

const PANEL_WIDTH: u32 = 720;
const LEGEND_WIDTH: u32 = 260;
const HEIGHT: u32 = 600;
const LEGEND_TOP: u32 = 60;
const LEGEND_LINE: u32 = 24;

/// Distinct colours, after Okabe and Ito. When they are used up, hollow marks distinguish the
/// lines.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(70, 70, 70),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws one panel per load and one line per algorithm, with both axes logarithmic. Points without
/// messages (a cluster of one node) cannot be shown on such an axis and are omitted.
pub fn plot(reports: &[Report]) -> Result<String, PlotError> {
    let mut svg = String::new();
    draw(&mut svg, reports).map_err(|error| PlotError(error.to_string()))?;
    Ok(svg)
}

fn draw(svg: &mut String, reports: &[Report]) -> Result<(), Box<dyn Error>> {
    let loads = distinct(reports.iter().map(|report| report.load.clone()));
    let names = distinct(reports.iter().map(Report::label));
    let panels_width = PANEL_WIDTH * u32::try_from(loads.len())?;
    let legend_height = LEGEND_TOP + LEGEND_LINE * (u32::try_from(names.len())? + 1);
    let size = (panels_width + LEGEND_WIDTH, HEIGHT.max(legend_height));
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (panels, legend) = root.split_horizontally(panels_width);
    for (panel, load) in panels.split_evenly((1, loads.len())).iter().zip(&loads) {
        let of_load: Vec<_> = reports.iter().filter(|r| r.load == *load).collect();
        draw_panel(panel, load, &of_load, &names)?;
    }
    draw_legend(&legend, &names)?;
    root.present()?;
    Ok(())
}

fn draw_panel(
    panel: &Area<'_>,
    load: &str,
    reports: &[&Report],
    names: &[String],
) -> Result<(), Box<dyn Error>> {
    let point = |report: &Report| (report.nodes as f64, report.measures.messages_per_entry);
    let points: Vec<_> = reports
        .iter()
        .map(|r| point(r))
        .filter(|p| p.1 > 0.0)
        .collect();
    let nodes = bounds(points.iter().map(|point| point.0));
    let messages = bounds(points.iter().map(|point| point.1));
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{load} load"), ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(nodes.log_scale(), messages.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("nodes")
        .y_desc("messages per entry")
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 16))
        .light_line_style(WHITE)
        .x_label_formatter(&round_number)
        .y_label_formatter(&round_number)
        .draw()?;
    for (index, name) in names.iter().enumerate() {
        let of_name = reports.iter().filter(|report| report.label() == *name);
        let mut line: Vec<_> = of_name.map(|r| point(r)).filter(|p| p.1 > 0.0).collect();
        line.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (stroke, mark) = style(index);
        chart.draw_series(LineSeries::new(line.iter().copied(), stroke))?;
        chart.draw_series(line.iter().map(|point| Circle::new(*point, 4, mark)))?;
    }
    Ok(())
}

fn draw_legend(legend: &Area<'_>, names: &[String]) -> Result<(), Box<dyn Error>> {
    for (index, name) in names.iter().enumerate() {
        let y = i32::try_from(LEGEND_TOP + LEGEND_LINE * u32::try_from(index)?)?;
        let (stroke, mark) = style(index);
        legend.draw(&PathElement::new([(0, y), (24, y)], stroke))?;
        legend.draw(&Circle::new((12, y), 4, mark))?;
        let text = ("sans-serif", 15).into_font().color(&BLACK);
        legend.draw(&Text::new(name.as_str(), (32, y - 7), text))?;
    }
    Ok(())
}

/// Labels an axis only at 1, 2 and 5 times a power of ten; further labels would overlap.
fn round_number(value: &f64) -> String {
    let text = value.to_string();
    let digits = text.trim_matches(['0', '.']);
    if ["1", "2", "5"].contains(&digits) {
        text
    } else {
        String::new()
    }
}

/// The style of the line with this index, and of its marks.
fn style(index: usize) -> (ShapeStyle, ShapeStyle) {
    let colour = COLOURS[index % COLOURS.len()];
    let stroke = colour.stroke_width(2);
    let mark = if index < COLOURS.len() {
        colour.filled()
    } else {
        stroke
    };
    (stroke, mark)
}

/// Each value once, in the order of first appearance.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for value in values {
        if !list.contains(&value) {
            list.push(value);
        }
    }
    list
}

/// A range from slightly below the minimum to slightly above the maximum. Never empty, even if
/// there are no values.
fn bounds(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high {
        return 1.0..10.0;
    }
    low * 0.9..high * 1.1
}
