//! The data of a chart as rows of text.

use super::{Chart, Scale};

impl Chart {
    /// A head, and then one row per point: panel, series, how it is drawn, x, y, and the ends of
    /// the interval.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let head = ["panel", "series", "look", "x", "y", "low", "high"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for panel in &self.panels {
            for series in &panel.series {
                rows.extend(series.points.iter().map(|point| {
                    let (low, high) = point.interval.unzip();
                    let end = |end: Option<f64>| end.map_or(String::new(), rounded);
                    vec![
                        panel.title.clone(),
                        series.name.clone(),
                        series.look.name().to_owned(),
                        self.x_text(point.x),
                        rounded(point.y),
                        end(low),
                        end(high),
                    ]
                }));
            }
        }
        rows
    }

    fn x_text(&self, x: f64) -> String {
        match &self.x.scale {
            Scale::Names(names) => names.get(x as usize).cloned().unwrap_or_default(),
            Scale::Linear | Scale::Logarithmic | Scale::Auto => rounded(x),
        }
    }

    /// The data as comma-separated values.
    pub fn csv(&self) -> String {
        csv(&self.rows())
    }
}

/// Six significant digits are more than any interval has.
fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1.0 => 5.0 - libm::floor(libm::log10(size)),
        _ => 6.0,
    };
    let digits = digits.clamp(0.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Rows as comma-separated values (RFC 4180, with line feeds).
pub fn csv(rows: &[Vec<String>]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().map(quoted).collect();
        format!("{}\n", cells.join(","))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Look, Panel, Point, Series};

    #[test]
    fn points_become_rows() {
        let point = Point {
            x: 1.0,
            y: 2.0 / 3.0,
            interval: Some((0.5, 1_234.567_89)),
        };
        let chart = Chart {
            title: String::new(),
            x: Axis::names("load", vec!["light".to_owned(), "heavy".to_owned()]),
            y: Axis::new("messages"),
            panels: vec![Panel {
                title: "a, \"b\"".to_owned(),
                series: vec![
                    Series::new("measured", Look::Measured, [point]),
                    Series::claimed("claimed", [(0.0, 3.0)]),
                ],
            }],
            caption: String::new(),
        };
        let expected = "panel,series,look,x,y,low,high\n\
                        \"a, \"\"b\"\"\",measured,measured,heavy,0.666667,0.5,1234.57\n\
                        \"a, \"\"b\"\"\",claimed,claimed,light,3,,\n";
        assert_eq!(chart.csv(), expected);
    }
}
