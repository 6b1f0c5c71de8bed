//! An engine without a machine, for tests here and in the crates that show results.
//!
//! Its time is a pure function of the cell, the repetition and a seed, so a test knows the
//! findings; and a test can make it stop, fail or answer wrongly at a chosen visit.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::catalogue;
use crate::cell::Cell;
use crate::collection::Collection;
use crate::engine::{Answer, Engine, EngineError, Need, Sample, Stop};
use crate::fingerprint;
use crate::needs;
use crate::record::{Host, Record};
use crate::results::Results;
use crate::run_plan::RunPlan;
use crate::runner::{self, Job};
use crate::setting::Setting;
use crate::spec::Spec;

/// The fault, and at which run (counted from 0, warm-up included).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The stop flag is raised during the run.
    Stop(usize),
    /// The run fails.
    Fail(usize),
    /// The answer is wrong.
    WrongAnswer(usize),
}

/// The engine. Knows the settings `speed` (a number: times as fast), `rows`, and any of `extra`.
#[derive(Debug)]
pub struct Mock {
    /// The fault.
    pub trouble: Trouble,
    /// Further settings that it accepts and ignores.
    pub extra: Vec<&'static str>,
    /// The cells of the runs so far, by index.
    pub runs: Vec<usize>,
    /// How often data was really prepared.
    pub prepared: usize,
    /// Whether `finish` was called.
    pub finished: bool,
    /// Measures of every run, beside its own.
    pub measures: Vec<(&'static str, f64)>,
    /// The collection of each run of a cell, counted from 1.
    pub collection: Option<fn(&Cell, u64) -> Collection>,
    block: Option<usize>,
    counts: BTreeMap<usize, u64>,
}

impl Mock {
    /// A mock without trouble.
    pub fn new() -> Mock {
        Mock::with(Trouble::None)
    }

    /// A mock with trouble.
    pub fn with(trouble: Trouble) -> Mock {
        Mock {
            trouble,
            extra: vec!["operator", "pages", "technique", "threads", "size"],
            runs: Vec::new(),
            prepared: 0,
            finished: false,
            measures: Vec::new(),
            collection: None,
            block: None,
            counts: BTreeMap::new(),
        }
    }
}

impl Default for Mock {
    fn default() -> Mock {
        Mock::new()
    }
}

impl Engine for Mock {
    fn name(&self) -> &str {
        "mock"
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let known: Vec<&str> =
            ["case", "rows", "speed"].into_iter().chain(self.extra.iter().copied()).collect();
        if let Some(unknown) = cell.settings.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(EngineError::unknown("setting", unknown, known));
        }
        let rows = cell.integer("rows").unwrap_or(1000);
        Ok(Need { memory_bytes: rows.unsigned_abs() * 16, ..Need::default() })
    }

    fn prepare(&mut self, cell: &Cell, _stop: &Stop) -> Result<(), EngineError> {
        if self.block != Some(cell.block) {
            self.block = Some(cell.block);
            self.prepared += 1;
        }
        Ok(())
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let this = self.runs.len();
        self.runs.push(cell.index);
        let rows = cell.integer("rows").unwrap_or(1000).unsigned_abs();
        let mut answer = Answer { rows, checksum: cell.block as u64 };
        match self.trouble {
            Trouble::Stop(at) if at == this => {
                stop.request();
                return Err(EngineError::Stopped);
            }
            Trouble::Fail(at) if at == this => {
                return Err(EngineError::failed("requested failure"));
            }
            Trouble::WrongAnswer(at) if at == this => answer.rows += 1,
            _ => {}
        }
        let count = self.counts.entry(cell.index).or_default();
        *count += 1;
        // A wobble of up to 2 %, different for every run of a cell and the same in every test.
        let wobble = 1.0 + ((*count * 7 + cell.index as u64 * 3) % 5) as f64 / 200.0;
        let speed = cell.get("speed").and_then(Setting::as_number).unwrap_or(1.0);
        let wall_s = rows as f64 * 1e-7 / speed * wobble;
        let collection = self.collection.map(|collection| Box::new(collection(cell, *count)));
        let own = [("table_bytes", rows as f64 * 16.0)];
        let measures = own.iter().chain(&self.measures);
        let measures = measures.map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Ok(Sample {
            wall_s,
            cpu_s: Some(wall_s),
            tuples: rows,
            answer,
            measures,
            collection,
            ..Sample::default()
        })
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.finished = true;
        Ok(())
    }
}

/// Begins a result in a directory: `run.json` without samples.
///
/// # Panics
/// When the study is wrong or the directory can't be written: it is for tests.
pub fn begin(dir: &Path, text: &str, engine: &dyn Engine) -> (RunPlan, Record) {
    let spec = Spec::parse("demo", text).expect("a study");
    let run_plan = RunPlan::new(&spec);
    let record = Record {
        study: spec.id.clone(),
        run_plan_fingerprint: fingerprint::of(&run_plan, engine),
        scale: None,
        repetitions: None,
        seed: spec.seed,
        engine: engine.name().to_owned(),
        engine_version: engine.version(),
        command_version: "0".to_owned(),
        started_unix_ms: 0,
        host: Host {
            name: "a machine for tests, 2 CPUs".to_owned(),
            tier: "C".to_owned(),
            tier_reason: "no counters in tests".to_owned(),
            ..Host::default()
        },
        limits: None,
        models: Vec::new(),
        needs: needs::of(&run_plan, engine).expect("settings that the engine knows"),
        text: text.to_owned(),
    };
    record.save(dir).expect("a directory that can be written");
    (run_plan, record)
}

/// The results of a whole run, in a directory that holds them.
///
/// # Panics
/// As [`begin`].
pub fn results(dir: &Path, text: &str, engine: &mut dyn Engine) -> Results {
    let (run_plan, record) = begin(dir, text, engine);
    let job = Job { run_plan: &run_plan, fingerprint: &record.run_plan_fingerprint, dir };
    runner::run(job, engine, &Stop::new(), &mut |_| {}).expect("a run");
    Results::load(dir).expect("what was just written")
}

/// Of a machine for tests.
const CORES: usize = 2;

/// The catalogue's studies of an engine in a folder: of `parts` parts, those of the given one.
pub fn studies(engine: &str, folder: &str, (part, parts): (usize, usize)) -> Vec<Spec> {
    let all = catalogue::all().iter().filter(|study| folder_of(study.id) == folder);
    let all = all.map(|study| Spec::parse(study.id, study.text).expect("a study of ours"));
    let ours = all.map(|spec| spec.on_cores(CORES)).filter(|spec| spec.engine == engine);
    ours.enumerate().filter(|(at, _)| at % parts == part % parts).map(|(_, spec)| spec).collect()
}

/// The part of a study's name before the slash.
pub fn folder_of(id: &str) -> &str {
    id.split_once('/').map_or(id, |(folder, _)| folder)
}

/// Which cells of a study a test runs: each value of a setting in one of them, or with
/// `WORKAHEAD_CELLS=all` all that differ.
#[derive(Debug, Default)]
pub struct CellsRun {
    cells: HashSet<String>,
    values: HashSet<String>,
}

impl CellsRun {
    /// Whether no cell is run so far.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether this one is run.
    pub fn adds(&mut self, cell: &Cell) -> bool {
        let differs = self.cells.insert(format!("{:?} {:?}", cell.settings, cell.protocol));
        let values = cell.settings.iter().map(|(key, value)| format!("{key} {value:?}"));
        let values = values.chain([format!("{:?}", cell.protocol)]);
        let new = values.filter(|value| self.values.insert(value.clone())).count();
        differs && (new > 0 || Self::are_all())
    }

    /// Whether all are run that differ.
    pub fn are_all() -> bool {
        std::env::var("WORKAHEAD_CELLS").is_ok_and(|which| which == "all")
    }
}
