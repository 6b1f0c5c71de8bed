//! The subcommands, one file each: arguments, and `run`.

mod advise;
mod capacity;
mod capture;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "cluster_absent.rs"]
mod cluster;
mod compare;
mod completions;
mod counters;
mod data;
mod join;
mod limits;
mod machine;
mod man;
mod reproduce;
#[cfg(feature = "scheduler")]
mod scheduler;
#[cfg(not(feature = "scheduler"))]
#[path = "scheduler_absent.rs"]
mod scheduler;
mod simulate;
#[cfg(feature = "sql")]
mod sql;
#[cfg(not(feature = "sql"))]
#[path = "sql_absent.rs"]
mod sql;
pub(crate) mod study;

use std::process::ExitCode;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show this computer: topology, caches, siblings, pages, counters
    Machine(machine::Args),
    /// List counters, count events of a program, or profile where its time goes
    Counters(counters::Args),
    /// Measure its memory: latency, random lines per second, bandwidth
    Limits(limits::Args),
    /// Generate test data as Parquet
    Data(data::Args),
    /// Join two files: Parquet, CSV or Arrow
    Join(join::Args),
    /// Run SQL over files with DataFusion (feature `sql`)
    Sql(sql::Args),
    /// Run workers that answer SQL with Workahead's joins (feature `cluster`)
    Cluster(cluster::Args),
    /// List, show, run, resume and compare studies
    Study(study::Args),
    /// Answer a question about a database in a sentence: SMT, cores, parallelism, clients
    Advise(advise::Args),
    /// Say which share of a live server's capacity is in use, from its usual load
    Capacity(capacity::Args),
    /// Record a live server and its machine for some minutes, to compare later
    Capture(capture::Args),
    /// Compare two captures or two results: the differences and their causes
    Compare(compare::Args),
    /// Run a paper's experiments: its figure, the figure here, and a verdict
    Reproduce(reproduce::Args),
    /// Run a workload on a modelled machine
    Simulate(simulate::Args),
    /// Schedule threads of one program together, on Linux with sched_ext (feature `scheduler`)
    Scheduler(scheduler::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the manual page, or write one for every command
    Man(man::Args),
}

impl Command {
    /// Runs the command. The status is that of a success; errors have their own.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Machine(args) => machine::run(args),
            Self::Counters(args) => counters::run(args),
            Self::Limits(args) => limits::run(args),
            Self::Data(args) => data::run(args),
            Self::Join(args) => join::run(args),
            Self::Sql(args) => sql::run(args),
            Self::Cluster(args) => cluster::run(args),
            Self::Study(args) => study::run(args),
            Self::Advise(args) => advise::run(args),
            Self::Capacity(args) => capacity::run(args),
            Self::Capture(args) => capture::run(args),
            Self::Compare(args) => compare::run(args),
            Self::Reproduce(args) => reproduce::run(args),
            Self::Simulate(args) => simulate::run(args),
            Self::Scheduler(args) => scheduler::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
        }
    }
}
