//! The one-cache-line bucket table: 64-bit keys and values, four to a line (Ross, ICDE 2007).

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::bucket::{Compare, First, Load, Probe, Table};
use workahead_walks::isa::{Avx2, Portable};
use workahead_workloads::keys::{Pick, Probes, UniqueKeys};

use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch};
use crate::oracle::Oracle;
use crate::run::RunResult;
use crate::size::{self, Footprint};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    rows: usize,
    probe_rows: usize,
    hit_rate: f64,
    skew: f64,
    load: Load,
    pages: Pages,
    seed: u64,
}

/// Bytes of the table per key at half load.
const KEY_BYTES: usize = 32;

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let rows = size::rows(config, footprint, KEY_BYTES)?;
        let load = config.number("load_percent", 50, 1..=90)?;
        Ok(Self {
            rows,
            probe_rows: size::probe_rows(config, rows)?,
            hit_rate: config.real("hit_rate", 1.0, 0.0..=1.0)?,
            skew: config.real("skew", 0.0, 0.0..=4.0)?,
            load: Load::percent(load as u8).unwrap_or(Load::HALF),
            pages: size::pages(config)?,
            seed: config.seed(),
        })
    }

    /// Peak memory: the tables, the keys of both sides, the values while a table is built, the
    /// oracle's answers. (The oracle's larger need for sorted keys comes before any table is
    /// built.)
    pub(crate) fn bytes(&self, copies: usize) -> u64 {
        // An impossible table is refused when it is built, with its own remedy.
        let table = Table::bytes_for(self.rows, self.load).unwrap_or_default();
        let copy = table + self.probe_rows * 8;
        (copy * copies + self.rows * 16 + self.probe_rows * 32) as u64
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let build =
            UniqueKeys::<u64>::new(self.rows as u64, self.seed).map_err(EngineError::failed)?;
        let pick = if self.skew == 0.0 { Pick::Uniform } else { Pick::Zipf(self.skew) };
        let Self { probe_rows: rows, hit_rate, seed, .. } = *self;
        let probe_keys =
            Probes { rows, hit_rate, pick, seed }.keys(&build).map_err(EngineError::failed)?;
        let build_keys: Vec<u64> = build.iter().collect();
        let oracle = Oracle::equi_join(probe_keys.iter().copied(), build_keys.iter().copied());
        Ok(Box::new(PreparedOperator::of(Keys { shape: *self, build_keys, probe_keys, oracle })))
    }
}

/// The data from which copies are made.
struct Keys {
    shape: Shape,
    build_keys: Vec<u64>,
    probe_keys: Vec<u64>,
    oracle: Oracle,
}

/// One copy of the data.
struct Sides {
    table: Table,
    probe_keys: PageBuffer<u64>,
}

impl Keys {
    fn run_by<M: Platform>(
        &self,
        isa: impl Compare,
        copies: &[Sides],
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: &Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        task.run(isa, outputs, |thread| {
            let Sides { table, probe_keys } = &copies[thread % copies.len()];
            Probe::<_, First>::new(table, isa, probe_keys)
        })
    }
}

impl Data for Keys {
    type Copy = Sides;
    type Out = [u32; 2];

    fn copy(&self) -> Result<Sides, EngineError> {
        let Shape { load, pages, .. } = self.shape;
        let values: Vec<u64> = (0..self.build_keys.len() as u64).collect();
        let table =
            Table::of(&self.build_keys, &values, load, pages).map_err(EngineError::failed)?;
        Ok(Sides {
            table,
            probe_keys: PageBuffer::copied(&self.probe_keys, pages).map_err(EngineError::failed)?,
        })
    }

    fn probes(&self) -> usize {
        self.shape.probe_rows
    }

    fn answer(&self, rows: usize) -> Answer {
        self.oracle.of(0..rows as u32)
    }

    fn table_bytes(sides: &Sides) -> usize {
        sides.table.bytes()
    }

    fn touches(&self, sides: &Sides, _: f64) -> Vec<Touch> {
        vec![Touch::random(sides.table.bytes(), 1.0)]
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides],
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        match Avx2::detect() {
            Some(isa) => self.run_by(isa, copies, outputs, &task),
            None => self.run_by(Portable, copies, outputs, &task),
        }
    }
}
