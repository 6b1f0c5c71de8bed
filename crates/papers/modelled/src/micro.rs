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
//! | `stagger_us` | delay between the starts of two clients |
//! | `quantum_ms` | time slice of processes that share a CPU |
//! | `switch_cycles` | of a context switch, without its misses |

#[cfg(test)]
mod tests;

use workahead_simulator::drivers::micro::{self, Database, Query, QueryAnswer, QueryResults};
use workahead_simulator::run::Slices;
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};
use workahead_walks::random::Random;
use workahead_workloads::dbmbench::{self, Bounds, Dbmbench, Form, Plan};

use crate::figures::{self, Done};
use crate::machine::ModelledMachine;
use crate::workload::{Description, Workload};
use workahead_engines::configuration::CellConfiguration;

/// Linux 2.6.14's time slice at normal priority (S0.1). It is not scaled down with the rows: a
/// process then touches more in a slice than a cache holds, as it did.
const QUANTUM_MS: f64 = 100.0;
/// Delay between the starts of two clients: a default, a process is not started in less.
const STAGGER_US: f64 = 50.0;
/// Bytes per row in addition to those of the model, and per key of its indexes.
const ROW_BYTES: u64 = 64;

/// One of the queries.
pub(super) struct Micro(pub(super) Query);

/// Whether a join's probes go through a work-ahead set.
const PROBES: [(&str, bool); 2] = [("in-turn", false), ("work-ahead", true)];

/// A cell's settings.
struct Settings {
    options: micro::Options,
    bench: Dbmbench,
    servers: usize,
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
        let stagger_us = config.real("stagger_us", STAGGER_US, 0.0..=1e5)?;
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
            stagger: (stagger_us * model.preset().ghz * 1e3) as u32,
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
        Ok(Settings { options, bench, servers })
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
        let Settings { bench, .. } = self.read(config, model)?;
        let rows = u64::from(bench.options().t1_rows) + u64::from(bench.options().t2_rows);
        Ok(Need { memory_bytes: rows * ROW_BYTES + (64 << 20), ..Need::default() })
    }

    fn run(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let Settings { options, bench, servers } = self.read(config, model)?;
        let rows: Vec<[u32; 3]> = bench.t1_rows().collect();
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let t2_rows = bench.options().t2_rows;
        let servers = Database::servers(&rows, t2_rows, options.clients, servers);
        let place = |client| model.cpu(client);
        let results = micro::run_queries(model.preset(), &servers, &options, place);
        let results = results.map_err(EngineError::failed)?;
        let expected = bench.answers().of_query(self.query(), bench.fixed_range());
        let answer = self.check_answers(&results, &expected)?;
        let queries = results.found.len() as u64;
        let done = Done { tuples: queries, instructions: results.instructions, answer };
        let of_query = results.instructions as f64 / queries as f64;
        let more = [("instructions_per_query".to_owned(), of_query)];
        Ok(figures::sample(model.preset(), &results.driven, done, more))
    }
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
