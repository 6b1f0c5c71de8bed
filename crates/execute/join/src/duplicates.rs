//! Duplicate lists: the build rows of each repeated key, side by side.
//!
//! ```text
//! table entry   [ rows : 32 | first : 32 ]     rows 0:  the only build row is `first`
//!                                              else:    list[first .. first + rows]
//! lists         …│ 3 │ 17 │ 90 │ 4 │ 5 │…      build rows of one key, ascending, side by side
//! ```
//!
//! Every key is stored once and its rows are contiguous: a hot key neither crowds the table nor
//! lengthens its neighbours' probe sequences, a key with one row (in most joins, every key) costs
//! no second miss, and the rows of a key are read at memory bandwidth. An entry for every row would
//! save one pass of the build, but an n:m join reads each key's rows many times. (Contiguous
//! duplicates: Birler, Schmidt, Fent, Neumann, *Simple, Efficient, and Robust Hash Tables for Join
//! Processing*, DaMoN 2024.)

use workahead_machine::pages::{PageBuffer, Supply};
use workahead_walks::bucket::Group;
use workahead_walks::walk::{Row, Sink};

use crate::hash_table::HashTable;
use crate::keys::store::KeyStore;
use crate::{JoinError, StopCheck};

/// Flags, in [`Repeats::first`], a row whose key occurred before.
const REPEAT: u32 = 1 << 31;

/// Prefetch distance, in rows, for the key of a first row.
const KEYS_AHEAD: usize = 16;

/// The rows whose key occurred before.
pub(crate) struct Repeats {
    rows: usize,
    /// For such a row, [`REPEAT`] and the first row with its key. For a first row, later, the
    /// position of the next row in its list. Empty until a key repeats.
    first: Vec<u32>,
    count: usize,
    /// Nothing is kept of them.
    ignored: bool,
}

impl Sink<Row> for Repeats {
    #[inline(always)]
    fn emit(&mut self, row: Row, first: Row) {
        if self.ignored {
            return;
        }
        if self.first.is_empty() {
            self.first = vec![0; self.rows];
        }
        self.first[row as usize] = REPEAT | first;
        self.count += 1;
    }
}

impl Repeats {
    /// Empty, for a given number of rows.
    pub(crate) fn of(rows: usize) -> Self {
        Self { rows, first: Vec::new(), count: 0, ignored: false }
    }

    /// The same, for a join that only asks whether a key is there.
    pub(crate) fn ignored_if(self, ignored: bool) -> Self {
        Self { ignored, ..self }
    }

    /// Whether a row's key differs from that of its list's first row: their hashes are equal.
    pub(crate) fn collide(
        &self,
        keys: Option<&KeyStore>,
        stop: &StopCheck,
    ) -> Result<bool, JoinError> {
        let Some(keys) = keys else { return Ok(false) };
        let first_of = |mark: u32| (mark & REPEAT != 0).then_some(mark & !REPEAT);
        let mut collide = false;
        stop.parts(0..self.first.len(), |mut rows| {
            collide = collide
                || rows.any(|row| {
                    let ahead = self.first.get(row + KEYS_AHEAD).copied().and_then(first_of);
                    if let Some(ahead) = ahead {
                        keys.prefetch(ahead);
                    }
                    let first = first_of(self.first[row]);
                    first.is_some_and(|first| !keys.equal(first, row as Row))
                });
            Ok(())
        })?;
        Ok(collide)
    }

    /// Lays out the duplicate lists in the order of the table and points the entries at them.
    pub(crate) fn lay_out(
        mut self,
        table: &mut HashTable,
        pages: &Supply,
        stop: &StopCheck,
    ) -> Result<PageBuffer<Row>, JoinError> {
        if self.count == 0 {
            return Ok(pages.zeroed(0)?);
        }
        let sizes = table.values().map(|value| match Group::of(value).further_rows() {
            0 => 0,
            further => further as usize + 1,
        });
        let mut duplicate_lists = pages.any::<Row>(sizes.sum())?;
        let mut start = 0;
        table.update_values(|value| {
            let group = Group::of(value);
            if group.further_rows() == 0 {
                return value;
            }
            let (first, rows) = (group.first_row(), group.further_rows() + 1);
            duplicate_lists[start as usize] = first;
            self.first[first as usize] = start + 1;
            start += rows;
            list_entry(rows, start - rows)
        });
        stop.parts(0..self.rows, |rows| {
            for row in rows {
                let mark = self.first[row];
                if mark & REPEAT != 0 {
                    let next = &mut self.first[(mark & !REPEAT) as usize];
                    duplicate_lists[*next as usize] = row as Row;
                    *next += 1;
                }
            }
            Ok(())
        })?;
        Ok(duplicate_lists)
    }
}

fn list_entry(rows: u32, start: u32) -> u64 {
    u64::from(rows) << 32 | u64::from(start)
}

/// The number of rows of an entry's key, and the start of its list unless the entry holds the only
/// row.
#[inline(always)]
pub(crate) fn duplicate_list(value: u64) -> (u32, Option<usize>) {
    match (value >> 32) as u32 {
        0 => (1, None),
        rows => (rows, Some(value as u32 as usize)),
    }
}
