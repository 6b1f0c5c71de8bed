//! Index nested-loop join through a CSB+-tree: 32-bit floating-point keys, 32-bit offsets (Zhou et
//! al., §5.1, §6.1).

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_operators::isa::{Avx2, Portable};
use workahead_operators::tree::{
    Binary, Clustered, Fill, Keyed, Lookup, Node, Node64, Node128, Search, Tree, Unclustered,
    Vector,
};
use workahead_study::engine::{Answer, EngineError};
use workahead_workloads::keys;

use super::crew::{Crew, Ran, failed};
use super::given::Given;
use super::how::How;
use super::operator::{Operator, Touch, streams};
use super::oracle;
use super::size::{self, Footprint};

/// Keys that are different whole numbers in 32 bits of floating point.
const KEYS_MAX: usize = 1 << f32::MANTISSA_DIGITS;

/// Bytes that the probes touch at random, per key: the outer record, and its share of the nodes.
const KEY_BYTES: usize = 64 + 13;

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
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

/// How a lookup goes down: not part of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Descent {
    simd: bool,
    /// Bytes of upper levels walked at once.
    at_once_bytes: usize,
}

impl Descent {
    /// Reads `search` and `upper_levels`. The paper takes a step at every level and searches a node
    /// key by key.
    pub(super) fn read(given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        let at_once = [("stepwise", 0), ("at-once", footprint.l2_bytes / 2)];
        Ok(Self {
            simd: given.choice("search", false, &[("scalar", false), ("simd", true)])?,
            at_once_bytes: given.choice("upper_levels", 0, &at_once)?,
        })
    }
}

impl Shape {
    pub(super) fn read(given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        let rows = size::rows(given, footprint, KEY_BYTES)?;
        if rows > KEYS_MAX {
            return Err(EngineError::Failed(format!(
                "setting `rows`: {rows} keys cannot be told apart in 32 bits of floating point: \
                 use at most {KEYS_MAX}"
            )));
        }
        Ok(Self {
            rows,
            probe_rows: size::probe_rows(given, rows)?,
            clustered: size::clustered(given)?,
            pages: size::pages(given)?,
            node: given.choice(
                "node_bytes",
                NodeSize::B128,
                &[("128", NodeSize::B128), ("64", NodeSize::B64)],
            )?,
            seed: given.seed(),
        })
    }

    pub(super) fn bytes(&self, copies: usize) -> u64 {
        let stream = if self.clustered { self.probe_rows * 8 } else { self.probe_rows * 4 };
        let outer = if self.clustered { 0 } else { self.rows * 64 };
        let tree = self.rows * 13;
        let shared = self.rows * 16 + self.probe_rows * 4;
        ((stream + outer + tree) * copies + shared) as u64
    }

    pub(super) fn make(&self) -> Result<Box<dyn Operator>, EngineError> {
        Ok(match self.node {
            NodeSize::B64 => Box::new(Made::<Node64>::of(self)?),
            NodeSize::B128 => Box::new(Made::<Node128>::of(self)?),
        })
    }
}

/// The data in place.
pub(super) struct Made<N> {
    shape: Shape,
    /// The (key, RID) pairs of the index, keys 1, 2, …
    pairs: Vec<(f32, u32)>,
    /// The key of each outer record.
    outer_keys: Vec<u32>,
    stream: Vec<u32>,
    copies: Vec<Sides<N>>,
    outputs: Vec<PageBuffer<[u32; 2]>>,
    expected: Answer,
}

/// One copy: what a thread of the independent kind has for itself.
struct Sides<N> {
    tree: Tree<N>,
    /// Clustered probes.
    pairs: Vec<(f32, u32)>,
    /// Unclustered probes.
    records: PageBuffer<Keyed>,
    rids: PageBuffer<u32>,
}

impl<N: Node> Sides<N> {
    fn of(made: &Made<N>) -> Result<Self, EngineError> {
        let pages = made.shape.pages;
        let tree = Tree::bulk_load(&made.pairs, Fill::PAPER, pages).map_err(failed)?;
        let key = |rid: u32| made.outer_keys[rid as usize] as f32;
        let (mut pairs, mut rids) = (Vec::new(), &made.stream[..]);
        let mut records = PageBuffer::zeroed(0, pages).map_err(failed)?;
        if made.shape.clustered {
            pairs = made.stream.iter().map(|&rid| (key(rid), rid)).collect();
            rids = &[];
        } else {
            records = PageBuffer::zeroed(made.outer_keys.len(), pages).map_err(failed)?;
            for (record, rid) in records.iter_mut().zip(0..) {
                *record = Keyed { key: key(rid), payload: [rid; 15] };
            }
        }
        let rids = PageBuffer::copied(rids, pages).map_err(failed)?;
        Ok(Self { tree, pairs, records, rids })
    }
}

impl<N: Node> Made<N> {
    fn of(shape: &Shape) -> Result<Self, EngineError> {
        let rows = shape.rows as u32;
        let rid_of = keys::permutation(rows, shape.seed);
        let pairs: Vec<_> = (1..=rows).map(|key| (key as f32, rid_of[key as usize - 1])).collect();
        let seed = shape.seed.wrapping_add(1);
        let outer_keys: Vec<u32> =
            keys::uniform(shape.rows, shape.rows as u64, seed).map_err(failed)?;
        let stream = streams::rids(shape.rows, shape.probe_rows, shape.clustered, shape.seed);
        // Every key is there once, so the match of an outer record is known without a search.
        let mut expected = Answer::default();
        for &rid in &stream {
            let inner = rid_of[outer_keys[rid as usize] as usize - 1];
            oracle::add(&mut expected, oracle::one(rid, inner));
        }
        let (copies, outputs) = (Vec::new(), Vec::new());
        let mut made = Self { shape: *shape, pairs, outer_keys, stream, copies, outputs, expected };
        made.prepare(1, 1)?;
        Ok(made)
    }

    fn run_by<S, I>(
        &mut self,
        (isa, search): (I, S),
        how: &How,
        crew: &Crew,
    ) -> Result<Ran, EngineError>
    where
        S: Search,
        I: workahead_operators::isa::Isa,
    {
        let Self { shape, copies, outputs, .. } = self;
        let (rows, at_once) = (shape.probe_rows, how.descent.at_once_bytes);
        let copies = &copies[..];
        let copy = |thread: usize| &copies[thread % copies.len()];
        if shape.clustered {
            crew.run(isa, how, rows, outputs, |thread| {
                let sides = copy(thread);
                let lookup = Lookup::new(&sides.tree, Clustered(&sides.pairs), search);
                lookup.upper_levels_within(at_once)
            })
        } else {
            crew.run(isa, how, rows, outputs, |thread| {
                let sides = copy(thread);
                let outer = Unclustered { rids: &sides.rids, records: &sides.records };
                Lookup::new(&sides.tree, outer, search).upper_levels_within(at_once)
            })
        }
    }
}

impl<N: Node> Operator for Made<N> {
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
        self.copies[0].tree.bytes()
    }

    fn touches(&self) -> Vec<Touch> {
        let sides = &self.copies[0];
        // A level is a structure of its own: the upper ones are small and stay near.
        let levels = sides.tree.levels().iter();
        let mut touches: Vec<_> = levels
            .map(|level| Touch::random(level.nodes * N::BYTES, (N::BYTES / 64) as f64))
            .collect();
        if !self.shape.clustered {
            touches.push(Touch::random(sides.records.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run(&mut self, how: &How, crew: &Crew) -> Result<Ran, EngineError> {
        match (how.descent.simd, Avx2::detect()) {
            (false, _) => self.run_by((Portable, Binary), how, crew),
            (true, Some(isa)) => self.run_by((isa, Vector(isa)), how, crew),
            (true, None) => self.run_by((Portable, Vector(Portable)), how, crew),
        }
    }
}
