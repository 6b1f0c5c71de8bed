//! Join index: pairs of row ids, both rows fetched, one row of 128 bytes written (Zhou et al.,
//! appendix A.1), inner and left outer; or rows of another size (there: "similar").

use std::marker::PhantomData;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::Portable;
use workahead_walks::join_index::{Draft, Inner, JoinIndex, LeftOuter, NULL, Order, Pairs};
use workahead_walks::materialise::Materialise;
use workahead_walks::random::Random;
use workahead_walks::record::{JoinedRecord, OneLine, Payload, Record};
use workahead_walks::split_references::SplitReferences;

use crate::execution::References;
use crate::hash_join::records;
use crate::operator::{Data, Operator, Platform, PreparedOperator, Task, Touch};
use crate::oracle;
use crate::record_bytes::RecordBytes;
use crate::run::RunResult;
use crate::size::{self, Footprint, Probes};

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Rows of each table.
    rows: usize,
    pairs: usize,
    outer: bool,
    null_percent: u8,
    order: Order,
    record_bytes: RecordBytes,
    pages: Pages,
    seed: u64,
}

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let record_bytes = RecordBytes::read(config)?;
        // Accessed at random: both tables, and half as many rows of output.
        let rows = size::rows(config, footprint, 3 * record_bytes.bytes())?;
        let outer = config.choice("join", false, &[("inner", false), ("left-outer", true)])?;
        let nulls = if outer { config.number("null_percent", 20, 0..=100)? } else { 0 };
        Ok(Self {
            rows,
            pairs: size::probe_rows(config, rows / 2)?,
            outer,
            null_percent: nulls as u8,
            // Both records of a pair are announced in any case.
            order: match size::probes(config)? {
                Probes::Clustered => Order::Left,
                Probes::Unclustered | Probes::Announced => Order::Random,
            },
            record_bytes,
            pages: size::pages(config)?,
            seed: config.seed(),
        })
    }

    /// Rows of an output. As in the paper it is the whole result if the tables are large, and is
    /// reused as often as the tables if they are small.
    fn output_rows(&self) -> usize {
        self.pairs.min(self.rows.max(1024))
    }

    /// Peak memory.
    pub(crate) fn bytes(&self, copies: usize, outputs: usize) -> u64 {
        let two = 2 * self.record_bytes.bytes();
        let (tables, output) = (self.rows * two, self.output_rows() * two);
        (tables * copies + output * outputs + self.pairs * 8) as u64
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let rows = self.rows as u32;
        let draft = Draft {
            pairs: self.pairs,
            left_rows: rows,
            right_rows: rows,
            null_percent: self.null_percent,
            order: self.order,
        };
        let pairs =
            draft.draw(&mut Random::of(self.seed), self.pages).map_err(EngineError::failed)?;
        Ok(match self.record_bytes {
            RecordBytes::B32 => Index::<[u32; 6]>::new_operator(*self, pairs),
            RecordBytes::B64 => Index::<OneLine>::new_operator(*self, pairs),
            RecordBytes::B128 => Index::<[u32; 30]>::new_operator(*self, pairs),
            RecordBytes::B256 => Index::<[u32; 62]>::new_operator(*self, pairs),
        })
    }
}

/// The data from which copies of records with payload `P` are made.
struct Index<P> {
    shape: Shape,
    pairs: Pairs,
    _records: PhantomData<P>,
}

impl<P: Payload> Index<P> {
    fn new_operator<M: Platform>(shape: Shape, pairs: Pairs) -> Box<dyn Operator<M>> {
        Box::new(PreparedOperator::of(Self { shape, pairs, _records: PhantomData }))
    }
}

/// One copy of the tables. The pairs are read in order by all threads.
struct Sides<P: Payload> {
    left: PageBuffer<Record<P>>,
    right: PageBuffer<Record<P>>,
}

impl<P: Payload> Data for Index<P> {
    type Copy = Sides<P>;
    type Out = JoinedRecord<P>;

    fn copy(&self) -> Result<Sides<P>, EngineError> {
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

    fn table_bytes(sides: &Sides<P>) -> usize {
        sides.left.bytes() + sides.right.bytes()
    }

    fn touches(&self, sides: &Sides<P>, _: f64) -> Vec<Touch> {
        let matched = self.pairs.all().iter().filter(|pair| pair[1] != NULL).count();
        let matched = matched as f64 / self.probes() as f64;
        let lines = P::RECORD_LINES as f64;
        let mut touches = vec![Touch::random(sides.right.bytes(), matched * lines)];
        if self.shape.order == Order::Random {
            touches.push(Touch::random(sides.left.bytes(), lines));
        }
        touches
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn output_rows(&self) -> usize {
        self.shape.output_rows()
    }

    fn run<M: Platform>(
        &self,
        copies: &[Sides<P>],
        outputs: &mut [PageBuffer<JoinedRecord<P>>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError> {
        let walk_of = |thread: usize, output| {
            let Sides { left, right } = &copies[thread % copies.len()];
            (&self.pairs, left, right, output)
        };
        macro_rules! run {
            ($variant:ty, $wrapped:path) => {
                M::run(&task, Portable, outputs, |thread, output| {
                    let (sink, destination) = Materialise::announced(output);
                    let (pairs, left, right, destination) = walk_of(thread, destination);
                    ($wrapped(JoinIndex::<$variant, P>::new(pairs, left, right, destination)), sink)
                })
            };
        }
        match (self.shape.outer, task.execution.references) {
            (false, References::Together) => run!(Inner, std::convert::identity),
            (true, References::Together) => run!(LeftOuter, std::convert::identity),
            (false, References::Split) => {
                if const { P::RECORD_BYTES != OneLine::RECORD_BYTES } {
                    return Err(EngineError::setting(
                        "record_bytes",
                        "references can be split for 64 bytes only",
                    ));
                }
                run!(Inner, SplitReferences)
            }
            (true, References::Split) => Err(EngineError::setting(
                "references",
                "references can be split for the inner join only",
            )),
        }
    }
}
