//! The ways to run a query: one process, or workers that stay up.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Options;
use super::process::{Cluster, list};
use crate::bench::cpu_time;

/// A way to run a query; *N* is the number of workers of the larger cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A process of one thread.
    OneThread,
    /// A process of *N* threads.
    Threads,
    /// The same with DataFusion's joins.
    ThreadsStock,
    OneWorker,
    Workers,
    /// *N* workers without filters across stages.
    WorkersUnfiltered,
    /// *N* workers with DataFusion's joins.
    WorkersStock,
    /// *N* workers, and the client's choice whether to use them.
    Chosen,
}

/// As a cluster's client sets it.
const BEST_PLAN: [&str; 2] = [
    "datafusion.optimizer.hash_join_single_partition_threshold=67108864",
    "datafusion.optimizer.hash_join_single_partition_threshold_rows=1000000000",
];

/// All ways, in the order of the columns.
pub(super) const WAYS: [Way; 8] = [
    Way::OneThread,
    Way::Threads,
    Way::ThreadsStock,
    Way::OneWorker,
    Way::Workers,
    Way::WorkersUnfiltered,
    Way::WorkersStock,
    Way::Chosen,
];

impl Way {
    pub(super) fn name(self, workers: usize) -> String {
        match self {
            Self::OneThread => "1 thread".to_owned(),
            Self::Threads => format!("{workers} threads"),
            Self::ThreadsStock => format!("{workers} threads, stock"),
            Self::OneWorker => "1 worker".to_owned(),
            Self::Workers => format!("{workers} workers"),
            Self::WorkersUnfiltered => format!("{workers} workers, no filters"),
            Self::WorkersStock => format!("{workers} workers, stock"),
            Self::Chosen => format!("{workers} workers, chosen"),
        }
    }

    fn is_stock(self) -> bool {
        matches!(self, Self::ThreadsStock | Self::WorkersStock)
    }

    /// Whether its queries run on workers, whatever the client would choose.
    pub(super) fn needs_workers(self) -> bool {
        let own = [Self::OneWorker, Self::Workers, Self::WorkersUnfiltered, Self::WorkersStock];
        own.contains(&self)
    }

    /// Threads, or workers.
    fn width(self, workers: usize) -> usize {
        match self {
            Self::OneThread | Self::OneWorker => 1,
            _ => workers,
        }
    }
}

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) wall_s: f64,
    pub(super) client_cpu_s: f64,
    pub(super) workers_cpu_s: f64,
    /// Bytes between processes, of reports that have them.
    pub(super) exchanged_bytes: Option<f64>,
}

impl Cost {
    pub(super) fn cpu_s(&self) -> f64 {
        self.client_cpu_s + self.workers_cpu_s
    }

    pub(super) fn json(&self, way: &str, query: usize, round: usize) -> Value {
        json!({
            "way": way, "query": query, "round": round, "wall_s": self.wall_s,
            "client_cpu_s": self.client_cpu_s, "workers_cpu_s": self.workers_cpu_s,
            "exchanged_bytes": self.exchanged_bytes,
        })
    }
}

/// The parts that all ways share.
pub(super) struct Runner<'a> {
    program: &'a Path,
    data: &'a Path,
    out: PathBuf,
    cpus: &'a [usize],
    options: &'a Options,
    one: Cluster,
    all: Cluster,
}

impl<'a> Runner<'a> {
    /// Starts a cluster on the first CPU, and one on all of them.
    pub(super) fn start(
        program: &'a Path,
        data: &'a Path,
        folder: &Path,
        cpus: &'a [usize],
        options: &'a Options,
    ) -> Result<Self> {
        let one = Cluster::start(program, data, folder, &cpus[..1])?;
        let all = Cluster::start(program, data, folder, cpus)?;
        Ok(Self { program, data, out: folder.join("rows.csv"), cpus, options, one, all })
    }

    pub(super) fn name(&self, way: Way) -> String {
        way.name(self.cpus.len())
    }

    fn cluster(&self, way: Way) -> Option<&Cluster> {
        match way {
            Way::OneThread | Way::Threads | Way::ThreadsStock => None,
            Way::OneWorker => Some(&self.one),
            Way::Workers | Way::WorkersUnfiltered | Way::WorkersStock | Way::Chosen => {
                Some(&self.all)
            }
        }
    }

    /// The cost of a query, and its rows in an order of their own.
    pub(super) fn run(&self, way: Way, query: usize) -> Result<(Cost, Vec<String>)> {
        let context = || format!("q{query}, {}", self.name(way));
        let cluster = self.cluster(way);
        let workers_cpu_s = || cluster.map_or(Ok(0.0), Cluster::cpu_s);
        let (client, workers) = (cpu_time::of_children()?, workers_cpu_s()?);
        let output = self.command(way, query).output().context("taskset or workahead")?;
        let client_cpu_s = cpu_time::of_children()? - client;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("{}: {}", context(), error.lines().last().unwrap_or("no reason given"));
        }
        let workers_cpu_s = workers_cpu_s()? - workers;
        let report: Value = serde_json::from_slice(&output.stdout).with_context(context)?;
        let statement = &report["statements"][0];
        let wall_s = statement["seconds"].as_f64().context("no time").with_context(context)?;
        let exchanged_bytes = statement["exchanged_bytes"].as_f64();
        let text = std::fs::read_to_string(&self.out).with_context(context)?;
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        Ok((Cost { wall_s, client_cpu_s, workers_cpu_s, exchanged_bytes }, rows))
    }

    fn command(&self, way: Way, query: usize) -> Command {
        let width = way.width(self.cpus.len());
        let cluster = self.cluster(way);
        let mut command = if cluster.is_none() || self.options.pin_client {
            let mut command = Command::new("taskset");
            command.args(["-c", &list(&self.cpus[..width])]).arg(self.program);
            command
        } else {
            Command::new(self.program)
        };
        command.args(["sql", "--json", "--tpch", &query.to_string(), "--data"]).arg(self.data);
        command.args(["--threads", &width.to_string(), "--out"]).arg(&self.out);
        if way.is_stock() {
            command.arg("--stock");
        }
        if cluster.is_none() && width > 1 {
            // A process's best plan, and a cluster's: small build sides are not exchanged.
            for setting in BEST_PLAN {
                command.args(["--set", setting]);
            }
        }
        if way == Way::WorkersUnfiltered {
            command.args(["--set", "cluster.filter_wait_seconds=0"]);
        }
        if let Some(cluster) = cluster {
            command.arg("--cluster").arg(&cluster.url);
            let place = if way.needs_workers() { "workers" } else { "auto" };
            for setting in &self.options.settings {
                command.args(["--set", setting]);
            }
            command.args(["--set", &format!("cluster.run={place}")]);
        }
        command.env_remove("WORKAHEAD_CLUSTER");
        command
    }
}
