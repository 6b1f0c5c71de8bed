//! The seeds' operators, run in this process: every technique, every number of threads, on data
//! made from a seed, every answer compared with an oracle's.
//!
//! ```text
//! Cell ─► Shape (which data) ─► Operator (data in place, oracle's answer) ─┐
//!      └► How (technique, threads) ─────────────────────────────────────►  Crew: pinned threads
//!                                                                          └► Sample
//! ```
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `operator` | `hash_join`, `csb_tree`, `join_index`, `columnar`, `bucket`, `heterogeneous`, `interference` |
//! | `rows`, or `size` | rows of the table; or `in-cache`, `knee`, `out-of-cache` of this machine |
//! | `probe_rows` | rows that probe; as many as the table has, and a million at least |
//! | `probes` | `unclustered` (random row ids), `clustered` (memory order) |
//! | `pages` | `huge`, `small` |
//! | `technique` | as [`Technique`](workahead_walks::technique::Technique) is written |
//! | `threads` | `1`, `independent:N`, `bi:N`, `bi:N,split=strided` |
//! | `set_size`, or `l2_share` | references of a work-ahead set; or the part of the second-level cache that all sets together preload |
//! | `node_bytes`, `search`, `upper_levels` | of `csb_tree`: 128 or 64, `scalar` or `simd`, `stepwise` or `at-once` |
//! | `skew` | of `hash_join` and `bucket`: exponent of Zipf's law for the probe keys |
//! | `results` | of `hash_join`: `batches`, or `whole` to be merged and ordered |
//! | `record_bytes` | of `hash_join` and `join_index`: 64, or 32, 128, 256 |
//! | `join`, `null_percent` | of `join_index`: `inner` or `left-outer`, and its nulls |
//! | `references` | of `join_index`: `together`, or `apart` in stages of one each |
//! | `hit_rate`, `load_percent` | of `bucket` |
//! | `caches` | of a model, where the method is `instrumented`: a preset's name, or three shapes |
//! | `tree_rows` | of `heterogeneous` |

mod bucket;
mod ceiling;
mod columnar;
mod crew;
mod hash_join;
mod heterogeneous;
mod how;
mod instrumented;
mod interference;
mod join_index;
mod merge;
pub(crate) mod modelled;
mod operator;
mod oracle;
mod record_bytes;
mod size;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use workahead_counters::event::Privilege;
use workahead_machine::EvidenceTier;
use workahead_machine::limits::Limits;
use workahead_machine::machine::Machine;
use workahead_study::cell::Cell;
use workahead_study::engine::{
    Engine, EngineContext, EngineEntry, EngineError, EngineRegistry, Need, Sample, Stop,
};
use workahead_study::inside::Command;
use workahead_study::instrument::CACHES;
use workahead_walks::isa::Detected;

use crate::below::{Below, no_command};
use crate::given::Given;
use crate::scheduled::Scheduled;
use crate::watcher::{self, Watcher, by_role};
use crew::{Crew, Ran, failed};
use how::{How, References, Results};
use operator::Operator;
use size::Footprint;
use tree::Descent;

/// Output batches, stacks, and what else a run needs beside its data.
const BESIDE_BYTES: u64 = 64 << 20;

/// The name that studies use.
const NAME: &str = "native";

/// The engine.
pub struct Native {
    machine: Machine,
    footprint: Footprint,
    /// What the machine was measured to be able to do, if it was.
    limits: Option<Limits>,
    made: Option<(Shape, Box<dyn Operator>)>,
    /// What is watched beside time, where a study asks for it.
    watcher: Option<Watcher>,
    /// Of no account to walks, whose data is made anew; a process of its own is told all the same.
    home: PathBuf,
    /// What cells are run below, where a study asks for it.
    below: Option<Below>,
    /// What runs a cell alone.
    command: Option<Command>,
}

/// Adds the engine to those of a program.
pub fn register(registry: &mut EngineRegistry) {
    registry.register(EngineEntry {
        name: NAME,
        description: "walks over real memory, in this process",
        open: |context| Ok(Box::new(Scheduled(Box::new(Native::open(context)?)))),
        open_worker: Some(|context| Ok(Box::new(Native::open(context)?))),
    });
}

/// Which data a cell is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    HashJoin(hash_join::Shape),
    Tree(tree::Shape),
    JoinIndex(join_index::Shape),
    Columnar(columnar::Shape),
    Bucket(bucket::Shape),
    Heterogeneous(heterogeneous::Shape),
    Interference(interference::Shape),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    HashJoin,
    Tree,
    JoinIndex,
    Columnar,
    Bucket,
    Heterogeneous,
    Interference,
}

const RESULTS: [(&str, Results); 2] = [("batches", Results::Batches), ("whole", Results::Whole)];

const REFERENCES: [(&str, References); 2] =
    [("together", References::Together), ("apart", References::Apart)];

const OPERATORS: [(&str, Kind); 7] = [
    ("hash_join", Kind::HashJoin),
    ("csb_tree", Kind::Tree),
    ("join_index", Kind::JoinIndex),
    ("columnar", Kind::Columnar),
    ("bucket", Kind::Bucket),
    ("heterogeneous", Kind::Heterogeneous),
    ("interference", Kind::Interference),
];

impl Shape {
    fn read(kind: Kind, given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        Ok(match kind {
            Kind::HashJoin => Shape::HashJoin(hash_join::Shape::read(given, footprint)?),
            Kind::Tree => Shape::Tree(tree::Shape::read(given, footprint)?),
            Kind::JoinIndex => Shape::JoinIndex(join_index::Shape::read(given, footprint)?),
            Kind::Columnar => Shape::Columnar(columnar::Shape::read(given, footprint)?),
            Kind::Bucket => Shape::Bucket(bucket::Shape::read(given, footprint)?),
            Kind::Heterogeneous => {
                Shape::Heterogeneous(heterogeneous::Shape::read(given, footprint)?)
            }
            Kind::Interference => Shape::Interference(interference::Shape::read(given)?),
        })
    }

    fn bytes(&self, how: &How) -> u64 {
        let copies = how.threads.copies();
        let results = match how.results {
            Results::Batches => 0,
            Results::Whole => how.threads.mains() + 1,
        };
        match self {
            Shape::HashJoin(shape) => shape.bytes(copies, results),
            Shape::Tree(shape) => shape.bytes(copies),
            Shape::JoinIndex(shape) => shape.bytes(copies, how.threads.mains()),
            Shape::Columnar(shape) => shape.bytes(copies),
            Shape::Bucket(shape) => shape.bytes(copies),
            Shape::Heterogeneous(shape) => shape.bytes(),
            Shape::Interference(shape) => shape.bytes(),
        }
    }

    fn make(&self) -> Result<Box<dyn Operator>, EngineError> {
        match self {
            Shape::HashJoin(shape) => shape.make(),
            Shape::Tree(shape) => shape.make(),
            Shape::JoinIndex(shape) => shape.make(),
            Shape::Columnar(shape) => shape.make(),
            Shape::Bucket(shape) => shape.make(),
            Shape::Heterogeneous(shape) => shape.make(),
            Shape::Interference(shape) => shape.make(),
        }
    }
}

impl Native {
    /// Opens it, on the machine this process runs on.
    ///
    /// # Errors
    /// When its cells are to be instrumented and can't be.
    pub fn open(context: &EngineContext) -> Result<Self, EngineError> {
        let machine = Machine::here();
        let limits = context.limits.clone();
        let footprint = Footprint::of(&machine, limits.as_ref());
        if context.instrumentation.is_some() && context.worker.is_none() {
            return Err(no_command(NAME));
        }
        Ok(Self {
            machine,
            footprint,
            limits,
            made: None,
            // What the kernel does for a walk is page faults, and those are over when it is
            // measured.
            watcher: Watcher::of(context, &[Privilege::User]),
            home: context.data_dir.clone(),
            below: context.instrumentation.as_ref().map(Below::new).transpose()?,
            command: context.worker.clone(),
        })
    }

    fn read(&self, cell: &Cell) -> Result<(Shape, How), EngineError> {
        let (_, shape, how) = Self::read_given(&Given::new(cell), &self.footprint)?;
        Ok((shape, how))
    }

    /// What a cell is about, sizes by name being beside caches of some footprint.
    fn read_given(
        given: &Given<'_>,
        footprint: &Footprint,
    ) -> Result<(Kind, Shape, How), EngineError> {
        if !given.has("operator") {
            return Err(EngineError::Failed(
                "the setting `operator` is missing: add `operator = \"hash_join\"`".to_owned(),
            ));
        }
        let kind = given.choice("operator", Kind::HashJoin, &OPERATORS)?;
        let shape = Shape::read(kind, given, footprint)?;
        let mut how = How::read(given, footprint)?;
        match kind {
            Kind::HashJoin => how.results = given.choice("results", how.results, &RESULTS)?,
            Kind::Tree | Kind::Heterogeneous => {
                how.descent = Descent::read(given, footprint)?;
            }
            Kind::JoinIndex => {
                how.references = given.choice("references", how.references, &REFERENCES)?;
            }
            _ => {}
        }
        // Read where there is a model to have them.
        given.has(CACHES);
        given.nothing_else()?;
        Ok((kind, shape, how))
    }

    /// Makes the data of a shape, if it is not there.
    fn make(&mut self, shape: Shape, stop: &Stop) -> Result<(), EngineError> {
        if stop.asked() {
            return Err(EngineError::Stopped);
        }
        if self.made.as_ref().is_none_or(|(made, _)| *made != shape) {
            // The old data goes first: both together may not fit.
            self.made = None;
            self.made = Some((shape, shape.make()?));
        }
        Ok(())
    }

    /// What this machine cannot show of a cell, in words.
    fn cannot(&self, how: &How) -> Option<String> {
        let (threads, cpus) = (how.threads(), self.machine.allowed_cpus().len());
        (threads > cpus).then(|| format!("{threads} threads take turns on {cpus} CPUs"))
    }

    fn sample(&self, how: &How, operator: &dyn Operator, ran: Ran) -> Sample {
        let mut measures: BTreeMap<String, f64> =
            ran.measures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let mut say = |name: &str, value: f64| measures.insert(name.to_owned(), value);
        say("probes", operator.probes() as f64);
        say("table_bytes", operator.table_bytes() as f64);
        let lines_per_s =
            |bytes, threads, pages| self.limits.as_ref()?.lines_per_s(bytes, threads, pages);
        let (threads, pages) = (how.threads(), operator.pages());
        say("threads", threads as f64);
        say("cpus", threads.min(self.machine.allowed_cpus().len()) as f64);
        let limit = ceiling::probes_per_s(&operator.touches(), threads, pages, &lines_per_s);
        if let Some(limit) = limit {
            say("limit_mtuples_per_s", limit / 1e6);
            say("limit_fraction", ran.probed as f64 / ran.wall_s / limit);
        }
        let Ran { wall_s, cpu_s, probed, answer, .. } = ran;
        let cpu_s = Some(cpu_s);
        Sample { wall_s, cpu_s, tuples: probed as u64, answer, measures, ..Sample::default() }
    }
}

impl Default for Native {
    fn default() -> Self {
        let machine = Machine::here();
        Self {
            footprint: Footprint::of(&machine, None),
            machine,
            limits: None,
            made: None,
            watcher: None,
            home: std::env::temp_dir(),
            below: None,
            command: None,
        }
    }
}

impl Engine for Native {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        format!("{} ({} code)", env!("CARGO_PKG_VERSION"), Detected::best().name())
    }

    fn tier(&self) -> Option<(EvidenceTier, String)> {
        self.below.as_ref().map(|_| Below::tier())
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (shape, how) = self.read(cell)?;
        self.check_below(cell, &how)?;
        let processes = if self.below.is_some() { 2 } else { 1 };
        let memory_bytes = processes * (shape.bytes(&how) + BESIDE_BYTES);
        Ok(Need { memory_bytes, cannot: self.cannot(&how), impossible: None })
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let (shape, how) = self.read(cell)?;
        self.make(shape, stop)?;
        let crew = Crew::of(&self.machine)?;
        let Some((_, operator)) = &mut self.made else { unreachable!("made just now") };
        operator.prepare(&how, &crew)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (shape, how) = self.read(cell)?;
        let crew = Crew::of(&self.machine)?;
        let Some((_, operator)) = self.made.as_mut().filter(|(made, _)| *made == shape) else {
            return Err(failed("the data of this cell was not prepared"));
        };
        if stop.asked() {
            return Err(EngineError::Stopped);
        }
        if let Some(below) = self.below.take() {
            let sample = self.below(&below, cell, stop);
            self.below = Some(below);
            return sample;
        }
        let rows = operator.probes();
        let name = format!("{:?}", cell.settings);
        let run = || operator.run(&how, &crew, 0..rows);
        let (ran, watched) = watcher::around(&mut self.watcher, &name, run);
        let ran = ran?;
        let copies = if operator.shares_work() { 1 } else { how.threads.copies() };
        let expected = oracle::times(operator.answer(rows), copies);
        if ran.answer != expected {
            return Err(EngineError::WrongAnswer { got: ran.answer, expected });
        }
        let Some((_, operator)) = &self.made else { unreachable!("run just now") };
        let mut sample = self.sample(&how, operator.as_ref(), ran);
        if let Some((watcher, watched)) = self.watcher.as_mut().zip(watched) {
            if let Some(counts) = &watched.counts {
                let roles = crew.roles(&how);
                sample.measures.extend(by_role::measures(counts, &sample, &roles));
            }
            watcher.keep(&name, watched, &mut sample);
        }
        Ok(sample)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.made = None;
        Ok(())
    }
}
