//! sysbench's memory program as an engine of its own: threads that pass over blocks, no server.
//!
//! One program runs in this process. Several are worker processes, and what is timed begins with
//! the start of the first and ends with the end of the last.
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `form` | sysbench `1.0` or `0.4`, which differ in elements and in how work is shared |
//! | `programs` | how many at once, an address space each (1) |
//! | `threads` | how many of each (1) |
//! | `block_bytes` | of a block (1024); a power of two in 1.0, a multiple of 4 in 0.4 |
//! | `total_bytes` | to pass over, all threads of all programs together (256 MiB; sysbench itself: 100 GiB) |
//! | `scope` | `global`, one block for all threads of a program, or `local`, one for each |
//! | `oper` | `write`, `read`, `none` |
//! | `access` | `seq`, `rnd` |
//! | `between` | `go-on`, or `yield` after each block, as in Yamada et al. (2010) |
//! | `pages` | `small`, `huge` |

mod programs;

use std::path::PathBuf;

use workahead_counters::event::Privilege;
use workahead_machine::pages::Pages;
use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Engine, EngineContext, EngineError, Need, Sample, Stop};
use workahead_study::setting::Setting;
use workahead_study::worker_process::{Command, Request, Worker};
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::memory::{
    self, Access, BetweenBlocks, MemoryRun, Operation, Options, Scope,
};

use crate::collector::{self, Collector};
use crate::configuration::CellConfiguration;

/// The forms as studies name them; also as a number that was written without quotes.
pub(crate) const FORMS: [(&str, Flavour); 3] =
    [("0.4", Flavour::V04), ("1.0", Flavour::V10), ("1", Flavour::V10)];

/// Beside its blocks a thread has a stack, of which little is touched.
const THREAD_BYTES: u64 = 64 << 10;
/// Most programs: ten in Yamada and Kusakabe (2010).
const PROGRAMS_MAX: usize = 256;
/// Most threads of a program.
const THREADS_MAX: usize = 4096;
/// Largest block: past any cache, within a small machine's memory.
const BLOCK_BYTES_MAX: usize = 4 << 30;
/// 256 MiB by default: a cell should take a second, not sysbench's minute.
const TOTAL_BYTES: usize = 256 << 20;

/// The name that studies use.
pub(crate) const NAME: &str = "sysbench";

/// The engine.
#[derive(Debug, Default)]
pub struct Sysbench {
    /// Collects counters and profiles, where a study asks for them.
    collector: Option<Collector>,
    /// Starts a program beside others.
    worker: Option<Command>,
    home: PathBuf,
}

impl Sysbench {
    /// Opens the engine.
    ///
    /// # Errors
    /// When its cells are to be instrumented.
    pub fn open(context: &EngineContext) -> Result<Self, EngineError> {
        context.without_instrumentation(NAME)?;
        Ok(Self {
            collector: Collector::of(context, &[Privilege::User, Privilege::Kernel]),
            worker: context.worker.clone(),
            home: context.data_dir.clone(),
        })
    }

    /// Runs several programs of a cell, with what each does.
    fn run_several(
        &self,
        cell: &Cell,
        (options, programs): (&Options, usize),
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let command = self.worker.as_ref().ok_or_else(|| {
            EngineError::refused(
                "several programs are processes of their own, and the command that runs one is \
                 unknown: run the study by `workahead study run`",
            )
        })?;
        let mut cell = cell.clone();
        cell.settings.remove(PROGRAMS);
        cell.settings.insert(TOTAL.to_owned(), Setting::Integer(options.total_bytes as i64));
        let request = Request {
            engine: NAME.to_owned(),
            cell,
            home: self.home.clone(),
            limits: None,
            runs: 1,
        };
        let (answer, wall_s) = programs::run(command, &request, programs, stop)?;
        let working_set_bytes = options.working_set_bytes() * programs as u64;
        let mib = (answer.rows * options.block_bytes as u64) as f64 / f64::from(1 << 20);
        let measures = [
            ("mib_per_s", mib / wall_s),
            ("passes_per_s", answer.rows as f64 / wall_s),
            ("working_set_bytes", working_set_bytes as f64),
        ];
        Ok(Sample {
            wall_s,
            tuples: answer.rows,
            answer,
            measures: measures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Sample::default()
        })
    }
}

const PROGRAMS: &str = "programs";
const TOTAL: &str = "total_bytes";

/// The options of each program, and the number of programs.
fn read(cell: &Cell) -> Result<(Options, usize), EngineError> {
    let config = CellConfiguration::new(cell);
    let programs = config.number(PROGRAMS, 1, 1..=PROGRAMS_MAX)?;
    let total_bytes = config.number(TOTAL, TOTAL_BYTES, 4 * programs..=usize::MAX)?;
    let options = Options {
        flavour: config.choice("form", Flavour::V10, &FORMS)?,
        threads: config.number("threads", 1, 1..=THREADS_MAX / programs)? as u32,
        block_bytes: config.number("block_bytes", 1024, 4..=BLOCK_BYTES_MAX)?,
        total_bytes: (total_bytes / programs) as u64,
        scope: config.choice(
            "scope",
            Scope::Global,
            &[("global", Scope::Global), ("local", Scope::Local)],
        )?,
        operation: config.choice(
            "oper",
            Operation::Write,
            &[("write", Operation::Write), ("read", Operation::Read), ("none", Operation::None)],
        )?,
        access: config.choice(
            "access",
            Access::Sequential,
            &[("seq", Access::Sequential), ("rnd", Access::Random)],
        )?,
        between: config.choice(
            "between",
            BetweenBlocks::GoOn,
            &[("go-on", BetweenBlocks::GoOn), ("yield", BetweenBlocks::Yield)],
        )?,
        pages: config.choice(
            "pages",
            Pages::Small,
            &[("small", Pages::Small), ("huge", Pages::Huge)],
        )?,
        seed: config.seed(),
    };
    config.nothing_else()?;
    options.checked().map_err(EngineError::failed)?;
    Ok((options, programs))
}

fn sample(options: &Options, ran: &MemoryRun) -> Sample {
    let passes = ran.passes.iter().sum::<u64>();
    let cpu_s = ran.cpu_s.iter().sum::<f64>();
    let fewest = ran.passes.iter().min().copied().unwrap_or_default();
    let most = ran.passes.iter().max().copied().unwrap_or_default();
    let measures = [
        ("mib_per_s", ran.bytes as f64 / f64::from(1 << 20) / ran.wall_s),
        ("passes_per_s", passes as f64 / ran.wall_s),
        ("passes_per_cpu_s", passes as f64 / cpu_s),
        ("working_set_bytes", options.working_set_bytes() as f64),
        ("fewest_of_most_share", fewest as f64 / most.max(1) as f64),
    ];
    Sample {
        wall_s: ran.wall_s,
        cpu_s: Some(cpu_s),
        tuples: passes,
        // In 0.4 the share of each thread is random; the sum is not.
        answer: Answer { rows: passes, checksum: ran.checksum },
        measures: measures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Sample::default()
    }
}

impl Engine for Sysbench {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        format!("Workahead {} after sysbench 0.4 and 1.0", env!("CARGO_PKG_VERSION"))
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (options, programs) = read(cell)?;
        let threads_bytes = THREAD_BYTES * u64::from(options.threads);
        let memory_bytes = (options.working_set_bytes() + threads_bytes) * programs as u64;
        Ok(Need { memory_bytes, ..Need::default() })
    }

    fn prepare(&mut self, cell: &Cell, _stop: &Stop) -> Result<(), EngineError> {
        read(cell).map(drop)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (options, programs) = read(cell)?;
        let name = format!("{:?}", cell.settings);
        let mut collector = self.collector.take();
        let (sample, collection) = collector::around(&mut collector, &name, || match programs {
            1 => memory::run(&options, stop.flag())
                .map(|ran| sample(&options, &ran))
                .map_err(EngineError::failed),
            _ => self.run_several(cell, (&options, programs), stop),
        });
        self.collector = collector;
        let mut sample = sample?;
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        if let Some((collector, collection)) = self.collector.as_mut().zip(collection) {
            collector.keep(&name, collection, &mut sample);
        }
        Ok(sample)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Worker for Sysbench {
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError> {
        Ok(self.run(cell, &Stop::new())?.answer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use workahead_study::protocol::Protocol;

    use super::*;

    fn cell(settings: &[(&str, Setting)]) -> Cell {
        let settings =
            settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let (place, protocol) = (BTreeMap::new(), Protocol::default());
        Cell { index: 0, block: 0, seed: 1, place, settings, protocol }
    }

    #[test]
    fn both_forms_make_the_passes_of_their_total_however_they_touch() {
        let (mut engine, stop) = (Sysbench::default(), Stop::new());
        for form in ["0.4", "1.0"] {
            for (scope, oper) in [("global", "write"), ("local", "read"), ("local", "none")] {
                for between in ["go-on", "yield"] {
                    let cell = cell(&[
                        ("form", form.into()),
                        ("threads", 3.into()),
                        ("block_bytes", 4096.into()),
                        ("total_bytes", (4096 * 30).into()),
                        ("scope", scope.into()),
                        ("oper", oper.into()),
                        ("between", between.into()),
                    ]);
                    engine.prepare(&cell, &stop).unwrap();
                    let sample = engine.run(&cell, &stop).unwrap();
                    assert_eq!((sample.tuples, sample.answer.rows), (30, 30), "{cell:?}");
                    let blocks = if scope == "local" { 3.0 } else { 1.0 };
                    assert_eq!(sample.measures["working_set_bytes"], 4096.0 * blocks);
                    assert!(sample.measures["mib_per_s"] > 0.0);
                }
            }
        }
        engine.finish().unwrap();
    }

    #[test]
    fn wrong_options_are_refused_before_it_runs() {
        for (settings, says) in [
            ([("block_bytes", 24.into())], "a power of two from 8 on"),
            ([("total_bytes", 8.into())], "not a block for each thread"),
            ([("thread", 2.into())], "did you mean `threads`"),
            ([("form", "0.5".into())], "unknown form `0.5`"),
            ([("programs", 0.into())], "a whole number from 1 to 256"),
        ] {
            let error = Sysbench::default().check(&cell(&settings)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let stop = Stop::new();
        stop.request();
        let stopped = Sysbench::default().run(&cell(&[("block_bytes", 4096.into())]), &stop);
        assert!(matches!(stopped, Err(EngineError::Stopped)));
    }
}
