//! The queries of Hassanein et al. (2008) on a modelled machine: workloads `utpcc`, `uss`, `unj`.
//!
//! | key | values |
//! |---|---|
//! | `rows` | rows of T1; the paper has 1,000,000 |
//! | `inner_rows` | rows of T2 (150,000, as in the paper) |
//! | `selectivity` | share of T1 that the query selects; default: the paper's |
//! | `clients` | concurrent clients (S0.8); round robin over the logical CPUs |
//! | `queries` | queries of each client |
//! | `warmup` | queries of each client that aren't counted (S0.10) |
//! | `servers` | servers that the clients are spread over, which share no data |
//! | `probe` | of `unj`: `in-turn`, or `work-ahead` with a helper on the next CPU (LX.1) |
//! | `set_size` | entries of that work-ahead set |
//! | `starts` | `drawn`: a CPU's first client begins at a moment drawn over a query; `together` |
//! | `draws` | so often those moments are drawn, each on a machine of its own; figures are means |
//! | `quantum_ms` | time slice of processes that share a CPU |
//! | `switch_cycles` | of a context switch, without its misses |

#[cfg(test)]
mod tests;

use workahead_simulator::drivers::micro::{self, Database, Query, QueryAnswer, QueryResults};
use workahead_simulator::run::Slices;
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};
use workahead_walks::random::Random;
use workahead_workloads::dbmbench::{self, Bounds, Dbmbench, Form, Plan};

use crate::draws;
use crate::figures::{self, RunWork};
use crate::machine::ModelledMachine;
use crate::workload::{Description, Workload};
use workahead_engines::configuration::CellConfiguration;

/// Linux 2.6.14's time slice at normal priority (S0.1). It is not scaled down with the rows: a
/// process then touches more in a slice than a cache holds, as it did.
const QUANTUM_MS: f64 = 100.0;
/// Whether starts of clients are drawn.
const STARTS: [(&str, bool); 2] = [("drawn", true), ("together", false)];
/// Bytes per row of T1 in addition to those of the servers: its numbers as they are loaded, its
/// place in the order in which they are drawn, and what the oracle and a sort keep of it.
const ROW_BYTES: u64 = 12 + 4 + 4 + 4;

/// One of the queries.
pub(super) struct Micro(pub(super) Query);

/// Whether a join's probes go through a work-ahead set.
const PROBES: [(&str, bool); 2] = [("in-turn", false), ("work-ahead", true)];

/// A cell's settings.
struct Settings {
    options: micro::Options,
    bench: Dbmbench,
    servers: usize,
    draws: usize,
}

impl Micro {
    fn query(&self) -> dbmbench::Query {
        match self.0 {
            Query::Utpcc => dbmbench::Query::Utpcc,
            Query::Uss => dbmbench::Query::Uss,
            Query::Unj => dbmbench::Query::Unj,
        }
    }

    fn read(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Settings, EngineError> {
        let query = self.query();
        let rows = config.number("rows", 20_000, 100..=10_000_000)? as u32;
        let seed = config.seed();
        let bench = dbmbench::Options {
            t1_rows: rows,
            t2_rows: config.number("inner_rows", 150_000, 1..=10_000_000)? as u32,
            selectivity: config.real("selectivity", query.selectivity(), 1e-6..=1.0)?,
            // With fewer rows than the paper's 20,000 values, each row has its own.
            a2_values: rows.min(20_000),
            form: Form::IntoResult,
            bounds: Bounds::Fixed,
            plan: Plan::Paper,
            seed,
            ..dbmbench::Options::of_paper(query)
        };
        let bench = Dbmbench::new(bench).map_err(EngineError::failed)?;
        let range = bench.fixed_range();
        let quantum = config.real("quantum_ms", QUANTUM_MS, 1e-3..=1e6)?;
        let draws = config.number("draws", 1, 1..=1000)?;
        let options = micro::Options {
            query: self.0,
            range: (range.low, range.high),
            clients: config.number("clients", 1, 1..=64)?,
            queries: config.number("queries", 1, 1..=1000)?,
            warmup: config.number("warmup", 1, 0..=1000)?,
            set_size: self.set_size(config)?,
            slices: Slices {
                quantum: quantum * model.preset().ghz * 1e6,
                switch: config.real("switch_cycles", Slices::default().switch, 0.0..=1e6)?,
            },
            offsets: config.choice("starts", true, &STARTS)?,
            seed: Random::of(seed).number(),
        };
        let servers = config.number("servers", 1, 1..=options.clients)?;
        let processes = 2 * options.clients * options.queries;
        if options.set_size > 0 && processes > model.preset().cpus() as usize {
            return Err(EngineError::setting(
                "probe",
                format!(
                    "a helper takes a CPU beside each client's one query, and {} has \
                 {}: ask for fewer clients, or `in-turn`",
                    model.preset().name,
                    model.preset().cpus(),
                ),
            ));
        }
        // A single client, or a single CPU for all, is out of step with nobody.
        let is_alone = options.clients == 1 || model.preset().cpus() == 1 || !options.offsets;
        Ok(Settings { options, bench, servers, draws: if is_alone { 1 } else { draws } })
    }

    fn set_size(&self, config: &CellConfiguration<'_>) -> Result<usize, EngineError> {
        if self.0 != Query::Unj {
            return Ok(0);
        }
        let size = config.number("set_size", 128, 1..=micro::ENTRIES_MAX)?;
        let is_ahead = config.choice("probe", false, &PROBES)?;
        Ok(if is_ahead { size } else { 0 })
    }
}

impl Workload for Micro {
    fn name(&self) -> &'static str {
        self.query().name()
    }

    fn description(&self) -> Description {
        let code = micro::footprint::of(self.0).origin;
        Description { tuples: "queries", code, checked: "as an oracle says" }
    }

    fn check(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Need, EngineError> {
        let Settings { options, bench, servers, .. } = self.read(config, model)?;
        let dbmbench::Options { t1_rows, t2_rows, a2_values, .. } = *bench.options();
        let rows = [t1_rows, t2_rows].map(u64::from);
        // Both bounds are exclusive, and each value of a2 has as many rows as any other.
        let values = options.range.1.saturating_sub(options.range.0 + 1);
        let selected = u64::from(values) * u64::from(t1_rows.div_ceil(a2_values));
        let of_run = options.bytes(rows, selected, servers);
        let memory_bytes = of_run.saturating_add(rows[0] * ROW_BYTES).saturating_add(64 << 20);
        Ok(Need { memory_bytes, ..Need::default() })
    }

    fn run(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let Settings { options, bench, servers, draws } = self.read(config, model)?;
        let rows: Vec<[u32; 3]> = bench.t1_rows().collect();
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let t2_rows = bench.options().t2_rows;
        let servers = Database::servers(&rows, t2_rows, options.clients, servers);
        let expected = bench.answers().of_query(self.query(), bench.fixed_range());
        let mut samples = Vec::new();
        for draw in 0..draws as u64 {
            if stop.is_requested() {
                return Err(EngineError::Stopped);
            }
            let seed = options.seed.wrapping_add(draw << 32);
            let place = |client| model.cpu(client);
            let options = micro::Options { seed, ..options };
            let preset = model.preset();
            let results = micro::run_queries(preset, &servers, &options, place, stop.flag());
            if stop.is_requested() {
                return Err(EngineError::Stopped);
            }
            let results = results.map_err(EngineError::failed)?;
            let answer = self.check_answers(&results, &expected)?;
            samples.push(sample(model, &results, answer));
        }
        Ok(draws::mean(samples))
    }
}

/// A run as a sample: as long as its queries would take at the rate of instructions in its time.
fn sample(model: &ModelledMachine, results: &QueryResults, answer: Answer) -> Sample {
    let queries = results.found.len() as u64;
    let done = RunWork { tuples: queries, instructions: results.executed, answer };
    let instructions = results.instructions as f64;
    let more = [
        ("instructions".to_owned(), instructions),
        ("instructions_per_query".to_owned(), instructions / queries as f64),
    ];
    let sample = figures::sample(model.preset(), &results.driven, done, more);
    let part = instructions / results.executed as f64;
    Sample { wall_s: sample.wall_s * part, cpu_s: sample.cpu_s.map(|busy| busy * part), ..sample }
}

impl Micro {
    /// The answer common to all queries, each of which must be that of the oracle.
    fn check_answers(
        &self,
        results: &QueryResults,
        expected: &dbmbench::Answer,
    ) -> Result<Answer, EngineError> {
        let mut all = Answer::default();
        for found in &results.found {
            let got = self.answer(found);
            if !got.agrees(expected) {
                return Err(EngineError::WrongAnswer {
                    got: to_answer(&got),
                    expected: to_answer(expected),
                });
            }
            all.rows += got.rows;
            all.checksum = all.checksum.wrapping_add(got.checksum);
        }
        Ok(all)
    }

    fn answer(&self, found: &QueryAnswer) -> dbmbench::Answer {
        match self.0 {
            Query::Utpcc | Query::Unj => {
                dbmbench::Answer::average(found.sum as f64 / found.rows as f64)
            }
            Query::Uss => {
                let mut answer = dbmbench::Answer::empty();
                found.distinct.iter().for_each(|a3| answer.push(u64::from(*a3)));
                answer
            }
        }
    }
}

fn to_answer(answer: &dbmbench::Answer) -> Answer {
    Answer { rows: answer.rows, checksum: answer.checksum }
}
