//! The paper's hash join: 64-byte rows on both sides, a chained table (Zhou et al., §5.2, §6.1).

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_operators::chained::{Chains, HashJoin};
use workahead_operators::isa::Portable;
use workahead_operators::record::{Clustered, Joined, Record, Unclustered};
use workahead_study::engine::{Answer, EngineError};
use workahead_workloads::keys;

use super::crew::{Crew, Ran, failed};
use super::given::Given;
use super::how::How;
use super::operator::{Operator, Touch, streams};
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

    /// Memory at the peak: the tables, and the oracle's sorted keys and answers.
    pub(super) fn bytes(&self, copies: usize) -> u64 {
        let copy = self.rows * (64 + 16 + 16) + self.records() * 64 + self.probe_rows * 4;
        let oracle = (self.rows + self.records()) * 8 + self.records() * 16;
        (copy * copies + oracle) as u64
    }

    pub(super) fn make(&self) -> Result<Made, EngineError> {
        let build_keys = keys::uniform(self.rows, self.rows as u64, self.seed).map_err(failed)?;
        let probe_keys = self.probe_keys()?;
        let stream = streams::rids(self.records(), self.probe_rows, self.clustered, self.seed);
        let oracle = Oracle::equi_join(probe_keys.iter().copied(), build_keys.iter().copied());
        let expected = oracle.of(stream.iter().copied());
        let mut made = Made {
            shape: *self,
            stream: if self.clustered { Vec::new() } else { stream },
            build_keys,
            probe_keys,
            copies: Vec::new(),
            outputs: Vec::new(),
            expected,
        };
        made.prepare(1, 1)?;
        Ok(made)
    }

    /// Keys from the seed's domain, 1 to the number of rows, some more often than others if so
    /// asked (Zhou et al. draw them uniformly).
    fn probe_keys(&self) -> Result<Vec<u32>, EngineError> {
        let seed = self.seed.wrapping_add(1);
        if self.skew == 0.0 {
            return keys::uniform(self.records(), self.rows as u64, seed).map_err(failed);
        }
        streams::skewed(self.records(), self.rows, self.skew, seed)
    }
}

/// The data in place.
pub(super) struct Made {
    shape: Shape,
    stream: Vec<u32>,
    build_keys: Vec<u32>,
    probe_keys: Vec<u32>,
    copies: Vec<Sides>,
    outputs: Vec<PageBuffer<Joined>>,
    expected: Answer,
}

/// One copy: what a thread of the independent kind has for itself.
struct Sides {
    build: PageBuffer<Record>,
    probe: PageBuffer<Record>,
    rids: PageBuffer<u32>,
    chains: Chains,
}

impl Sides {
    fn of(made: &Made) -> Result<Self, EngineError> {
        let pages = made.shape.pages;
        let chains = Chains::build(made.build_keys.iter().copied(), pages);
        Ok(Self {
            build: records(&made.build_keys, pages)?,
            probe: records(&made.probe_keys, pages)?,
            rids: PageBuffer::copied(&made.stream, pages).map_err(failed)?,
            chains: chains.map_err(failed)?,
        })
    }

    fn clustered(&self) -> HashJoin<'_, Clustered<'_>> {
        HashJoin::new(&self.chains, &self.build, Clustered(&self.probe))
    }

    fn unclustered(&self) -> HashJoin<'_, Unclustered<'_>> {
        let probes = Unclustered { records: &self.probe, rids: &self.rids };
        HashJoin::new(&self.chains, &self.build, probes)
    }
}

/// Rows with these keys.
fn records(keys: &[u32], pages: Pages) -> Result<PageBuffer<Record>, EngineError> {
    let mut records = PageBuffer::<Record>::zeroed(keys.len(), pages).map_err(failed)?;
    for ((record, key), row) in records.iter_mut().zip(keys).zip(0..) {
        *record = Record { key: *key, row, payload: [row; 14] };
    }
    Ok(records)
}

impl Operator for Made {
    fn prepare(&mut self, copies: usize, threads: usize) -> Result<(), EngineError> {
        while self.copies.len() < copies {
            self.copies.push(Sides::of(self)?);
        }
        if self.outputs.len() < threads {
            self.outputs = Crew::outputs(threads).map_err(failed)?;
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.shape.probe_rows
    }

    fn expected(&self) -> Answer {
        self.expected
    }

    fn table_bytes(&self) -> usize {
        let sides = &self.copies[0];
        sides.chains.bytes() + sides.build.bytes()
    }

    fn touches(&self) -> Vec<Touch> {
        let sides = &self.copies[0];
        let shape = &self.shape;
        let hits = self.expected.rows as f64 / shape.probe_rows as f64;
        let (heads, cells) = sides.chains.parts_bytes();
        let mut touches = vec![
            Touch::random(heads, 1.0),
            Touch::random(cells, hits),
            Touch::random(sides.build.bytes(), hits),
        ];
        if !shape.clustered {
            touches.push(Touch::random(sides.probe.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run(&mut self, how: &How, crew: &Crew) -> Result<Ran, EngineError> {
        let Self { shape, copies, outputs, .. } = self;
        let copies = &copies[..];
        let copy = |thread: usize| &copies[thread % copies.len()];
        let rows = shape.probe_rows;
        if shape.clustered {
            crew.run(Portable, how, rows, outputs, |thread| copy(thread).clustered())
        } else {
            crew.run(Portable, how, rows, outputs, |thread| copy(thread).unclustered())
        }
    }
}
