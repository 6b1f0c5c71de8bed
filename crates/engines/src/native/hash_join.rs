//! The paper's hash join: 64-byte rows on both sides, a chained table (Zhou et al., §5.2, §6.1).

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_operators::chained::{Chains, HashJoin};
use workahead_operators::isa::Portable;
use workahead_operators::record::{Clustered, Joined, Record, Unclustered};
use workahead_study::engine::{Answer, EngineError};
use workahead_workloads::keys;

use super::crew::{Ran, failed};
use super::given::Given;
use super::how::Results;
use super::operator::{Data, Made, Operator, Task, Touch, streams};
use super::oracle::Oracle;
use super::size::{self, Footprint};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    rows: usize,
    probe_rows: usize,
    clustered: bool,
    pages: Pages,
    skew: f64,
    seed: u64,
}

/// Bytes that the probes touch at random, per row of both sides: two records, a cell, and two to
/// four bucket heads.
const ROW_BYTES: usize = 64 + 64 + 16 + 12;

impl Shape {
    pub(super) fn read(given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        let rows = size::rows(given, footprint, ROW_BYTES)?;
        Ok(Self {
            rows,
            probe_rows: size::probe_rows(given, rows)?,
            clustered: size::clustered(given)?,
            pages: size::pages(given)?,
            skew: given.real("skew", 0.0, 0.0..=4.0)?,
            seed: given.seed(),
        })
    }

    /// Rows of the probe table: read in order, it is the stream itself.
    fn records(&self) -> usize {
        if self.clustered { self.probe_rows } else { self.rows }
    }

    /// Memory at the peak: the tables, what they are copied from, the oracle's answers, and so many
    /// whole results with a position for every row.
    pub(super) fn bytes(&self, copies: usize, results: usize) -> u64 {
        let copy = self.rows * (64 + 16 + 16) + self.records() * 64 + self.probe_rows * 4;
        let source = (self.rows + self.records() + self.probe_rows) * 4;
        let oracle = self.records() * 16;
        let result = self.probe_rows * (size_of::<Joined>() + 8);
        (copy * copies + source + oracle + result * results) as u64
    }

    pub(super) fn make(&self) -> Result<Box<dyn Operator>, EngineError> {
        let build_keys = keys::uniform(self.rows, self.rows as u64, self.seed).map_err(failed)?;
        let probe_keys = self.probe_keys()?;
        let stream = streams::rids(self.records(), self.probe_rows, self.clustered, self.seed);
        let oracle = Oracle::equi_join(probe_keys.iter().copied(), build_keys.iter().copied());
        Ok(Box::new(Made::of(Tables { shape: *self, stream, build_keys, probe_keys, oracle })))
    }

    /// Keys from the seed's domain, 1 to the number of rows; some more often than others if so
    /// asked (Zhou et al. draw them uniformly).
    fn probe_keys(&self) -> Result<Vec<u32>, EngineError> {
        let seed = self.seed.wrapping_add(1);
        if self.skew == 0.0 {
            return keys::uniform(self.records(), self.rows as u64, seed).map_err(failed);
        }
        streams::skewed(self.records(), self.rows, self.skew, seed)
    }
}

/// What the copies are made of.
struct Tables {
    shape: Shape,
    stream: Vec<u32>,
    build_keys: Vec<u32>,
    probe_keys: Vec<u32>,
    oracle: Oracle,
}

/// One copy.
struct Sides {
    build: PageBuffer<Record>,
    probe: PageBuffer<Record>,
    rids: PageBuffer<u32>,
    chains: Chains,
}

impl Sides {
    fn clustered(&self) -> HashJoin<'_, Clustered<'_>> {
        HashJoin::new(&self.chains, &self.build, Clustered(&self.probe))
    }

    fn unclustered(&self) -> HashJoin<'_, Unclustered<'_>> {
        let probes = Unclustered { records: &self.probe, rids: &self.rids };
        HashJoin::new(&self.chains, &self.build, probes)
    }
}

/// Rows with these keys.
pub(super) fn records(keys: &[u32], pages: Pages) -> Result<PageBuffer<Record>, EngineError> {
    let mut records = PageBuffer::<Record>::zeroed(keys.len(), pages).map_err(failed)?;
    for ((record, key), row) in records.iter_mut().zip(keys).zip(0..) {
        *record = Record { key: *key, row, payload: [row; 14] };
    }
    Ok(records)
}

impl Data for Tables {
    type Copy = Sides;
    type Out = Joined;

    fn copy(&self) -> Result<Sides, EngineError> {
        let pages = self.shape.pages;
        let chains = Chains::build(self.build_keys.iter().copied(), pages).map_err(failed)?;
        let rids = if self.shape.clustered { &[] } else { &self.stream[..] };
        Ok(Sides {
            build: records(&self.build_keys, pages)?,
            probe: records(&self.probe_keys, pages)?,
            rids: PageBuffer::copied(rids, pages).map_err(failed)?,
            chains,
        })
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
        let mut touches = vec![
            Touch::random(heads, 1.0),
            Touch::random(cells, hits),
            Touch::random(sides.build.bytes(), hits),
        ];
        if !self.shape.clustered {
            touches.push(Touch::random(sides.probe.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run(
        &self,
        copies: &[Sides],
        outputs: &mut [PageBuffer<Joined>],
        task: Task<'_>,
    ) -> Result<Ran, EngineError> {
        let copy = |thread: usize| &copies[thread % copies.len()];
        let isa = Portable;
        match (task.how.results, self.shape.clustered) {
            (Results::Batches, true) => task.run(isa, outputs, |thread| copy(thread).clustered()),
            (Results::Batches, false) => {
                task.run(isa, outputs, |thread| copy(thread).unclustered())
            }
            (Results::Whole, clustered) => {
                let rows_out = self.answer(task.rows.end).rows as usize;
                match clustered {
                    true => task.run_whole(isa, rows_out, |thread| copy(thread).clustered()),
                    false => task.run_whole(isa, rows_out, |thread| copy(thread).unclustered()),
                }
            }
        }
    }
}
