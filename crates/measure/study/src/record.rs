//! The record of a run: `run.json`, written before the first sample.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workahead_machine::regular_file;

use crate::engine::Need;
use crate::error::StudyError;
use crate::file;
use crate::instrument::Model;
use crate::spec::Spec;

/// Name of the file in the result directory.
pub const FILE: &str = "run.json";

/// Three times ten thousand cells with a limitation each, a study's text of a MiB and a machine of
/// a thousand CPUs. What is kept as JSON takes 36 times its bytes in memory.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Cells, claims and rows repeat the words of a record.
const WORD_BYTES_MAX: usize = 4 << 10;

/// Everything about a run except its observations. The study's text is in it, so that a result can
/// be rendered again long after the study has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Id of the study.
    pub study: String,
    /// Fingerprint of the run plan.
    #[serde(alias = "plan")]
    pub run_plan_fingerprint: String,
    /// The scale applied.
    pub scale: Option<String>,
    /// Repetitions in place of the study's.
    pub repetitions: Option<u32>,
    /// Seed of the data.
    pub seed: u64,
    /// The engine's name.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Version of the command.
    pub command_version: String,
    /// When it was started, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The machine it ran on.
    pub host: Host,
    /// The machine's measured limits, as `workahead limits --json` prints them.
    pub limits: Option<Value>,
    /// The caches by which every cell is counted, where a model counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// The needs of each cell, in the run plan's order.
    pub needs: Vec<Need>,
    /// The study's TOML.
    pub text: String,
}

/// The machine of a run, as far as verdicts need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// One line for people: processor, logical CPUs.
    pub name: String,
    /// The same for the same hardware and settings; a run is not resumed elsewhere.
    pub fingerprint: String,
    /// Evidence tier of this run's figures: limited by the machine and by the run.
    pub tier: String,
    /// Why it is not a better one.
    pub tier_reason: String,
    /// Whether two allowed CPUs are seen to share a core.
    pub siblings: bool,
    /// Whether this run reads hardware counters.
    pub counters: bool,
    /// Cores of the CPUs that it may use, which numbers per core follow.
    #[serde(default)]
    pub cores: usize,
    /// Everything, as `workahead machine --json` prints it.
    pub description: Value,
}

impl Host {
    /// Whether the figures are from a model, the same on every machine.
    #[must_use]
    pub fn is_modelled(&self) -> bool {
        self.tier == "E"
    }
}

impl Record {
    /// Reads `run.json` of a result directory.
    pub fn load(dir: &Path) -> Result<Record, StudyError> {
        let path = dir.join(FILE);
        let text = match regular_file::read_text(&path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(StudyError::NotAResult { path: dir.to_owned() });
            }
            Err(source) => return Err(StudyError::Read { path, source }),
        };
        let damaged = |line: usize, message: String| StudyError::Damaged {
            path: path.clone(),
            line,
            message,
        };
        let record: Record = serde_json::from_str(&text)
            .map_err(|error| damaged(error.line(), error.to_string()))?;
        record.check().map_err(|message| {
            // A word has no line's end in it.
            let shorter = text.lines().take_while(|line| line.len() <= WORD_BYTES_MAX);
            damaged(1 + shorter.count(), format!("damaged: {message}"))
        })?;
        Ok(record)
    }

    /// Writes `run.json` atomically. One that could not be read again is refused.
    pub fn save(&self, dir: &Path) -> Result<(), StudyError> {
        let mut text = serde_json::to_string_pretty(self).expect("a record has only text keys");
        text.push('\n');
        let checked = match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(format!("its record has more than {} MiB", FILE_BYTES_MAX >> 20)),
            false => self.check(),
        };
        checked.map_err(|message| StudyError::Spec { id: self.study.clone(), message })?;
        file::write_in(dir, FILE, text.as_bytes())
    }

    /// Whether its words are short enough to be repeated.
    fn check(&self) -> Result<(), String> {
        let host = &self.host;
        let words = [
            ("study", &self.study),
            ("run_plan_fingerprint", &self.run_plan_fingerprint),
            ("engine", &self.engine),
            ("engine_version", &self.engine_version),
            ("command_version", &self.command_version),
            ("host.name", &host.name),
            ("host.fingerprint", &host.fingerprint),
            ("host.tier", &host.tier),
            ("host.tier_reason", &host.tier_reason),
        ];
        let scale = self.scale.iter().map(|scale| ("scale", scale));
        match words.into_iter().chain(scale).find(|(_, word)| word.len() > WORD_BYTES_MAX) {
            Some((name, _)) => Err(format!("{name} is longer than {} KiB", WORD_BYTES_MAX >> 10)),
            None => Ok(()),
        }
    }

    /// The study that was run, its scale and repetitions applied.
    pub fn spec(&self) -> Result<Spec, StudyError> {
        let spec = match &self.scale {
            Some(scale) => Spec::parse_scaled(&self.study, &self.text, scale)?,
            None => Spec::parse(&self.study, &self.text)?,
        };
        let spec = spec.on_cores(self.host.cores);
        match self.repetitions {
            Some(repetitions) => spec.repeated(repetitions),
            None => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::testing::{self, Mock};

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n";

    fn says(dir: &Path) -> String {
        Record::load(dir).unwrap_err().to_string()
    }

    #[test]
    fn long_words_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (_, record) = testing::begin(dir.path(), STUDY, &Mock::new());
        let path = dir.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        let written = format!("\"tier\": \"{}\"", record.host.tier);
        let with = |bytes: usize| {
            let long = format!("\"tier\": \"{}\"", "C".repeat(bytes));
            let changed = text.replacen(&written, &long, 1);
            assert_ne!(changed, text);
            fs::write(&path, changed).unwrap();
        };
        with(WORD_BYTES_MAX - 100);
        assert!(Record::load(dir.path()).is_ok());
        with(WORD_BYTES_MAX + 1);
        let line = 1 + text.lines().position(|line| line.contains(&written)).unwrap();
        let wanted = format!("line {line}: damaged: host.tier is longer than 4 KiB; run the study");
        assert!(says(dir.path()).contains(&wanted), "{}", says(dir.path()));
        let long = Record { scale: Some("s".repeat(5_000)), ..record };
        let error = long.save(dir.path()).unwrap_err().to_string();
        assert!(error.contains("scale is longer than 4 KiB"), "{error}");
    }

    #[test]
    fn a_long_record_is_refused_unread() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut record) = testing::begin(dir.path(), STUDY, &Mock::new());
        let file = File::options().write(true).open(dir.path().join(FILE)).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        let said = says(dir.path());
        assert!(said.contains("more than 16 MiB"), "{said}");
        record.text = "x".repeat(FILE_BYTES_MAX as usize);
        let error = record.save(dir.path()).unwrap_err().to_string();
        assert!(error.contains("its record has more than 16 MiB"), "{error}");
    }
}
