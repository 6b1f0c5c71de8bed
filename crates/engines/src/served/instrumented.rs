//! A cell below valgrind: one statement in one backend, counted by a model (evidence tier D).
//!
//! ```text
//! warm:  settings, statement, statement × queries ─► counts ─┐
//!        settings, statement ──────────────────────► counts ─┴ minus ─► measures
//! cold:  without the statement that goes first
//! ```
//!
//! So start and end of the backend are left out, and in a warm run what a first statement takes for
//! catalogs and buffers; reading and planning the statement and printing its rows are in.

use std::time::Instant;

use workahead_counters::instrumented::{Error, Instrumented, LABEL, TIER, Valgrind};
use workahead_machine::{EvidenceTier, Machine};
use workahead_study::engine::{EngineError, Sample, Stop};
use workahead_study::instrument::Instrumentation;
use workahead_study::protocol::Start;
use workahead_workloads::client::{Explained, Workload};
use workahead_workloads::session::Dialect;

use super::asked::{Amount, Asked};
use super::background::LoopCount;
use super::database::Database;
use super::sample;
use crate::server::Explain;

/// What cells are run below.
pub(super) struct Below {
    valgrind: Valgrind,
    with: Instrumentation,
}

impl Below {
    /// What a study asks for.
    ///
    /// # Errors
    /// When the product runs in no process of its own, or there is no valgrind.
    pub(super) fn new(
        database: &dyn Database,
        with: &Instrumentation,
    ) -> Result<Self, EngineError> {
        if !database.stands_alone() {
            return Err(EngineError::Failed(format!(
                "engine `{}` can't be run below valgrind, `postgres` can: leave `instrumented` out \
                 of the study's method",
                database.name()
            )));
        }
        Ok(Self { valgrind: Valgrind::find().map_err(failed)?, with: with.clone() })
    }

    /// How much its counts can prove.
    pub(super) fn tier() -> (EvidenceTier, String) {
        (TIER, LABEL.to_owned())
    }

    fn tool(&self, asked: &Asked) -> Result<Instrumented, EngineError> {
        let Instrumentation { tool, caches } = &self.with;
        let caches = asked.caches.as_ref().unwrap_or(caches).clone();
        let geometry = Instrumentation { tool: *tool, caches }.geometry(&Machine::here().caches);
        Ok(Instrumented::new(*tool, geometry.map_err(failed)?))
    }

    /// Refuses what one backend that runs one statement can't do.
    pub(super) fn check(
        &self,
        asked: &Asked,
        (workload, dialect): (&dyn Workload, Dialect),
    ) -> Result<(), EngineError> {
        self.tool(asked)?;
        let refused = refused(asked).map(|what| format!("there is no {what} below valgrind"));
        let why = refused.map_or_else(|| statement(workload, dialect).err(), Some);
        why.map_or(Ok(()), |why| Err(EngineError::Failed(why)))
    }

    /// One repetition. The server is stopped when it returns.
    pub(super) fn run(
        &self,
        database: &mut dyn Database,
        asked: &Asked,
        workload: &dyn Workload,
        (start, stop): (Start, &Stop),
    ) -> Result<Sample, EngineError> {
        let tool = self.tool(asked)?;
        let dialect = database.dialect();
        let statement = statement(workload, dialect).map_err(EngineError::Failed)?;
        let of = (workload, dialect);
        let plan = sample::plan(database.door()?.as_ref(), of, Explain::Planned, stop)?;
        let alone = database.alone(&statement)?;
        let before = match start {
            Start::Warm => 1,
            Start::Cold => 0,
        };
        let counted = |times| {
            let ran = tool.run_with(&self.valgrind, &alone.program(times), stop.flag());
            let ran = ran.map_err(failed)?;
            alone.check(&ran.output, &ran.errors, times)?;
            Ok::<_, EngineError>(ran.counted)
        };
        let baseline = counted(before)?;
        let begun = Instant::now();
        let queries = queries(asked);
        let all = counted(before + queries)?;
        let wall_s = begun.elapsed().as_secs_f64();
        Ok(Sample {
            // Valgrind's time, no speed of the database's.
            wall_s,
            tuples: queries,
            measures: all.minus(&baseline).map_err(failed)?.measures(),
            plan: plan.map(|(plan, _)| plan),
            ..Sample::default()
        })
    }
}

fn failed(error: Error) -> EngineError {
    match error {
        Error::Stopped => EngineError::Stopped,
        // What a program said last may have lines of its own.
        other => EngineError::Failed(other.to_string().replace('\n', "; ")),
    }
}

fn queries(asked: &Asked) -> u64 {
    match asked.amount {
        Amount::Count(count) => count,
        Amount::Seconds(_) => 1,
    }
}

/// What a cell asks for and one backend alone does not have.
fn refused(asked: &Asked) -> Option<&'static str> {
    let nothing = [
        (asked.clients != 1 || asked.ramp, "second client: leave `clients` out"),
        (
            matches!(asked.amount, Amount::Seconds(_)),
            "measure of time: give `queries` in place of `seconds`",
        ),
        (asked.rate.is_some(), "rate: leave `rate` out"),
        (asked.parallel != 1, "second process: leave `parallel` out"),
        (asked.loops != LoopCount::Number(0), "second program: leave `loops` out"),
    ];
    nothing.into_iter().find_map(|(asks, what)| asks.then_some(what))
}

/// The one statement, whose answer comes back: only an answer that is seen can be checked.
fn statement(workload: &dyn Workload, dialect: Dialect) -> Result<Explained, String> {
    let name = workload.name();
    let explained = workload.explained(dialect).map_err(|error| error.to_string())?;
    let count = explained.len();
    let Ok([statement]) = <[Explained; 1]>::try_from(explained) else {
        return Err(format!(
            "one statement is run below valgrind, and this `{name}` has {count} to explain: choose \
             one query of `dbmbench`, `tpch` or `sql`"
        ));
    };
    let first = statement.text.split_whitespace().next().unwrap_or_default().to_lowercase();
    match first.as_str() {
        "select" | "with" | "values" | "table" => Ok(statement),
        _ => Err(format!(
            "the answer of a statement that begins with `{first}` is not seen below valgrind: give \
             `answers = \"returned\"`, or a statement that reads"
        )),
    }
}
