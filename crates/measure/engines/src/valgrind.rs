//! Cells under valgrind, whatever the engine: counted by a model, evidence tier D.
//!
//! ```text
//! warm:  start, data, once, n times ─► counts ─┐
//!        start, data, once ─────────► counts ─┴ minus ─► measures, functions
//! cold: without the first run
//! ```
//!
//! So start and end of the program are left out, and in a warm run the first filling of catalogs
//! and buffers. The engine chooses the program ([`CountedProgram`]): a statement of a single
//! backend, or a cell in a worker process ([`WorkerProgram`]).

use std::time::Instant;

use workahead_counters::instrumented::{Error, InstrumentedRun, LABEL, Program, TIER, Valgrind};
use workahead_machine::{EvidenceTier, Machine};
use workahead_study::collection::Collection;
use workahead_study::engine::{Answer, EngineError, Sample, Stop};
use workahead_study::instrument::Instrumentation;
use workahead_study::protocol::{Protocol, Start};
use workahead_study::worker_process::{Command, Reply, Request};

/// A program that repeats its work, then ends.
pub trait CountedProgram {
    /// The program with `times` repetitions; with 0 it starts and ends.
    fn program(&self, times: u64) -> Program;

    /// Checks its output.
    ///
    /// # Errors
    /// When the output is wrong.
    fn check(&self, output: &[u8], errors: &str, times: u64) -> Result<(), EngineError>;
}

/// Runs programs under valgrind.
pub struct ValgrindRunner {
    valgrind: Valgrind,
    with: Instrumentation,
}

/// How a cell is run under valgrind.
#[derive(Debug, Clone, Copy)]
pub struct ValgrindOptions<'a> {
    /// The cell's caches; the method's when not given.
    pub caches: Option<&'a str>,
    /// Whether an uncounted repetition goes first.
    pub start: Start,
    /// Number of counted repetitions.
    pub runs: u64,
    /// Tuples of one repetition.
    pub tuples: u64,
}

impl ValgrindRunner {
    /// The runner of an instrumented study.
    ///
    /// # Errors
    /// When there is no valgrind.
    pub fn new(with: &Instrumentation) -> Result<Self, EngineError> {
        Ok(Self { valgrind: Valgrind::find().map_err(failed)?, with: with.clone() })
    }

    /// The evidence tier of its counts.
    #[must_use]
    pub fn tier() -> (EvidenceTier, String) {
        (TIER, LABEL.to_owned())
    }

    /// The tool that counts a cell with these caches.
    ///
    /// # Errors
    /// When they can't be modelled.
    pub fn tool(&self, caches: Option<&str>) -> Result<InstrumentedRun, EngineError> {
        let Instrumentation { tool, caches: usual } = &self.with;
        let caches = caches.unwrap_or(usual).to_owned();
        let geometry = Instrumentation { tool: *tool, caches }.geometry(&Machine::here().caches);
        Ok(InstrumentedRun::new(*tool, geometry.map_err(failed)?))
    }

    /// One repetition.
    ///
    /// # Errors
    /// When the tool or the program fails, or its answer is wrong.
    pub fn count(
        &self,
        alone: &dyn CountedProgram,
        how: ValgrindOptions<'_>,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let tool = self.tool(how.caches)?;
        let counted = |times| {
            let ran = tool.run_with(&self.valgrind, &alone.program(times), stop.flag());
            let ran = ran.map_err(failed)?;
            alone.check(&ran.output, &ran.errors, times)?;
            Ok::<_, EngineError>(ran.counted)
        };
        let before = match how.start {
            Start::Warm => 1,
            Start::Cold => 0,
        };
        let mut tries = 1;
        let (counted, wall_s) = loop {
            let baseline = counted(before)?;
            let begun = Instant::now();
            let all = counted(before + how.runs)?;
            let wall_s = begun.elapsed().as_secs_f64();
            match all.minus(&baseline) {
                Ok(counted) => break (counted, wall_s),
                // A database may clean its files up once when it is opened: both runs are counted
                // again.
                Err(_) if tries < TRIES => tries += 1,
                Err(error) => return Err(failed(error)),
            }
        };
        let tuples = how.runs * how.tuples;
        let mut measures = counted.measures();
        for (name, total) in PER_TUPLE {
            let value = measures.get(total).map(|total| total / tuples as f64);
            measures.extend(value.map(|value| (name.to_owned(), value)));
        }
        let functions = counted.largest_functions();
        let collection = Collection { functions, ..Collection::default() };
        Ok(Sample {
            // Valgrind's time, not the engine's.
            wall_s,
            tuples,
            measures,
            collection: Some(Box::new(collection)),
            ..Sample::default()
        })
    }
}

/// How often a pair of runs is counted before it is given up.
const TRIES: u32 = 3;

/// Totals, per tuple.
const PER_TUPLE: [(&str, &str); 5] = [
    ("instructions_per_tuple", "instructions"),
    ("data_references_per_tuple", "data_references"),
    ("l1i_misses_per_tuple", "l1i_misses"),
    ("l1d_misses_per_tuple", "l1d_misses"),
    ("last_level_misses_per_tuple", "last_level_misses"),
];

/// An engine of this process, in a worker process.
pub struct WorkerProgram {
    command: Command,
    request: Request,
    expected: Answer,
}

impl WorkerProgram {
    /// A command with its request; every run must give this answer.
    #[must_use]
    pub fn new(command: &Command, mut request: Request, expected: Answer) -> Self {
        // Its servers and buffers are new anyway.
        request.cell.protocol = Protocol::default();
        Self { command: command.clone(), request, expected }
    }
}

impl CountedProgram for WorkerProgram {
    fn program(&self, times: u64) -> Program {
        let mut program =
            Program::new(&self.command.program, self.command.arguments.iter().cloned());
        program.input = Request { runs: times, ..self.request.clone() }.to_json();
        // A run that is confined may not give it one; its own group is guarded by its supervisor.
        program.own_group = !crate::in_process::works_in_this_process(&self.request.engine);
        program
    }

    fn check(&self, output: &[u8], errors: &str, times: u64) -> Result<(), EngineError> {
        let Some(reply) = Reply::find(&String::from_utf8_lossy(output)) else {
            let said = errors.lines().last().unwrap_or("it printed nothing");
            return Err(EngineError::failed(format!(
                "{} gave no answer under valgrind: {said}",
                self.command.program.display()
            )));
        };
        let expected = Reply { runs: times, answer: (times > 0).then_some(self.expected) };
        match reply.answer {
            Some(got) if reply != expected => {
                Err(EngineError::WrongAnswer { got, expected: self.expected })
            }
            _ if reply != expected => Err(EngineError::failed(format!(
                "it ran {} times under valgrind, not {times}",
                reply.runs
            ))),
            _ => Ok(()),
        }
    }
}

/// The error of an engine without a command for worker processes.
#[must_use]
pub fn no_command(engine: &str) -> EngineError {
    EngineError::refused(format!(
        "engine `{engine}` runs in this process, and nothing says what runs a cell of it alone: \
         run the study by `workahead study run`"
    ))
}

/// The error of a cell with `caches` where no model counts.
#[must_use]
pub fn no_model() -> EngineError {
    let says = "setting `caches` is of a model: give the method `instrumented` too";
    EngineError::refused(says)
}

fn failed(error: Error) -> EngineError {
    match error {
        Error::Stopped => EngineError::Stopped,
        // The last output of a program may have several lines.
        other => EngineError::failed(other.to_string().replace('\n', "; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use workahead_study::cell::Cell;

    use super::*;

    fn worker_program(expected: Answer) -> WorkerProgram {
        let command =
            Command { program: "/bin/workahead".into(), arguments: vec!["worker".into()] };
        let cell = Cell {
            index: 0,
            block: 0,
            seed: 7,
            place: BTreeMap::new(),
            settings: BTreeMap::new(),
            protocol: Protocol { start: Start::Cold, ..Protocol::default() },
        };
        let (engine, home) = ("native".to_owned(), "/tmp".into());
        let request = Request { engine, cell, home, limits: None, runs: 0 };
        WorkerProgram::new(&command, request, expected)
    }

    #[test]
    fn the_request_has_the_number_of_counted_runs() {
        let program = worker_program(Answer::default()).program(3);
        let request = Request::parse(&program.input).unwrap();
        assert_eq!((request.runs, request.cell.protocol), (3, Protocol::default()));
        assert_eq!(program.arguments, ["worker"]);
    }

    /// Which a guard needs that ends it when this process is killed.
    #[test]
    fn only_a_worker_of_an_unconfined_run_has_a_group_of_its_own() {
        let mut worker = worker_program(Answer::default());
        assert!(worker.program(1).own_group);
        for confined in ["duckdb", "datafusion"] {
            worker.request.engine = confined.to_owned();
            assert!(!worker.program(1).own_group, "{confined}");
        }
    }

    #[test]
    fn another_answer_none_and_too_few_runs_are_refused() {
        let right = Answer { rows: 2, checksum: 5 };
        let program = worker_program(right);
        let check = |runs, answer, times| {
            let line = Reply { runs, answer }.line();
            program.check(line.as_bytes(), "", times).map_err(|error| error.to_string())
        };
        assert_eq!(check(2, Some(right), 2), Ok(()));
        assert_eq!(check(0, None, 0), Ok(()));
        let wrong = check(2, Some(Answer { rows: 2, checksum: 6 }), 2).unwrap_err();
        assert!(wrong.contains("wrong answer"), "{wrong}");
        for (runs, answer, times) in [(1, Some(right), 2), (2, None, 2), (0, None, 1)] {
            assert!(check(runs, answer, times).is_err(), "{runs} {answer:?} {times}");
        }
        let silent = program.check(b"", "a\nno data\n", 1).unwrap_err().to_string();
        assert!(silent.contains("no data") && !silent.contains('\n'), "{silent}");
    }
}
