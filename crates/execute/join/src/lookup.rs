//! A schedule over a batch's keys: the one place where a strategy becomes a type.

use workahead_walks::answers::{Answers, BLOCK};
use workahead_walks::bucket::{Compare, First, Probe, probe::Cursor};
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Direct, Prefetching, ToL1};
use workahead_walks::schedule::{Distance, Groups, InTurn, Lanes, Pause, Rounds, Schedule};
use workahead_walks::walk::{self, Row, Sink};
use workahead_walks::with_isa;

use crate::Strategy;
use crate::entries::Entries;

/// Rows announced ahead: beyond the misses any machine keeps in flight; prototypes found 24
/// to 48 alike.
const DISTANCE: usize = 32;
/// Rows in flight for AMAC: its optimum was 32 to 64 wherever measured.
const LANES: usize = 32;
/// Rows in lock step.
const GROUP: usize = 32;
/// A vector: long enough that its loop is worth starting, short enough for L1.
pub(crate) const VECTOR: usize = 1024;

/// Most hits a round adds to a sink that was not full: the widest schedule.
pub(crate) const OVERSHOOT: usize = VECTOR;

/// A batch's lookups, resumable.
pub(crate) struct Lookup {
    schedule: Scheduled,
    rows: walk::Rows,
}

enum Scheduled {
    Sequential(InTurn<Cursor>),
    Distance(Distance<Cursor>),
    Amac(Lanes<Cursor>),
    Groups(Groups<Cursor>),
    Rounds(Rounds<Cursor>),
    Vectors(Answers),
}

/// A found key: its place among the batch's keys, and the entry's value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) word: Row,
    pub(crate) value: u64,
}

/// Collects hits up to a number.
pub(crate) struct Hits {
    pub(crate) found: Vec<Hit>,
    full_at: usize,
}

impl Hits {
    pub(crate) fn up_to(full_at: usize) -> Self {
        Self { found: Vec::with_capacity(full_at + OVERSHOOT), full_at }
    }
}

impl Sink<u64> for Hits {
    #[inline(always)]
    fn emit(&mut self, word: Row, value: u64) {
        self.found.push(Hit { word, value });
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.found.len() >= self.full_at
    }
}

impl Lookup {
    /// Looks up the first `words` keys of a batch.
    pub(crate) fn new(strategy: Strategy, words: usize) -> Self {
        let schedule = match strategy {
            Strategy::Sequential => Scheduled::Sequential(InTurn::new()),
            // `choose` has replaced `Auto`; were it not, this would be right.
            Strategy::Distance | Strategy::Auto => Scheduled::Distance(Distance::new(DISTANCE)),
            Strategy::Amac => Scheduled::Amac(Lanes::new(LANES)),
            Strategy::Groups => Scheduled::Groups(Groups::new(GROUP)),
            Strategy::Rounds => Scheduled::Rounds(Rounds::new(VECTOR)),
            Strategy::Vectors => Scheduled::Vectors(Answers::default()),
        };
        Self { schedule, rows: walk::Rows::range(0..words as Row) }
    }

    /// The same for another batch, with the memory of this one where it has some.
    pub(crate) fn again(self, strategy: Strategy, words: usize) -> Self {
        match self.schedule {
            Scheduled::Vectors(_) if strategy == Strategy::Vectors => {
                Self { rows: walk::Rows::range(0..words as Row), ..self }
            }
            _ => Self::new(strategy, words),
        }
    }

    /// Looks up the next keys, at most so many, as a vector: the first one, and what became of
    /// each. `None` for the strategies that only know hits.
    pub(crate) fn vector(
        &mut self,
        table: &Entries,
        words: &[u64],
        most: usize,
    ) -> Option<(Row, &mut Answers)> {
        let Scheduled::Vectors(answers) = &mut self.schedule else { return None };
        let first = self.rows.ahead(0).unwrap_or(words.len() as Row);
        let count = most.min(words.len() - first as usize);
        self.rows.skip_rows(count as Row);
        table.look_up(&words[first as usize..][..count], answers);
        Some((first, answers))
    }

    /// Whether all keys were looked up, or have been begun.
    pub(crate) fn is_drained(&self) -> bool {
        self.rows.left() == 0
    }

    /// Goes on until the keys are finished or the sink is full.
    pub(crate) fn drive(&mut self, table: &Entries, words: &[u64], hits: &mut Hits) -> Pause {
        if let Some((first, answers)) = self.vector(table, words, VECTOR) {
            for (block, mut found) in answers.found().iter().copied().enumerate() {
                while found != 0 {
                    let at = block * BLOCK + found.trailing_zeros() as usize;
                    hits.emit(first + at as Row, answers.values()[at]);
                    found &= found - 1;
                }
            }
            return if self.is_drained() { Pause::Drained } else { Pause::Full };
        }
        let table = table.buckets().expect("other tables are looked up by vectors");
        with_isa!(Detected::best(), isa => {
            self.drive_probe(&mut Probe::<_, First>::new(table, isa, words), hits)
        })
    }

    #[inline(always)]
    fn drive_probe<I: Compare>(
        &mut self,
        probe: &mut Probe<'_, I, First>,
        hits: &mut Hits,
    ) -> Pause {
        let rows = &mut self.rows;
        let prefetching = &mut Prefetching::<ToL1>::default();
        match &mut self.schedule {
            Scheduled::Sequential(schedule) => schedule.drive(probe, rows, &mut Direct, hits),
            Scheduled::Distance(schedule) => schedule.drive(probe, rows, prefetching, hits),
            Scheduled::Amac(schedule) => schedule.drive(probe, rows, prefetching, hits),
            Scheduled::Groups(schedule) => schedule.drive(probe, rows, prefetching, hits),
            Scheduled::Rounds(schedule) => schedule.drive(probe, rows, prefetching, hits),
            Scheduled::Vectors(_) => unreachable!("vectors have no schedule"),
        }
    }
}
