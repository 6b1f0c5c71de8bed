//! Matches as columns: key, probe value, build value.

use crate::walk::{Row, Sink};

/// Columns of `ROWS` joined rows, of which the first `len` are filled.
///
/// One batch is filled, consumed and filled again, so that its lines never leave the cache:
/// columns written once over all of memory would cost as much as a third of the probe.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Batch<const ROWS: usize> {
    keys: [u64; ROWS],
    probe_values: [u64; ROWS],
    build_values: [u64; ROWS],
}

/// A sink that writes batches.
///
/// The drive pauses when the batch has no room for a round of `slack` hits more; the caller takes
/// the [columns](Output::columns), [clears](Output::clear), and drives again.
pub struct Output<'a, const ROWS: usize> {
    batch: Box<Batch<ROWS>>,
    probe_keys: &'a [u64],
    probe_values: &'a [u64],
    written: usize,
    full_at: usize,
}

impl<'a, const ROWS: usize> Output<'a, ROWS> {
    /// An empty batch for probe rows with these keys and values. `slack` is the width of the
    /// schedule, by which it may overshoot; 1 for the schedules that keep row order.
    ///
    /// # Panics
    /// Unless `1 <= slack <= ROWS`.
    #[must_use]
    pub fn new(probe_keys: &'a [u64], probe_values: &'a [u64], slack: usize) -> Self {
        assert!((1..=ROWS).contains(&slack), "a batch of {ROWS} rows has no slack of {slack}");
        let batch =
            Box::new(Batch { keys: [0; ROWS], probe_values: [0; ROWS], build_values: [0; ROWS] });
        Self { batch, probe_keys, probe_values, written: 0, full_at: ROWS - slack + 1 }
    }

    /// Joined rows in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.written
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Keys, probe values and build values of the joined rows.
    #[must_use]
    pub fn columns(&self) -> [&[u64]; 3] {
        let Batch { keys, probe_values, build_values } = &*self.batch;
        [keys, probe_values, build_values].map(|column| &column[..self.written])
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        self.written = 0;
    }
}

impl<const ROWS: usize> Sink<u64> for Output<'_, ROWS> {
    #[inline(always)]
    fn emit(&mut self, row: Row, build_value: u64) {
        let at = self.written;
        assert!(at < ROWS, "the slack of a sink is the width of its schedule");
        self.batch.keys[at] = self.probe_keys[row as usize];
        self.batch.probe_values[at] = self.probe_values[row as usize];
        self.batch.build_values[at] = build_value;
        self.written = at + 1;
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.written >= self.full_at
    }
}
