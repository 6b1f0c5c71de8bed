//! The paper's hash join: 64-byte rows on both sides, a chained table (Zhou et al., §5.2, §6.1); or
//! rows of another size (§6.2).

use std::marker::PhantomData;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::isa::Portable;
use workahead_walks::record::{Clustered, JoinedRecord, OneLine, Payload, Record, Unclustered};
use workahead_workloads::keys;

use crate::execution::Results;
use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch, streams};
use crate::oracle::Oracle;
use crate::record_bytes::RecordBytes;
use crate::run::RunResult;
use crate::size::{self, Footprint, Probes};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    rows: usize,
    probe_rows: usize,
    probes: Probes,
    pages: Pages,
    skew: f64,
    record_bytes: RecordBytes,
    seed: u64,
}

/// Bytes accessed at random in addition to two records, per row of both sides: a cell, and two to
/// four bucket heads.
const CHAIN_BYTES: usize = 16 + 12;

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let record_bytes = RecordBytes::read(config)?;
        let rows = size::rows(config, footprint, 2 * record_bytes.bytes() + CHAIN_BYTES)?;
        Ok(Self {
            rows,
            probe_rows: size::probe_rows(config, rows)?,
            probes: size::probes(config)?,
            pages: size::pages(config)?,
            skew: config.real("skew", 0.0, 0.0..=4.0)?,
            record_bytes,
            seed: config.seed(),
        })
    }

    /// Rows of the probe table: in order, it is the stream itself.
    fn records(&self) -> usize {
        if self.probes.are_clustered() { self.probe_rows } else { self.rows }
    }

    /// Peak memory: the tables, their sources, the oracle's answers, and `results` whole results
    /// with a position for every row.
    pub(crate) fn bytes(&self, copies: usize, results: usize) -> u64 {
        let record = self.record_bytes.bytes();
        let copy = self.rows * (record + 16 + 16) + self.records() * record + self.probe_rows * 4;
        let source = (self.rows + self.records() + self.probe_rows) * 4;
        let oracle = self.records() * 16;
        let result = self.probe_rows * (2 * record + 8);
        (copy * copies + source + oracle + result * results) as u64
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let build_keys =
            keys::uniform(self.rows, self.rows as u64, self.seed).map_err(EngineError::failed)?;
        let probe_keys = self.probe_keys()?;
        let stream =
            streams::rids(self.records(), self.probe_rows, self.probes.are_clustered(), self.seed);
        let oracle = Oracle::equi_join(probe_keys.iter().copied(), build_keys.iter().copied());
        let keys = Keys { shape: *self, stream, build_keys, probe_keys, oracle };
        Ok(match self.record_bytes {
            RecordBytes::B32 => Tables::<[u32; 6]>::new_operator(keys),
            RecordBytes::B64 => Tables::<OneLine>::new_operator(keys),
            RecordBytes::B128 => Tables::<[u32; 30]>::new_operator(keys),
            RecordBytes::B256 => Tables::<[u32; 62]>::new_operator(keys),
        })
    }

    /// Keys from the paper's domain, 1 to the number of rows; uniform as in Zhou et al. unless
    /// `skew` is set.
    fn probe_keys(&self) -> Result<Vec<u32>, EngineError> {
        let seed = self.seed.wrapping_add(1);
        if self.skew == 0.0 {
            return keys::uniform(self.records(), self.rows as u64, seed)
                .map_err(EngineError::failed);
        }
        streams::skewed(self.records(), self.rows, self.skew, seed)
    }
}

/// The data from which copies are made, for any size of record.
struct Keys {
    shape: Shape,
    stream: Vec<u32>,
    build_keys: Vec<u32>,
    probe_keys: Vec<u32>,
    oracle: Oracle,
}

/// The same for records with payload `P`.
struct Tables<P>(Keys, PhantomData<P>);

impl<P: Payload> Tables<P> {
    fn new_operator<M: Platform>(keys: Keys) -> Box<dyn Operator<M>> {
        Box::new(PreparedOperator::of(Self(keys, PhantomData)))
    }
}

/// One copy of the data.
struct Sides<P: Payload> {
    build: PageBuffer<Record<P>>,
    probe: PageBuffer<Record<P>>,
    rids: PageBuffer<u32>,
    row_stage: bool,
    chains: Chains,
}

impl<P: Payload> Sides<P> {
    fn clustered(&self) -> HashJoin<'_, Clustered<'_, P>> {
        HashJoin::new(&self.chains, &self.build, Clustered(&self.probe))
    }

    fn unclustered(&self) -> HashJoin<'_, Unclustered<'_, P>> {
        let (records, rids) = (&self.probe, &self.rids);
        let probes = Unclustered { records, rids, row_stage: self.row_stage };
        HashJoin::new(&self.chains, &self.build, probes)
    }
}

/// Rows with these keys.
pub(crate) fn records<P: Payload>(
    keys: &[u32],
    pages: Pages,
) -> Result<PageBuffer<Record<P>>, EngineError> {
    let mut records =
        PageBuffer::<Record<P>>::zeroed(keys.len(), pages).map_err(EngineError::failed)?;
    for ((record, key), row) in records.iter_mut().zip(keys).zip(0..) {
        *record = Record::new(*key, row, row);
    }
    Ok(records)
}

impl<P: Payload> Data for Tables<P> {
    type Copy = Sides<P>;
    type Out = JoinedRecord<P>;

    fn copy(&self) -> Result<Sides<P>, EngineError> {
        let keys = &self.0;
        let pages = keys.shape.pages;
        let chains =
            Chains::build(keys.build_keys.iter().copied(), pages).map_err(EngineError::failed)?;
        let rids = if keys.shape.probes.are_clustered() { &[] } else { &keys.stream[..] };
        Ok(Sides {
            build: records(&keys.build_keys, pages)?,
            probe: records(&keys.probe_keys, pages)?,
            rids: PageBuffer::copied(rids, pages).map_err(EngineError::failed)?,
            row_stage: keys.shape.probes.have_a_stage(),
            chains,
        })
    }

    fn probes(&self) -> usize {
        self.0.shape.probe_rows
    }

    fn answer(&self, rows: usize) -> Answer {
        self.0.oracle.of(self.0.stream[..rows].iter().copied())
    }

    fn table_bytes(sides: &Sides<P>) -> usize {
        sides.chains.bytes() + sides.build.bytes()
    }

    fn touches(&self, sides: &Sides<P>, hits: f64) -> Vec<Touch> {
        let lines = P::RECORD_LINES as f64;
        let (heads, cells) = sides.chains.parts_bytes();
        let mut touches = vec![
            Touch::random(heads, 1.0),
            Touch::random(cells, hits),
            Touch::random(sides.build.bytes(), hits * lines),
        ];
        if !self.0.shape.probes.are_clustered() {
            touches.push(Touch::random(sides.probe.bytes(), lines));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.0.shape.pages
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides<P>],
        outputs: &mut [PageBuffer<JoinedRecord<P>>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        let copy = |thread: usize| &copies[thread % copies.len()];
        let isa = Portable;
        match (task.execution.results, self.0.shape.probes.are_clustered()) {
            (Results::Batches, true) => task.run(isa, outputs, |thread| copy(thread).clustered()),
            (Results::Batches, false) => {
                task.run(isa, outputs, |thread| copy(thread).unclustered())
            }
            (Results::Whole, clustered) => {
                // Compiled for this size only: the merge is what is measured.
                if const { P::RECORD_BYTES != OneLine::RECORD_BYTES } {
                    return Err(EngineError::setting(
                        "record_bytes",
                        "whole results can be merged for 64 bytes only",
                    ));
                }
                let rows_out = self.answer(task.rows.end).rows as usize;
                match clustered {
                    true => M::run_whole::<_, JoinedRecord<P>>(&task, isa, rows_out, |thread| {
                        copy(thread).clustered()
                    }),
                    false => M::run_whole::<_, JoinedRecord<P>>(&task, isa, rows_out, |thread| {
                        copy(thread).unclustered()
                    }),
                }
            }
        }
    }
}
