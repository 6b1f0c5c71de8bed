//! The queries of Hassanein et al. (2008) on a modelled machine: workloads `utpcc`, `uss`, `unj`.
//!
//! | key | values |
//! |---|---|
//! | `rows` | rows of T1; the seed has 1,000,000 |
//! | `inner_rows` | rows of T2, as in the seed 150,000 |
//! | `selectivity` | share of T1 that is meant; the seed's of the query |
//! | `clients` | who ask at the same time (S0.8); round robin over the logical CPUs |
//! | `queries` | how often each of them does |
//! | `warmup` | queries of the first client that aren't counted (S0.10) |
//! | `servers` | the clients are spread over so many servers, which share no data |
//! | `probe` | of `unj`: `in-turn`, or `work-ahead` with a helper on the next CPU (LX.1) |
//! | `set_size` | entries of that work-ahead set |
//! | `stagger_us` | from a client's start to the next one's |
//! | `quantum_ms` | until the next process of a CPU has its turn |
//! | `switch_cycles` | what a change of process takes, without its misses |

#[cfg(test)]
mod tests;

use workahead_simulator::drivers::micro::{self, Asked, Database, Found, Query};
use workahead_simulator::run::Slices;
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};
use workahead_walks::random::Random;
use workahead_workloads::dbmbench::{self, Bounds, Dbmbench, Form, Plan};

use crate::figures::{self, Done};
use crate::machine::ModelledMachine;
use crate::workload::{Description, Workload};
use workahead_engines::configuration::CellConfiguration;

/// Linux 2.6.14 gives a process of usual priority 100 ms (S0.1). They are not scaled down with the
/// rows: what a process goes over in its turn is then more than a cache holds, as it was.
const QUANTUM_MS: f64 = 100.0;
/// Between the starts of two clients: a default, a process is not started in less.
const STAGGER_US: f64 = 50.0;
/// Bytes of a row beside those of the model, and of a key of its indexes.
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
            // Of fewer rows than the seed's 20,000 values, each has one of its own.
            a2_values: rows.min(20_000),
            form: Form::IntoResult,
            bounds: Bounds::Fixed,
            plan: Plan::Seed,
            seed,
            ..dbmbench::Options::seed_of(query)
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
        if stop.asked() {
            return Err(EngineError::Stopped);
        }
        let t2_rows = bench.options().t2_rows;
        let servers = Database::servers(&rows, t2_rows, options.clients, servers);
        let asked = micro::ask(model.preset(), &servers, &options, |client| model.cpu(client));
        let asked = asked.map_err(EngineError::failed)?;
        let expected = bench.answers().of_query(self.query(), bench.fixed_range());
        let answer = self.checked(&asked, &expected)?;
        let queries = asked.found.len() as u64;
        let done = Done { tuples: queries, instructions: asked.instructions, answer };
        let of_query = asked.instructions as f64 / queries as f64;
        let more = [("instructions_per_query".to_owned(), of_query)];
        Ok(figures::sample(model.preset(), &asked.driven, done, more))
    }
}

impl Micro {
    /// The answer that all queries have together, each of which must be what the rows give.
    fn checked(&self, asked: &Asked, expected: &dbmbench::Answer) -> Result<Answer, EngineError> {
        let mut all = Answer::default();
        for found in &asked.found {
            let got = self.answer(found);
            if !got.agrees(expected) {
                return Err(EngineError::WrongAnswer { got: told(&got), expected: told(expected) });
            }
            all.rows += got.rows;
            all.checksum = all.checksum.wrapping_add(got.checksum);
        }
        Ok(all)
    }

    fn answer(&self, found: &Found) -> dbmbench::Answer {
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

fn told(answer: &dbmbench::Answer) -> Answer {
    Answer { rows: answer.rows, checksum: answer.checksum }
}
