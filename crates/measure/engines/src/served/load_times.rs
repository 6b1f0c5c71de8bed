//! The times of loading, kept beside the data: not part of the measured time, and reported with
//! every sample of that data (Chang 2013 leaves it out of his times; S1.3).

use std::path::{Path, PathBuf};

use workahead_machine::{atomic_file, regular_file};
use workahead_study::engine::EngineError;

use super::files;
use crate::fill::FillTimes;

/// Four numbers.
const BYTES_MAX: u64 = 1 << 10;

fn path(home: &Path, data: &str) -> PathBuf {
    home.join(format!("loaded-{data}"))
}

/// Writes them atomically.
pub(super) fn keep(home: &Path, data: &str, filled: &FillTimes) -> Result<(), EngineError> {
    let FillTimes { rows, rows_s, finish_s, statistics_s } = filled;
    let (path, text) = (path(home, data), format!("{rows} {rows_s} {finish_s} {statistics_s}\n"));
    files::make_private(home)?;
    atomic_file::write_whole(&path, text.as_bytes())
        .map_err(|error| EngineError::failed(format!("can't write {}: {error}", path.display())))
}

/// By name; empty if they were not written.
pub(super) fn measures(home: &Path, data: &str) -> Vec<(&'static str, f64)> {
    let text = regular_file::read_text(&path(home, data), BYTES_MAX).unwrap_or_default();
    let names = ["loaded_rows", "load_s", "index_s", "statistics_s"];
    let values: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    if values.len() < names.len() { Vec::new() } else { names.into_iter().zip(values).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_load_times_are_read_back() {
        let home = tempfile::tempdir().unwrap();
        let filled = FillTimes { rows: 7, rows_s: 1.5, finish_s: 0.25, statistics_s: 2.0 };
        keep(home.path(), "data.1", &filled).unwrap();
        let expected =
            [("loaded_rows", 7.0), ("load_s", 1.5), ("index_s", 0.25), ("statistics_s", 2.0)];
        assert_eq!(measures(home.path(), "data.1"), expected);
        assert_eq!(measures(home.path(), "data.2"), []);
    }
}
