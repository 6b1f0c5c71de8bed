//! The index itself: pairs of row ids, drawn at random or found by joining two tables.

use workahead_machine::pages::{AllocationError, PageBuffer, Pages};

use crate::chained::{Chains, HashJoin};
use crate::memory::{Prefetching, ToL1};
use crate::random::Random;
use crate::record::{Clustered, Record};
use crate::schedule::{Distance, Schedule};
use crate::walk::{Row, Rows, Sink};

/// The right row of a pair that has none.
pub const NULL: u32 = u32::MAX;

/// Rows ahead while two tables are joined: one hop of the chain, and row order, is all that asks.
const ROWS_AHEAD: usize = 32;

/// A join index: pairs (left row, right row or [`NULL`]).
pub struct Pairs {
    pairs: PageBuffer<[u32; 2]>,
    nulls: usize,
}

/// The order of drawn pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Both tables are visited in random order: the paper's.
    Random,
    /// By left row: only the right table is visited in random order.
    Left,
}

/// The treatment of left rows without a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmatchedRows {
    /// They have no pair.
    Dropped,
    /// They have a pair without a right row.
    Kept,
}

/// A join index to be drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft {
    /// Pairs.
    pub pairs: usize,
    /// Rows of the left table.
    pub left_rows: u32,
    /// Rows of the right table.
    pub right_rows: u32,
    /// Share of pairs without a right row; their number is exact, their positions are random.
    pub null_percent: u8,
    /// Their order.
    pub order: Order,
}

impl Draft {
    /// The paper's: a million random pairs over two tables of two million rows (A.1).
    pub const PAPER: Self = Self {
        pairs: 1_000_000,
        left_rows: 2_000_000,
        right_rows: 2_000_000,
        null_percent: 0,
        order: Order::Random,
    };

    /// The paper's left outer join: a fifth of the pairs has no right row.
    pub const PAPER_OUTER: Self = Self { null_percent: 20, ..Self::PAPER };

    /// Random the pairs.
    ///
    /// # Errors
    /// When memory for them cannot be allocated.
    ///
    /// # Panics
    /// If a table has no rows, or more than 100 percent are to be null.
    pub fn draw(&self, random: &mut Random, pages: Pages) -> Result<Pairs, AllocationError> {
        let Self { pairs: count, left_rows, right_rows, null_percent, order } = *self;
        assert!(null_percent <= 100, "{null_percent} % of the pairs cannot be null");
        let nulls = count * usize::from(null_percent) / 100;
        let mut pairs = PageBuffer::<[u32; 2]>::zeroed(count, pages)?;
        let mut nulls_left = nulls;
        for (at, pair) in pairs.iter_mut().enumerate() {
            // Selection sampling (Knuth, TAOCP 2, §3.4.2): the number of nulls comes out exact.
            let is_null = random.number() % ((count - at) as u64) < nulls_left as u64;
            nulls_left -= usize::from(is_null);
            let left = random.below(left_rows);
            *pair = [left, if is_null { NULL } else { random.below(right_rows) }];
        }
        match order {
            Order::Random => {}
            // In place: a stable sort takes half as much memory again.
            Order::Left => pairs.sort_unstable(),
        }
        Ok(Pairs { pairs, nulls })
    }
}

impl Pairs {
    /// The pairs of rows with equal keys, by left row. They are counted, then written: joining
    /// twice takes no memory, collecting pairs of unknown number takes their own twice over.
    ///
    /// # Errors
    /// When memory for them, or for the hash table that finds them, cannot be allocated.
    pub fn of_tables(
        left: &[Record],
        right: &[Record],
        unmatched: UnmatchedRows,
        pages: Pages,
    ) -> Result<Self, AllocationError> {
        let chains = Chains::build(right.iter().map(|record| record.key), pages)?;
        let join = HashJoin::new(&chains, right, Clustered(left));
        let end = left.len() as Row;
        let (mut count, mut nulls) = (0, 0);
        PairFinder::drive((join, end), unmatched, |[_, right]| {
            count += 1;
            nulls += usize::from(right == NULL);
        });
        let mut pairs = PageBuffer::zeroed(count, pages)?;
        let mut slots = pairs.iter_mut();
        PairFinder::drive((join, end), unmatched, |pair| {
            *slots.next().expect("all were counted") = pair
        });
        Ok(Self { pairs, nulls })
    }

    /// Number of pairs: the rows of the join's output.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Pairs without a right row.
    #[must_use]
    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    /// Bytes of the pairs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pairs.bytes()
    }
}

/// Pairs as a join in row order finds them.
struct PairFinder<F> {
    put: F,
    /// First left row that has not been seen.
    next: Row,
    unmatched: UnmatchedRows,
}

impl<F: FnMut([u32; 2])> PairFinder<F> {
    /// Puts every pair that the join of the rows up to `end` gives, by left row.
    fn drive<'a>(
        (mut join, end): (HashJoin<'a, Clustered<'a>>, Row),
        unmatched: UnmatchedRows,
        put: F,
    ) {
        let mut found = Self { put, next: 0, unmatched };
        let memory = &mut Prefetching::<ToL1>::default();
        let mut rows = Rows::range(0..end);
        Distance::new(ROWS_AHEAD).drive(&mut join, &mut rows, memory, &mut found);
        found.pass_over(end);
    }

    /// Takes note of left rows that had no hit, up to `row`.
    fn pass_over(&mut self, row: Row) {
        if self.unmatched == UnmatchedRows::Kept {
            (self.next..row).for_each(|left| (self.put)([left, NULL]));
        }
    }
}

impl<F: FnMut([u32; 2])> Sink<(&Record, &Record)> for PairFinder<F> {
    fn emit(&mut self, row: Row, (_, right): (&Record, &Record)) {
        self.pass_over(row);
        (self.put)([row, right.row]);
        self.next = row + 1;
    }
}
