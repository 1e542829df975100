//! Soloist itself, measured by its own command.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use soloist_bench::Measured;

use crate::{Args, Results};

/// Runs `soloist bench --api`, which also measures the floors.
pub(crate) fn measure(args: &Args) -> Result<Results> {
    let soloist = || {
        let mut command = Command::new(&args.soloist);
        command.stderr(Stdio::inherit());
        command
    };
    let cannot = || format!("cannot run {}", args.soloist.display());
    let version = soloist().arg("--version").output().with_context(cannot)?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let title = format!("{version}, 5 nodes");
    let mut bench = soloist();
    bench.args(["bench", "--api", "--json"]);
    if args.quick {
        bench.arg("--quick");
    }
    if let Some(only) = &args.only {
        bench.args(["--only", only]);
    }
    let output = bench.output().with_context(cannot)?;
    ensure!(output.status.success(), "`soloist bench --api` failed");
    let measured: Vec<Measured> =
        serde_json::from_slice(&output.stdout).context("`soloist bench` printed other JSON")?;
    let mut report = args.report(&title)?;
    for measured in measured {
        report.add(measured)?;
    }
    let measured = report.measured;
    Ok(Results { title, measured })
}
