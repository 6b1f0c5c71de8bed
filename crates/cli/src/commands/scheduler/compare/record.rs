//! Measurements: a figure of a load under a scheduler in a round, and the record of all.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use workahead_machine::{atomic_file, regular_file};

/// A record of some hundred cells is some hundred kB.
const BYTES_MAX: u64 = 64 << 20;
/// They are compared in columns.
const SCHEDULERS_MAX: usize = 32;
/// A hundred rounds of that many under each load.
const CELLS_MAX: usize = 25_000;

/// A comparison, finished or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Version of the program that measured.
    pub(super) workahead: String,
    pub(super) kernel: String,
    pub(super) cpu: String,
    pub(super) cpus: usize,
    pub(super) cores: usize,
    /// Counted in each cell.
    pub(super) seconds: f64,
    pub(super) rounds: u32,
    /// In the order in which they were given.
    pub(super) schedulers: Vec<SchedulerName>,
    pub(super) cells: Vec<Cell>,
}

/// A scheduler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SchedulerName {
    /// As it was given.
    pub(super) words: String,
    /// This project's.
    pub(super) ours: bool,
    /// The kernel's name for it; absent where it never had the tasks.
    pub(super) name: Option<String>,
}

/// A load under a scheduler in a round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) round: u32,
    pub(super) scheduler: String,
    pub(super) load: String,
    pub(super) figures: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = regular_file::read(path, BYTES_MAX)
            .with_context(|| format!("can't read {}", path.display()))?;
        let what = || format!("{} is not a record of a comparison", path.display());
        let record: Self = serde_json::from_slice(&bytes).with_context(what)?;
        let is_one = record.schedulers.len() <= SCHEDULERS_MAX && record.cells.len() <= CELLS_MAX;
        ensure!(is_one, "{}: it has more schedulers or cells than one has", what());
        Ok(record)
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self).context("can't write the record as JSON")?;
        atomic_file::write_whole(path, format!("{text}\n").as_bytes())
            .with_context(|| format!("can't write {}", path.display()))
    }

    /// A figure of a load under a scheduler, in the middle of its rounds.
    pub(super) fn middle(&self, scheduler: &str, load: &str, figure: &str) -> Option<Middle> {
        let cells =
            self.cells.iter().filter(|cell| cell.scheduler == scheduler && cell.load == load);
        Middle::of(cells.filter_map(|cell| cell.figures.get(figure).copied()).collect())
    }

    /// Failures, each once.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let said = self.cells.iter().filter_map(|cell| {
            let why = cell.failure.as_ref()?;
            Some(format!("{}, {}: {why}", cell.scheduler, cell.load))
        });
        said.filter(|said| seen.insert(said.clone())).collect()
    }
}

/// The median of rounds, and what lies around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Middle {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Middle {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[half - 1], values[half]),
            _ => values[half],
        };
        Some(Self { median, least, most })
    }

    /// Whether their rounds don't lie apart.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_rounds() {
        assert_eq!(Middle::of(vec![]), None);
        let odd = Middle::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.least, odd.most), (2.0, 1.0, 3.0));
        let even = Middle::of(vec![4.0, f64::NAN, 3.5]).unwrap();
        assert_eq!((even.median, even.overlaps(&odd)), (3.75, false));
    }

    #[test]
    fn more_cells_than_a_comparison_has_are_refused() {
        let cell = r#"{"round": 1, "scheduler": "s", "load": "l", "figures": {}}"#;
        let of = |cells: usize| {
            let cells = vec![cell; cells].join(",");
            let text = format!(
                r#"{{"workahead": "", "kernel": "", "cpu": "", "cpus": 1, "cores": 1, "seconds": 1,
                "rounds": 1, "schedulers": [], "cells": [{cells}]}}"#
            );
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            Record::read(file.path())
        };
        assert_eq!(of(CELLS_MAX).unwrap().cells.len(), CELLS_MAX);
        assert!(of(CELLS_MAX + 1).unwrap_err().to_string().contains("more"));
    }
}
