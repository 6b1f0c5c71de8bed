//! Index nested-loop join through a CSB+-tree: 32-bit floating-point keys, 32-bit offsets (Zhou et
//! al., §5.1, §6.1).

use std::marker::PhantomData;

use workahead_engines::configuration::CellConfiguration;
use workahead_lookup::OrderedIndex;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::{Avx2, Isa, Portable};
use workahead_walks::place::LINE_BYTES;
use workahead_walks::tree::{
    Binary, Clustered, Fill, KeyedRecord, Level, Lookup, Node, Node64, Node128, Search, Tree,
    Unclustered, Vector,
};
use workahead_workloads::keys;

use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch, streams};
use crate::oracle;
use crate::run::RunResult;
use crate::size::{self, Footprint, Probes};

/// Most keys distinguishable as whole numbers in 32-bit floating point.
pub(crate) const KEYS_MAX: usize = 1 << f32::MANTISSA_DIGITS;

/// Bytes accessed at random per key: the outer record, and its share of the nodes.
const KEY_BYTES: usize = 64 + 13;

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    rows: usize,
    probe_rows: usize,
    probes: Probes,
    pages: Pages,
    tree: TreeKind,
    seed: u64,
}

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeKind {
    /// The paper's, bulk-loaded, of nodes of 64 bytes.
    B64,
    /// The paper's, of nodes of 128 bytes.
    B128,
    /// That of `workahead-lookup`, which takes inserts.
    Growing,
}

impl TreeKind {
    fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        let kinds = [("bulk-loaded", false), ("growing", true)];
        if !config.choice("tree", false, &kinds)? {
            return config.choice(
                "node_bytes",
                Self::B128,
                &[("128", Self::B128), ("64", Self::B64)],
            );
        }
        for key in ["node_bytes", "search"] {
            if config.has(key) {
                let reason = "a growing tree has nodes and a search of its own: leave it out";
                return Err(EngineError::setting(key, reason));
            }
        }
        match size::pages(config)? {
            Pages::Huge => Ok(Self::Growing),
            Pages::Small => {
                let reason = "a growing tree lies on huge pages, or on what the allocator gives";
                Err(EngineError::setting("pages", reason))
            }
        }
    }
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
        Ok(Self {
            rows,
            probe_rows,
            probes: size::probes(config)?,
            pages: size::pages(config)?,
            tree: TreeKind::read(config)?,
            seed: config.seed(),
        })
    }

    pub(crate) fn bytes(&self, copies: usize) -> u64 {
        let stream =
            if self.probes.are_clustered() { self.probe_rows * 8 } else { self.probe_rows * 4 };
        let outer = if self.probes.are_clustered() { 0 } else { self.rows * 64 };
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
        let stream =
            streams::rids(self.rows, self.probe_rows, self.probes.are_clustered(), self.seed);
        let columns = Columns { shape: *self, rid_of, outer_keys, stream };
        Ok(match self.tree {
            TreeKind::B64 => Index::<Tree<Node64>>::operator(columns),
            TreeKind::B128 => Index::<Tree<Node128>>::operator(columns),
            TreeKind::Growing => Index::<OrderedIndex<u32, u32>>::operator(columns),
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

struct Index<T> {
    columns: Columns,
    tree: PhantomData<fn() -> T>,
}

impl<T: Indexed> Index<T> {
    fn operator<M: Platform>(columns: Columns) -> Box<dyn Operator<M>> {
        Box::new(PreparedOperator::of(Self { columns, tree: PhantomData }))
    }
}

/// One copy of the data.
struct Sides<T> {
    tree: T,
    /// Clustered probes.
    pairs: PageBuffer<(f32, u32)>,
    /// Unclustered probes.
    records: PageBuffer<KeyedRecord>,
    rids: PageBuffer<u32>,
    row_stage: bool,
}

impl<T> Sides<T> {
    fn clustered(&self) -> Clustered<'_> {
        Clustered(&self.pairs)
    }

    fn unclustered(&self) -> Unclustered<'_> {
        Unclustered { rids: &self.rids, records: &self.records, row_stage: self.row_stage }
    }
}

/// A tree that cells can ask for.
trait Indexed: Send + Sync + Sized + 'static {
    /// Loads (key, RID) pairs, which ascend.
    fn load(pairs: &[(f32, u32)], pages: Pages) -> Result<Self, EngineError>;
    fn bytes(&self) -> usize;
    /// Lines that a look-up accesses at random, level by level: the upper ones are small and stay
    /// cached.
    fn touches(&self) -> Vec<Touch>;
    /// Looks the outer streams of copies up.
    fn join<M: Platform>(
        copies: &[Sides<Self>],
        is_clustered: bool,
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: &Task<'_, M>,
    ) -> Result<RunResult, EngineError>;
}

fn run_by<N: Node, M: Platform>(
    (isa, search): (impl Isa, impl Search),
    copies: &[Sides<Tree<N>>],
    is_clustered: bool,
    outputs: &mut [PageBuffer<[u32; 2]>],
    task: &Task<'_, M>,
) -> Result<RunResult, EngineError> {
    let copy = |thread: usize| &copies[thread % copies.len()];
    let at_once = task.execution.descent.at_once_bytes;
    if is_clustered {
        task.run(isa, outputs, |thread| {
            let sides = copy(thread);
            Lookup::new(&sides.tree, sides.clustered(), search).upper_levels_within(at_once)
        })
    } else {
        task.run(isa, outputs, |thread| {
            let sides = copy(thread);
            Lookup::new(&sides.tree, sides.unclustered(), search).upper_levels_within(at_once)
        })
    }
}

impl<N: Node + 'static> Indexed for Tree<N> {
    fn load(pairs: &[(f32, u32)], pages: Pages) -> Result<Self, EngineError> {
        Tree::bulk_load(pairs, Fill::PAPER, pages).map_err(EngineError::failed)
    }

    fn bytes(&self) -> usize {
        Tree::bytes(self)
    }

    fn touches(&self) -> Vec<Touch> {
        let level =
            |level: &Level| Touch::random(level.nodes * N::BYTES, (N::BYTES / LINE_BYTES) as f64);
        self.levels().iter().map(level).collect()
    }

    fn join<M: Platform>(
        copies: &[Sides<Self>],
        is_clustered: bool,
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: &Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        match (task.execution.descent.simd, Avx2::detect()) {
            (false, _) => run_by((Portable, Binary), copies, is_clustered, outputs, task),
            (true, Some(isa)) => run_by((isa, Vector(isa)), copies, is_clustered, outputs, task),
            (true, None) => {
                run_by((Portable, Vector(Portable)), copies, is_clustered, outputs, task)
            }
        }
    }
}

impl Indexed for OrderedIndex<u32, u32> {
    fn load(pairs: &[(f32, u32)], _: Pages) -> Result<Self, EngineError> {
        // None is negative, so that the bits of keys ascend as they do.
        let entries = pairs.iter().map(|(key, rid)| (key.to_bits(), *rid));
        Ok(OrderedIndex::from_sorted(entries, workahead_lookup::Pages::Huge))
    }

    fn bytes(&self) -> usize {
        OrderedIndex::bytes(self)
    }

    fn touches(&self) -> Vec<Touch> {
        // Full nodes: 14 pairs to a leaf of two lines, 15 children to a node of one.
        let leaves = self.len().div_ceil(14);
        let mut touches = vec![Touch::random(leaves * 2 * LINE_BYTES, 2.0)];
        let mut nodes = leaves;
        while nodes > 1 {
            nodes = nodes.div_ceil(15);
            touches.push(Touch::random(nodes * LINE_BYTES, 1.0));
        }
        touches
    }

    fn join<M: Platform>(
        copies: &[Sides<Self>],
        is_clustered: bool,
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: &Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        let copy = |thread: usize| &copies[thread % copies.len()];
        let is_stepwise = task.execution.descent.at_once_bytes == 0;
        if is_clustered {
            task.run(Portable, outputs, |thread| {
                let sides = copy(thread);
                let walk = sides.tree.nested_loop(sides.clustered());
                if is_stepwise { walk.stepwise() } else { walk }
            })
        } else {
            task.run(Portable, outputs, |thread| {
                let sides = copy(thread);
                let walk = sides.tree.nested_loop(sides.unclustered());
                if is_stepwise { walk.stepwise() } else { walk }
            })
        }
    }
}

impl<T: Indexed> Data for Index<T> {
    type Copy = Sides<T>;
    type Out = [u32; 2];

    fn copy(&self) -> Result<Sides<T>, EngineError> {
        let Columns { shape, rid_of, outer_keys, stream } = &self.columns;
        let pages = shape.pages;
        let indexed: Vec<_> =
            (1..).map(|key: u32| key as f32).zip(rid_of.iter().copied()).collect();
        let tree = T::load(&indexed, pages)?;
        let key = |rid: u32| outer_keys[rid as usize] as f32;
        let (rids, clustered) = if shape.probes.are_clustered() {
            (&[][..], &stream[..])
        } else {
            (&stream[..], &[][..])
        };
        let mut pairs = PageBuffer::zeroed(clustered.len(), pages).map_err(EngineError::failed)?;
        for (pair, &rid) in pairs.iter_mut().zip(clustered) {
            *pair = (key(rid), rid);
        }
        let dereferenced = if shape.probes.are_clustered() { 0 } else { outer_keys.len() };
        let mut records = PageBuffer::zeroed(dereferenced, pages).map_err(EngineError::failed)?;
        for (record, rid) in records.iter_mut().zip(0..) {
            *record = KeyedRecord { key: key(rid), payload: [rid; 15] };
        }
        let rids = PageBuffer::copied(rids, pages).map_err(EngineError::failed)?;
        Ok(Sides { tree, pairs, records, rids, row_stage: shape.probes.have_a_stage() })
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

    fn table_bytes(sides: &Sides<T>) -> usize {
        sides.tree.bytes()
    }

    fn touches(&self, sides: &Sides<T>, _: f64) -> Vec<Touch> {
        let mut touches = sides.tree.touches();
        if !self.columns.shape.probes.are_clustered() {
            touches.push(Touch::random(sides.records.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.columns.shape.pages
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides<T>],
        outputs: &mut [PageBuffer<[u32; 2]>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        T::join(copies, self.columns.shape.probes.are_clustered(), outputs, &task)
    }
}
