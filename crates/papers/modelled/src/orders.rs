//! Order entry on modelled multiprocessors: Keeton et al. 1998.
//!
//! | key | values |
//! |---|---|
//! | `cpus` | cores, instead of the machine's |
//! | `l2_kib` | size of L2 in KiB, instead of the machine's |
//! | `outstanding` | outstanding misses of a core; 1 also limits the bus to one request (S2.3) |
//! | `warehouses`, `clients`, `buffer_mib` | per logical CPU: buffer and database grow with the CPUs (S2.2, S2.3) |
//! | `items`, `customers` | of a warehouse, of a district: 100,000 and 3,000 in TPC-C |
//! | `transactions`, `warmup` | per logical CPU: those that count, and those before them |
//! | `draws` | so often transactions are drawn, each on a machine of its own; figures are means |
//! | `index` | `latched`, or `lock-free` |
//! | `index_only` | `reads` or `mixed`: clients only probe one index with a key per row of stock; `none` |

use workahead_simulator::core::Processor;
use workahead_simulator::drivers::orders::{
    self, Events, Index, Options, Sizes, Work, origin, run_orders,
};
use workahead_simulator::preset::Preset;
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};

use crate::draws;
use crate::figures::{RunWork, sample};
use crate::machine::ModelledMachine;
use crate::workload::{Description, Workload};
use workahead_engines::configuration::CellConfiguration;

/// The workload.
pub(super) struct OrderEntry;

const INDEXES: [(&str, Index); 2] = [("latched", Index::Latched), ("lock-free", Index::LockFree)];

const WORK: [(&str, Work); 3] =
    [("none", Work::Transactions), ("reads", Work::Reads), ("mixed", Work::Mixed)];

/// Keys of orders have no room for more districts.
const WAREHOUSES_MAX: usize = 400;

/// Bytes of a page of the buffer.
const PAGE_BYTES: f64 = 4096.0;

/// Searches and insertions of one transaction that only probes an index.
const PROBES: u64 = 32;

/// A modelled machine with the options of a run.
struct RunSettings {
    preset: Preset,
    options: Options,
    draws: u64,
}

impl RunSettings {
    fn read(
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
    ) -> Result<Self, EngineError> {
        let preset = changed(config, machine.preset())?;
        let cpus = preset.cpus() as usize;
        let work = config.choice("index_only", Work::Transactions, &WORK)?;
        // A probed index has the same size on any number of CPUs.
        let databases = if work == Work::Transactions { cpus } else { 1 };
        let warehouses = config.number("warehouses", 2, 1..=WAREHOUSES_MAX)? * databases;
        if warehouses > WAREHOUSES_MAX {
            return Err(EngineError::setting(
                "warehouses",
                format!(
                    "{warehouses} on {cpus} CPUs together: lower it to {} each",
                    WAREHOUSES_MAX / cpus
                ),
            ));
        }
        let each =
            |key, usual, bounds| Ok::<_, EngineError>(config.number(key, usual, bounds)? * cpus);
        let options = Options {
            index: config.choice("index", Index::Latched, &INDEXES)?,
            work,
            sizes: Sizes {
                warehouses: warehouses as u32,
                items: config.number("items", 20_000, 100..=100_000)? as u32,
                customers: config.number("customers", 600, 20..=3_000)? as u32,
            },
            clients: each("clients", 8, 1..=1_000)? as u32,
            buffer_pages: (config.real("buffer_mib", 16.0, 0.1..=1024.0)?
                * cpus as f64
                * 1_048_576.0
                / PAGE_BYTES) as u32,
            warmup: each("warmup", 60, 0..=1_000_000)? as u64,
            transactions: each("transactions", 120, 1..=1_000_000)? as u64,
            seed: config.seed(),
        };
        Ok(Self { preset, options, draws: config.number("draws", 1, 1..=1000)? as u64 })
    }
}

/// The machine with the changes of a cell.
fn changed(config: &CellConfiguration<'_>, preset: &Preset) -> Result<Preset, EngineError> {
    let mut changes = Vec::new();
    if config.has("cpus") {
        changes.push(format!("cores={}", config.number("cpus", 1, 1..=64)?));
    }
    if config.has("l2_kib") {
        changes.push(format!("cache.L2.bytes={}", config.number("l2_kib", 1, 1..=1 << 20)? << 10));
    }
    if config.has("outstanding") {
        let lines = config.number("outstanding", 1, 1..=64)?;
        changes.push(format!("core.outstanding={lines}"));
        if lines == 1 {
            changes.push("memory.outstanding=1".to_owned());
        }
    }
    let change = |preset: Preset, change: &String| preset.with_override(change);
    changes.iter().try_fold(preset.clone(), change).map_err(EngineError::failed)
}

impl Workload for OrderEntry {
    fn name(&self) -> &'static str {
        "order-entry"
    }

    fn description(&self) -> Description {
        let checked = "and all conditions hold afterwards";
        Description { tuples: "transactions", code: origin(), checked }
    }

    fn check(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
    ) -> Result<Need, EngineError> {
        let RunSettings { options, .. } = RunSettings::read(config, machine)?;
        let memory_bytes = options.bytes().saturating_add(64 << 20);
        Ok(Need { memory_bytes, ..Need::default() })
    }

    fn run(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let RunSettings { preset, options, draws } = RunSettings::read(config, machine)?;
        let mut answer = Answer::default();
        let mut samples = Vec::new();
        for draw in 0..draws {
            if stop.is_requested() {
                return Err(EngineError::Stopped);
            }
            let options = Options { seed: options.seed.wrapping_add(draw), ..options };
            let sample = run(&preset, &options, stop)?;
            answer.rows += sample.answer.rows;
            answer.checksum = answer.checksum.wrapping_add(sample.answer.checksum);
            samples.push(sample);
        }
        Ok(Sample { answer, ..draws::mean(samples) })
    }
}

/// One run, with transactions by its seed.
fn run(preset: &Preset, options: &Options, stop: &Stop) -> Result<Sample, EngineError> {
    let mut processor = Processor::new(preset).map_err(EngineError::failed)?;
    let cpus: Vec<usize> = (0..preset.cpus() as usize).collect();
    let ordered = run_orders(&mut processor, &cpus, options, stop.flag());
    if stop.is_requested() {
        return Err(EngineError::Stopped);
    }
    let ordered = ordered.map_err(EngineError::failed)?;
    let orders::Answer { rows, checksum } = ordered.answer;
    let probes = if options.work == Work::Transactions { 1 } else { PROBES };
    let done = RunWork {
        tuples: options.transactions * probes,
        instructions: ordered.instructions,
        answer: Answer { rows, checksum },
    };
    let more = events(&ordered.events, done.tuples);
    Ok(sample(preset, &ordered.driven, done, more))
}

/// Events per transaction or probe.
fn events(events: &Events, tuples: u64) -> impl Iterator<Item = (String, f64)> {
    let Events { spins, restarts, lock_waits, switches, page_reads, page_requests } = *events;
    let cycles_lost = [
        ("latch_spins_per_tuple", spins),
        ("restarts_per_tuple", restarts),
        ("lock_waits_per_tuple", lock_waits),
        ("switches_per_tuple", switches),
        ("page_reads_per_tuple", page_reads),
        ("page_requests_per_tuple", page_requests),
    ];
    cycles_lost
        .into_iter()
        .map(move |(name, count)| (name.to_owned(), count as f64 / tuples as f64))
}

#[cfg(test)]
mod tests;
