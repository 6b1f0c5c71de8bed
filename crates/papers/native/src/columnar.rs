//! Hash join over columns: the key and two integers of each side, each an array of its own (Zhou et
//! al., §6.3).

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::chained::Chains;
use workahead_walks::columnar::{Clustered, ColumnarJoin, JoinedRow, Table, Unclustered};
use workahead_walks::isa::Portable;
use workahead_workloads::keys;

use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch, streams};
use crate::oracle::Oracle;
use crate::run::RunResult;
use crate::size::{self, Footprint, Probes};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    rows: usize,
    probe_rows: usize,
    probes: Probes,
    pages: Pages,
    seed: u64,
}

/// Bytes accessed at random, per row of both sides: three columns each, a cell, two to four bucket
/// heads.
const ROW_BYTES: usize = 12 + 12 + 16 + 12;

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let rows = size::rows(config, footprint, ROW_BYTES)?;
        Ok(Self {
            rows,
            probe_rows: size::probe_rows(config, rows)?,
            probes: size::probes(config)?,
            pages: size::pages(config)?,
            seed: config.seed(),
        })
    }

    /// Rows of the probe table: in order, it is the stream itself.
    fn records(&self) -> usize {
        if self.probes.are_clustered() { self.probe_rows } else { self.rows }
    }

    /// Peak memory: the tables, their sources, the oracle's answers.
    pub(crate) fn bytes(&self, copies: usize) -> u64 {
        let copy = self.rows * (12 + 16 + 16) + self.records() * 12 + self.probe_rows * 4;
        let source = (self.rows + self.records() + self.probe_rows) * 4;
        let oracle = self.records() * 16;
        (copy * copies + source + oracle) as u64
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let draw = |rows: usize, seed: u64| {
            keys::uniform(rows, self.rows as u64, self.seed.wrapping_add(seed))
                .map_err(EngineError::failed)
        };
        let (build_keys, probe_keys) = (draw(self.rows, 0)?, draw(self.records(), 1)?);
        let stream =
            streams::rids(self.records(), self.probe_rows, self.probes.are_clustered(), self.seed);
        let oracle = Oracle::equi_join(probe_keys.iter().copied(), build_keys.iter().copied());
        Ok(Box::new(PreparedOperator::of(Tables {
            shape: *self,
            stream,
            build_keys,
            probe_keys,
            oracle,
        })))
    }
}

/// The data from which copies are made.
struct Tables {
    shape: Shape,
    stream: Vec<u32>,
    build_keys: Vec<u32>,
    probe_keys: Vec<u32>,
    oracle: Oracle,
}

/// One copy of the data.
struct Sides {
    build: Table,
    probe: Table,
    chains: Chains,
    rids: PageBuffer<u32>,
}

impl Data for Tables {
    type Copy = Sides;
    type Out = JoinedRow;

    fn copy(&self) -> Result<Sides, EngineError> {
        let pages = self.shape.pages;
        let table = |keys: &[u32]| Table::of_keys(keys, pages).map_err(EngineError::failed);
        let chains =
            Chains::build(self.build_keys.iter().copied(), pages).map_err(EngineError::failed)?;
        let rids = if self.shape.probes.are_clustered() { &[] } else { &self.stream[..] };
        let rids = PageBuffer::copied(rids, pages).map_err(EngineError::failed)?;
        Ok(Sides { build: table(&self.build_keys)?, probe: table(&self.probe_keys)?, chains, rids })
    }

    fn probes(&self) -> usize {
        self.shape.probe_rows
    }

    fn answer(&self, rows: usize) -> Answer {
        self.oracle.of(self.stream[..rows].iter().copied())
    }

    fn table_bytes(sides: &Sides) -> usize {
        sides.chains.bytes() + sides.build.bytes()
    }

    fn touches(&self, sides: &Sides, hits: f64) -> Vec<Touch> {
        let (heads, cells) = sides.chains.parts_bytes();
        let column = sides.build.bytes() / 3;
        let mut touches = vec![
            Touch::random(heads, 1.0),
            Touch::random(cells, hits),
            Touch::random(column, 3.0 * hits),
        ];
        if !self.shape.probes.are_clustered() {
            // The key of every probe, the integers of those that match.
            touches.push(Touch::random(sides.probe.bytes() / 3, 1.0 + 2.0 * hits.min(1.0)));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides],
        outputs: &mut [PageBuffer<JoinedRow>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        let copy = |thread: usize| &copies[thread % copies.len()];
        match self.shape.probes.are_clustered() {
            true => task.run(Portable, outputs, |thread| {
                let Sides { build, probe, chains, .. } = copy(thread);
                ColumnarJoin::new(chains, build.columns(), probe.columns(), Clustered)
            }),
            false => task.run(Portable, outputs, |thread| {
                let Sides { build, probe, chains, rids } = copy(thread);
                let stream = Unclustered { rids, row_stage: self.shape.probes.have_a_stage() };
                ColumnarJoin::new(chains, build.columns(), probe.columns(), stream)
            }),
        }
    }
}
