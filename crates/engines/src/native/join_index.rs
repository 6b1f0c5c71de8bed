//! Join index: pairs of row ids, both rows fetched, one row of 128 bytes written (Zhou et al.,
//! appendix A.1), inner and left outer.

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_operators::apart::Apart;
use workahead_operators::draws::Draws;
use workahead_operators::isa::Portable;
use workahead_operators::join_index::{Draft, Inner, JoinIndex, LeftOuter, NULL, Order, Pairs};
use workahead_operators::materialise::Materialise;
use workahead_operators::record::{Joined, Record};
use workahead_study::engine::{Answer, EngineError};

use super::crew::{Ran, failed};
use super::given::Given;
use super::hash_join::records;
use super::how::References;
use super::operator::{Data, Made, Operator, Task, Touch};
use super::oracle;
use super::size::{self, Footprint};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Of each table.
    rows: usize,
    pairs: usize,
    outer: bool,
    null_percent: u8,
    order: Order,
    pages: Pages,
    seed: u64,
}

/// Bytes that the pairs touch at random, per row of both tables, and of the output.
const ROW_BYTES: usize = 64 + 64 + 64;

impl Shape {
    pub(super) fn read(given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        let rows = size::rows(given, footprint, ROW_BYTES)?;
        let outer = given.choice("join", false, &[("inner", false), ("left-outer", true)])?;
        let nulls = if outer { given.number("null_percent", 20, 0..=100)? } else { 0 };
        Ok(Self {
            rows,
            pairs: size::probe_rows(given, rows / 2)?,
            outer,
            null_percent: nulls as u8,
            order: if size::clustered(given)? { Order::Left } else { Order::Random },
            pages: size::pages(given)?,
            seed: given.seed(),
        })
    }

    /// Rows of an output. As in the paper it is the whole result where the tables are large, and
    /// is gone through as often as the tables where they are small.
    fn output_rows(&self) -> usize {
        self.pairs.min(self.rows.max(1024))
    }

    /// Memory at the peak.
    pub(super) fn bytes(&self, copies: usize, outputs: usize) -> u64 {
        let (tables, output) = (self.rows * 128, self.output_rows() * 128);
        (tables * copies + output * outputs + self.pairs * 8) as u64
    }

    pub(super) fn make(&self) -> Result<Box<dyn Operator>, EngineError> {
        let rows = self.rows as u32;
        let draft = Draft {
            pairs: self.pairs,
            left_rows: rows,
            right_rows: rows,
            null_percent: self.null_percent,
            order: self.order,
        };
        let pairs = draft.draw(&mut Draws::of(self.seed), self.pages).map_err(failed)?;
        Ok(Box::new(Made::of(Index { shape: *self, pairs })))
    }
}

/// What the copies are made of.
struct Index {
    shape: Shape,
    pairs: Pairs,
}

/// One copy. The pairs are read in order, and by all.
struct Sides {
    left: PageBuffer<Record>,
    right: PageBuffer<Record>,
}

impl Data for Index {
    type Copy = Sides;
    type Out = Joined;

    fn copy(&self) -> Result<Sides, EngineError> {
        let keys: Vec<u32> = (0..self.shape.rows as u32).collect();
        let pages = self.shape.pages;
        Ok(Sides { left: records(&keys, pages)?, right: records(&keys, pages)? })
    }

    fn probes(&self) -> usize {
        self.shape.pairs
    }

    fn answer(&self, rows: usize) -> Answer {
        let mut answer = Answer::default();
        for &[left, right] in &self.pairs.all()[..rows] {
            oracle::add(&mut answer, oracle::one(left, right));
        }
        answer
    }

    fn table_bytes(sides: &Sides) -> usize {
        sides.left.bytes() + sides.right.bytes()
    }

    fn touches(&self, sides: &Sides, _: f64) -> Vec<Touch> {
        let matched = self.pairs.all().iter().filter(|pair| pair[1] != NULL).count();
        let matched = matched as f64 / self.probes() as f64;
        let mut touches = vec![Touch::random(sides.right.bytes(), matched)];
        if self.shape.order == Order::Random {
            touches.push(Touch::random(sides.left.bytes(), 1.0));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn output_rows(&self) -> usize {
        self.shape.output_rows()
    }

    fn run(
        &self,
        copies: &[Sides],
        outputs: &mut [PageBuffer<Joined>],
        task: Task<'_>,
    ) -> Result<Ran, EngineError> {
        let walk_of = |thread: usize, output| {
            let Sides { left, right } = &copies[thread % copies.len()];
            (&self.pairs, left, right, output)
        };
        macro_rules! run {
            ($variant:ty, $wrapped:path) => {
                task.run_into(Portable, outputs, |thread, output| {
                    let (sink, destination) = Materialise::announced(output);
                    let (pairs, left, right, destination) = walk_of(thread, destination);
                    ($wrapped(JoinIndex::<$variant>::new(pairs, left, right, destination)), sink)
                })
            };
        }
        match (self.shape.outer, task.how.references) {
            (false, References::Together) => run!(Inner, std::convert::identity),
            (true, References::Together) => run!(LeftOuter, std::convert::identity),
            (false, References::Apart) => run!(Inner, Apart),
            (true, References::Apart) => Err(failed(
                "setting `references`: only the inner join is run with its references apart",
            )),
        }
    }
}
