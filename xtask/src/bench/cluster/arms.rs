//! The ways to run a query: one process, or a cluster that stays up.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A way to run queries.
pub(super) struct Arm {
    name: &'static str,
    program: PathBuf,
    data: PathBuf,
    out: PathBuf,
    by: By,
}

enum By {
    /// On this CPU alone, or on all.
    Process { cpu: Option<&'static str>, threads: &'static str },
    /// With a partition per slot, or a given number.
    Cluster { child: Child, url: String, partitions: Option<&'static str>, settings: Vec<String> },
}

/// The order of the columns.
pub(super) const ARMS: [&str; 5] = [
    "1 thread, ms",
    "2 threads, ms",
    "1 executor, ms",
    "1 executor, 2 partitions, ms",
    "2 executors, ms",
];

impl Arm {
    /// All ways, in the order of [`ARMS`].
    pub(super) fn all(
        program: &Path,
        data: &Path,
        folder: &Path,
        settings: &[String],
    ) -> Result<Vec<Self>> {
        let cluster = |executors, cpus, partitions| {
            let (child, url) = cluster(program, executors, cpus)?;
            anyhow::Ok(By::Cluster { child, url, partitions, settings: settings.to_vec() })
        };
        let ways = [
            By::Process { cpu: Some("0"), threads: "1" },
            By::Process { cpu: None, threads: "2" },
            cluster("1", "0", None)?,
            cluster("1", "0", Some("2"))?,
            cluster("2", "0,1", None)?,
        ];
        let arm = |(name, by)| Self {
            name,
            program: program.to_owned(),
            data: data.to_owned(),
            out: folder.join("rows.csv"),
            by,
        };
        Ok(ARMS.into_iter().zip(ways).map(arm).collect())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Seconds, and the rows in an order of their own.
    pub(super) fn run(&self, query: usize) -> Result<(f64, Vec<String>)> {
        let mut command = match &self.by {
            By::Process { cpu: Some(cpu), .. } => {
                let mut command = Command::new("taskset");
                command.args(["-c", cpu]).arg(&self.program);
                command
            }
            _ => Command::new(&self.program),
        };
        command.args(["sql", "--json", "--tpch", &query.to_string(), "--data"]).arg(&self.data);
        command.arg("--out").arg(&self.out);
        match &self.by {
            By::Process { threads, .. } => command.args(["--threads", threads]),
            By::Cluster { url, partitions, settings, .. } => {
                command.args(["--cluster", url]);
                command.args(partitions.iter().flat_map(|partitions| ["--threads", partitions]));
                command.args(settings.iter().flat_map(|setting| ["--set", setting.as_str()]))
            }
        };
        let output = command.stderr(Stdio::inherit()).output().context("taskset or workahead")?;
        if !output.status.success() {
            bail!("q{query} by {}: {}", self.name, output.status);
        }
        let facts: Value = serde_json::from_slice(&output.stdout).context("facts")?;
        let seconds = facts["statements"][0]["seconds"].as_f64().context("no time")?;
        let text = std::fs::read_to_string(&self.out).context("no rows")?;
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        Ok((seconds, rows))
    }
}

fn cluster(program: &Path, executors: &str, cpus: &str) -> Result<(Child, String)> {
    let mut command = Command::new(program);
    command.args(["cluster", "--executors", executors, "--slots", "1", "--cpus", cpus]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("workahead does not start")?;
    let output = child.stdout.take().context("no standard output")?;
    let line = BufReader::new(output).lines().next();
    let url = line.context("the cluster did not come up: run it by hand")??;
    Ok((child, url))
}

impl Drop for Arm {
    fn drop(&mut self) {
        if let By::Cluster { child, .. } = &mut self.by {
            // Its parts leave when it does.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
