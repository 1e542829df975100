//! `soloist lab compare`.

use serde_json::Value;

use super::{json, lab, lab_in};

#[test]
fn compare_covers_every_algorithm_size_and_load() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "compare --algorithms all --nodes 3,8 --load light,heavy --entries 100";
    let output = lab_in(
        folder.path(),
        &format!("{arguments} --json --plot picture.svg"),
    );
    assert!(output.status.success(), "{output:?}");
    let reports: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let algorithms = json("list --json");
    let names: Vec<_> = algorithms
        .as_array()
        .unwrap()
        .iter()
        .map(|listed| listed["name"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 13, "{names:?}");
    for name in &names {
        let runs = reports
            .iter()
            .filter(|report| report["algorithm"] == **name);
        assert_eq!(runs.count(), 4, "{name}");
    }
    let svg = std::fs::read_to_string(folder.path().join("picture.svg")).unwrap();
    for name in names {
        assert!(svg.contains(name), "the picture does not name {name}");
    }
    let tables = String::from_utf8(lab(arguments).stdout).unwrap();
    let (table, differences) = tables.split_once("\n\n").unwrap();
    assert_eq!(table.lines().count(), reports.len() + 1);
    // Of each size and load, the first algorithm is what the others are compared with.
    assert_eq!(differences.lines().count(), reports.len() - 4 + 1);
    let csv = lab(&format!("{arguments} --csv"));
    assert_eq!(
        String::from_utf8(csv.stdout).unwrap().lines().count(),
        reports.len() + 1
    );
}

#[test]
fn compare_takes_variants_after_a_plus() {
    let reports = json(
        "compare --algorithms raymond,raymond+greedy+piggyback --nodes 5 --load heavy --entries 100 --json",
    );
    assert_eq!(reports[0]["variant"], "");
    assert_eq!(reports[1]["variant"], "piggyback,greedy");
}

#[test]
fn compare_runs_each_shape() {
    let reports = json(
        "compare --algorithms raymond,neilsen-mizuno --nodes 7 --shape line,star:6 --load heavy --entries 100 --json",
    );
    let shapes: Vec<_> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|report| {
            (
                report["algorithm"].as_str().unwrap(),
                report["shape"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shapes,
        [
            ("raymond", "line"),
            ("raymond", "star:6"),
            ("neilsen-mizuno", "line"),
            ("neilsen-mizuno", "star:6")
        ]
    );
}

/// A row of the differences names its own shape, since several shapes have the same algorithm.
#[test]
fn differences_name_the_shapes_of_both_sides() {
    let output = lab(
        "compare --algorithms neilsen-mizuno,raymond --nodes 7 --shape line,star:6 --load heavy --entries 100",
    );
    let tables = String::from_utf8(output.stdout).unwrap();
    let (_, differences) = tables.split_once("\n\n").expect("two tables");
    let shape_and_minus = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        words[2..6].join(" ")
    };
    let rows: Vec<_> = differences.lines().skip(1).map(shape_and_minus).collect();
    let minus = "neilsen-mizuno, line";
    let expected = [
        format!("neilsen-mizuno star:6 {minus}"),
        format!("raymond line {minus}"),
        format!("raymond star:6 {minus}"),
    ];
    assert_eq!(rows, expected, "{differences}");
}

/// Two plots of the same runs are the same file, and the metric decides what is drawn.
#[test]
fn plots_are_repeatable_and_show_the_metric() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |file: &str, options: &str| {
        let command = format!("{options} --plot {file}");
        let output = lab_in(folder.path(), &command);
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(folder.path().join(file)).unwrap()
    };
    let runs = "compare --algorithms raymond,central --nodes 3,9 --load heavy --entries 100";
    let messages = draw("one.svg", runs);
    assert_eq!(messages, draw("two.svg", runs));
    assert!(messages.contains(">messages per entry</text>"));
    let delays = draw("three.svg", &format!("{runs} --metric sync-delay"));
    assert!(delays.contains("synchronisation delay"));
    assert_ne!(messages, delays);
    let spread = draw("run.svg", "run --algorithm raymond --nodes 9 --entries 200");
    assert!(spread.contains(">response time</text>"));
}

/// Every mean has an interval in every format, and the runs of a seed are paired.
#[test]
fn means_and_differences_have_intervals() {
    let arguments = "compare -a ricart-agrawala,central -n 5 --load think:9 --entries 100";
    let reports = json(&format!("{arguments} --json"));
    // 2(N-1), but for requests that are in flight where the window begins and ends.
    let own = reports[0]["messages_per_entry"]["mean"].as_f64().unwrap();
    assert!((own - 8.0).abs() < 0.1, "{own}");
    assert!(reports[0]["difference"].is_null());
    let difference = &reports[1]["difference"];
    assert_eq!(difference["from"], "ricart-agrawala, complete");
    let messages = &reports[1]["messages_per_entry"];
    let minus = difference["messages_per_entry"]["mean"].as_f64().unwrap();
    let expected = messages["mean"].as_f64().unwrap() - own;
    assert!((minus - expected).abs() < 1e-9, "{minus}, {expected}");
    let csv = String::from_utf8(lab(&format!("{arguments} --csv")).stdout).unwrap();
    let head = csv.lines().next().unwrap();
    for column in [
        "messages_per_entry,messages_per_entry_half_width",
        "messages_difference,messages_difference_half_width",
        "max_overtaken,max_overtaken_sample",
    ] {
        assert!(head.contains(column), "no {column} in {head}");
    }
    let widths: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{csv}");
    let tables = String::from_utf8(lab(arguments).stdout).unwrap();
    assert!(tables.contains(" ± "), "{tables}");
    assert!(tables.contains("ricart-agrawala, complete"), "{tables}");
}
