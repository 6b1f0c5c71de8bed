//! Index nested-loop join through a CSB+-tree: 32-bit floating-point keys, 32-bit offsets (Zhou et
//! al., §5.1, §6.1).

use std::marker::PhantomData;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::{Avx2, Isa, Portable};
use workahead_walks::place::LINE_BYTES;
use workahead_walks::tree::{
    Binary, Clustered, Fill, Keyed, Level, Lookup, Node, Node64, Node128, Search, Tree,
    Unclustered, Vector,
};
use workahead_workloads::keys;

use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch, streams};
use crate::oracle;
use crate::run::RunResult;
use crate::size::{self, Footprint};

/// Most keys distinguishable as whole numbers in 32-bit floating point.
pub(crate) const KEYS_MAX: usize = 1 << f32::MANTISSA_DIGITS;

/// Bytes accessed at random per key: the outer record, and its share of the nodes.
const KEY_BYTES: usize = 64 + 13;

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    rows: usize,
    probe_rows: usize,
    clustered: bool,
    pages: Pages,
    node: NodeSize,
    seed: u64,
}

/// Bytes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeSize {
    B64,
    B128,
}

/// Descent of a look-up: not part of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Descent {
    simd: bool,
    /// Bytes of upper levels walked in one step.
    at_once_bytes: usize,
}

impl Descent {
    /// Reads `search` and `upper_levels`. The paper takes a step at every level and searches a node
    /// key by key.
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let at_once = [("stepwise", 0), ("at-once", footprint.l2_bytes / 2)];
        Ok(Self {
            simd: config.choice("search", false, &[("scalar", false), ("simd", true)])?,
            at_once_bytes: config.choice("upper_levels", 0, &at_once)?,
        })
    }
}

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let rows = size::rows(config, footprint, KEY_BYTES)?;
        Self::of(config, rows, size::probe_rows(config, rows)?)
    }

    /// The data for given sizes.
    pub(crate) fn of(
        config: &CellConfiguration<'_>,
        rows: usize,
        probe_rows: usize,
    ) -> Result<Self, EngineError> {
        if rows > KEYS_MAX {
            return Err(EngineError::setting(
                "rows",
                format!(
                    "{rows} keys are not distinguishable in 32 bits of floating point: \
                 use at most {KEYS_MAX}"
                ),
            ));
        }
        let sizes = [("128", NodeSize::B128), ("64", NodeSize::B64)];
        Ok(Self {
            rows,
            probe_rows,
            clustered: size::clustered(config)?,
            pages: size::pages(config)?,
            node: config.choice("node_bytes", NodeSize::B128, &sizes)?,
            seed: config.seed(),
        })
    }

    pub(crate) fn bytes(&self, copies: usize) -> u64 {
        let stream = if self.clustered { self.probe_rows * 8 } else { self.probe_rows * 4 };
        let outer = if self.clustered { 0 } else { self.rows * 64 };
        // Leaves of 128 bytes hold ten pairs, of 64 bytes five; plus the levels above.
        let tree = self.rows * 15;
        let shared = self.rows * 16 + self.probe_rows * 4;
        ((stream + outer + tree) * copies + shared) as u64
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let rows = self.rows as u32;
        let rid_of = keys::permutation(rows, self.seed);
        let seed = self.seed.wrapping_add(1);
        let outer_keys =
            keys::uniform(self.rows, self.rows as u64, seed).map_err(EngineError::failed)?;
        let stream = streams::rids(self.rows, self.probe_rows, self.clustered, self.seed);
        let columns = Columns { shape: *self, rid_of, outer_keys, stream };
        Ok(match self.node {
            NodeSize::B64 => {
                Box::new(PreparedOperator::of(Index::<Node64> { columns, node: PhantomData }))
            }
            NodeSize::B128 => {
                Box::new(PreparedOperator::of(Index::<Node128> { columns, node: PhantomData }))
            }
        })
    }
}

/// The data from which copies are made: the keys of the index are 1, 2, …
struct Columns {
    shape: Shape,
    /// The RID of each key of the index.
    rid_of: Vec<u32>,
    /// The key of each outer record.
    outer_keys: Vec<u32>,
    stream: Vec<u32>,
}

struct Index<N> {
    columns: Columns,
    node: PhantomData<N>,
}

/// One copy of the data.
struct Sides<N> {
    tree: Tree<N>,
    /// Clustered probes.
    pairs: PageBuffer<(f32, u32)>,
    /// Unclustered probes.
    records: PageBuffer<Keyed>,
    rids: PageBuffer<u32>,
}

impl<N: Node> Index<N> {
    fn run_by<M: Platform>(
        &self,
        isa: impl Isa,
        search: impl Search,
        copies: &[Sides<N>],
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: &Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        let copy = |thread: usize| &copies[thread % copies.len()];
        let at_once = task.execution.descent.at_once_bytes;
        if self.columns.shape.clustered {
            task.run(isa, outputs, |thread| {
                let sides = copy(thread);
                let lookup = Lookup::new(&sides.tree, Clustered(&sides.pairs), search);
                lookup.upper_levels_within(at_once)
            })
        } else {
            task.run(isa, outputs, |thread| {
                let sides = copy(thread);
                let outer = Unclustered { rids: &sides.rids, records: &sides.records };
                Lookup::new(&sides.tree, outer, search).upper_levels_within(at_once)
            })
        }
    }
}

impl<N: Node> Data for Index<N> {
    type Copy = Sides<N>;
    type Out = [u32; 2];

    fn copy(&self) -> Result<Sides<N>, EngineError> {
        let Columns { shape, rid_of, outer_keys, stream } = &self.columns;
        let pages = shape.pages;
        let indexed: Vec<_> =
            (1..).map(|key: u32| key as f32).zip(rid_of.iter().copied()).collect();
        let tree = Tree::bulk_load(&indexed, Fill::PAPER, pages).map_err(EngineError::failed)?;
        let key = |rid: u32| outer_keys[rid as usize] as f32;
        let (rids, clustered) =
            if shape.clustered { (&[][..], &stream[..]) } else { (&stream[..], &[][..]) };
        let mut pairs = PageBuffer::zeroed(clustered.len(), pages).map_err(EngineError::failed)?;
        for (pair, &rid) in pairs.iter_mut().zip(clustered) {
            *pair = (key(rid), rid);
        }
        let dereferenced = if shape.clustered { 0 } else { outer_keys.len() };
        let mut records = PageBuffer::zeroed(dereferenced, pages).map_err(EngineError::failed)?;
        for (record, rid) in records.iter_mut().zip(0..) {
            *record = Keyed { key: key(rid), payload: [rid; 15] };
        }
        let rids = PageBuffer::copied(rids, pages).map_err(EngineError::failed)?;
        Ok(Sides { tree, pairs, records, rids })
    }

    fn probes(&self) -> usize {
        self.columns.shape.probe_rows
    }

    fn answer(&self, rows: usize) -> Answer {
        // Keys are unique, so the match of an outer record is known without a search.
        let Columns { rid_of, outer_keys, stream, .. } = &self.columns;
        let mut answer = Answer::default();
        for &rid in &stream[..rows] {
            let inner = rid_of[outer_keys[rid as usize] as usize - 1];
            oracle::add(&mut answer, oracle::one(rid, inner));
        }
        answer
    }

    fn table_bytes(sides: &Sides<N>) -> usize {
        sides.tree.bytes()
    }

    fn touches(&self, sides: &Sides<N>, _: f64) -> Vec<Touch> {
        // Each level is a structure of its own: the upper ones are small and stay cached.
        let level =
            |level: &Level| Touch::random(level.nodes * N::BYTES, (N::BYTES / LINE_BYTES) as f64);
        let mut touches: Vec<_> = sides.tree.levels().iter().map(level).collect();
        if !self.columns.shape.clustered {
            touches.push(Touch::random(sides.records.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.columns.shape.pages
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides<N>],
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        match (task.execution.descent.simd, Avx2::detect()) {
            (false, _) => self.run_by(Portable, Binary, copies, outputs, &task),
            (true, Some(isa)) => self.run_by(isa, Vector(isa), copies, outputs, &task),
            (true, None) => self.run_by(Portable, Vector(Portable), copies, outputs, &task),
        }
    }
}
