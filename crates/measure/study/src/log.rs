//! The log of observations: one JSON line per sample, on the disk before the next sample starts.
//!
//! A run may end at any byte. Lines are therefore written with one call and synced, and a last
//! line without its newline counts as torn: it is cut off before anything is appended.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use workahead_machine::regular_file;

use crate::error::StudyError;
use crate::observation::{Observation, Outcome};
use crate::run_plan::RunPlan;

/// Name of the file in the result directory.
pub const FILE: &str = "observations.jsonl";

/// A thousand bytes for each of a million samples.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Some hundred times the counts and the profile of an engine's sample. What a sample's own fields
/// don't name takes many times its bytes until it is known to be nothing.
const LINE_BYTES_MAX: usize = 64 << 20;

/// An engine has some fifty.
const MEASURES_MAX: usize = 4096;
/// Each name becomes a column of all samples.
const FIGURES_MAX: usize = 1 << 27;

/// The log, open at its end.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the log of a result directory, cutting off a torn last line.
    pub fn open(dir: &Path) -> Result<Log, StudyError> {
        let path = dir.join(FILE);
        let write = |source| StudyError::Write { path: path.clone(), source };
        // The log of a result is in its directory: somebody else would have made it a link.
        let file = regular_file::append(&path).map_err(write)?;
        // Released when the file is closed, also by a killed process.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(StudyError::Busy { path: dir.to_owned() });
        }
        let whole = whole_bytes(&path)?.len() as u64;
        if file.metadata().map_err(write)?.len() != whole {
            file.set_len(whole).and_then(|()| file.sync_all()).map_err(write)?;
        }
        Ok(Log { path, file })
    }

    /// Appends an observation; it is on the disk when this returns. Of a sample that could not be
    /// read again, that it failed.
    pub fn append(&mut self, observation: &mut Observation) -> Result<(), StudyError> {
        let mut line = line_of(observation);
        if line.len() > LINE_BYTES_MAX {
            observation.outcome = Outcome::Failed { failure: too_long() };
            line = line_of(observation);
        }
        line.push(b'\n');
        let done = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        done.map_err(|source| StudyError::Write { path: self.path.clone(), source })
    }
}

fn line_of(observation: &Observation) -> Vec<u8> {
    serde_json::to_vec(observation).expect("an observation has only text keys")
}

fn too_long() -> String {
    format!("a sample takes more than {} MiB", LINE_BYTES_MAX >> 20)
}

/// Whether a run is writing to the log of a directory now.
pub fn is_busy(dir: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    regular_file::open(&dir.join(FILE)).is_ok_and(locked)
}

/// The whole lines of a log; nothing when there is none.
fn whole_bytes(path: &Path) -> Result<Vec<u8>, StudyError> {
    let mut bytes = match regular_file::read(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(StudyError::Read { path: path.to_owned(), source }),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    bytes.truncate(whole);
    Ok(bytes)
}

/// Every whole observation of a result directory. Lines of another run plan, of unknown cells and
/// doubles are refused: someone edited or mixed logs, and figures from them would be wrong.
pub fn read(
    dir: &Path,
    fingerprint: &str,
    run_plan: &RunPlan,
) -> Result<Vec<Observation>, StudyError> {
    let path = dir.join(FILE);
    let mut observations = Vec::new();
    let mut seen = HashSet::new();
    let mut names: HashSet<String> = HashSet::new();
    let settings: HashSet<&String> =
        run_plan.cells.iter().flat_map(|c| c.settings.keys()).collect();
    let settings = settings.len();
    for (index, line) in whole_bytes(&path)?.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let damaged =
            |message: String| StudyError::Damaged { path: path.clone(), line: index + 1, message };
        if line.len() > LINE_BYTES_MAX {
            return Err(damaged(too_long()));
        }
        let observation: Observation =
            serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        if observation.run_plan_fingerprint != fingerprint {
            return Err(StudyError::OtherRunPlan {
                path: path.clone(),
                found: observation.run_plan_fingerprint,
                expected: fingerprint.to_owned(),
            });
        }
        if observation.cell >= run_plan.cells.len()
            || observation.repetition >= run_plan.repetitions
        {
            return Err(damaged("the run plan has no such cell or repetition".to_owned()));
        }
        if !seen.insert((observation.cell, observation.repetition)) {
            return Err(damaged("this sample is in the log twice".to_owned()));
        }
        let collection = observation.sample().and_then(|sample| sample.collection.as_ref());
        collection.map_or(Ok(()), |collection| collection.check()).map_err(damaged)?;
        for name in observation.sample().iter().flat_map(|one| one.measures.keys()) {
            if !names.contains(name) {
                names.insert(name.clone());
            }
        }
        observations.push(observation);
        if names.len() > MEASURES_MAX {
            return Err(damaged(format!("more than {MEASURES_MAX} measures have been named")));
        }
        if (settings + names.len()).saturating_mul(observations.len()) > FIGURES_MAX {
            return Err(damaged(format!(
                "settings and measures of all samples are more than {FIGURES_MAX} values"
            )));
        }
    }
    Ok(observations)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use super::*;
    use crate::testing::{self, Mock};

    #[test]
    fn a_long_line_is_refused_unread() {
        let study = "title = 't'\nquestion = 'q'\nengine = 'mock'\n";
        let dir = tempfile::tempdir().unwrap();
        let (run_plan, record) = testing::begin(dir.path(), study, &Mock::new());
        let mut log = File::create(dir.path().join(FILE)).unwrap();
        // Bytes of zero, which take no disk.
        log.set_len(LINE_BYTES_MAX as u64 + 1).unwrap();
        log.seek(SeekFrom::End(0)).unwrap();
        log.write_all(b"\n").unwrap();
        let error = read(dir.path(), &record.run_plan_fingerprint, &run_plan).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("line 1: a sample takes more than 64 MiB"), "{said}");
    }

    #[test]
    fn a_sample_that_could_not_be_read_again_failed() {
        let study = "title = 't'\nquestion = 'q'\nengine = 'mock'\n";
        let dir = tempfile::tempdir().unwrap();
        let (run_plan, record) = testing::begin(dir.path(), study, &Mock::new());
        let mut observation = Observation {
            study: run_plan.study.clone(),
            run_plan_fingerprint: record.run_plan_fingerprint.clone(),
            cell: 0,
            settings: run_plan.cells[0].settings.clone(),
            repetition: 0,
            slot: 0,
            unix_ms: 0,
            outcome: Outcome::Failed { failure: "x".repeat(LINE_BYTES_MAX) },
        };
        Log::open(dir.path()).unwrap().append(&mut observation).unwrap();
        let kept = read(dir.path(), &record.run_plan_fingerprint, &run_plan).unwrap();
        let Outcome::Failed { failure } = &kept[0].outcome else { panic!("it is a failure") };
        assert_eq!(failure, "a sample takes more than 64 MiB");
    }
}
