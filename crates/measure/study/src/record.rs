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

/// A study's text, and the needs of each cell.
const FILE_BYTES_MAX: u64 = 256 << 20;

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
        serde_json::from_str(&text).map_err(|error| StudyError::Damaged {
            path,
            line: error.line(),
            message: error.to_string(),
        })
    }

    /// Writes `run.json` atomically.
    pub fn save(&self, dir: &Path) -> Result<(), StudyError> {
        let mut text = serde_json::to_string_pretty(self).expect("a record has only text keys");
        text.push('\n');
        file::write_in(dir, FILE, text.as_bytes())
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
