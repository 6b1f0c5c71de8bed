//! The resident build rows that come out alone, once the probe side is known whole.

use std::sync::Arc;

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use crate::JoinError;
use crate::flags::OwnFlags;
use crate::gather;
use crate::groups::group;
use crate::join_type::Alone;
use crate::resident::Resident;

/// Build rows without a match, or with one, by the type of the join.
pub(crate) struct Leftover {
    table: Arc<Resident>,
    matched: OwnFlags,
    /// The next build row, and the one behind the last.
    next: usize,
    rows: usize,
}

impl Leftover {
    /// Once every prober has ended.
    pub(crate) fn new(table: Arc<Resident>) -> Self {
        let mut matched = OwnFlags::default();
        matched.reset(table.rows.all());
        spread(&table, &mut matched);
        let rows = unless_unknown(&table);
        Self { table, matched, next: 0, rows }
    }

    /// The next output batch, `None` when there are no more.
    pub(crate) fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let mut rows = Vec::new();
        while self.next < self.rows && rows.len() < self.table.spec.batch_rows {
            if self.comes_out(self.next) {
                rows.push(self.next as Row);
            }
            self.next += 1;
        }
        if rows.is_empty() {
            return Ok(None);
        }
        gather::alone(&self.table, rows, |row| self.matched.get(row as usize)).map(Some)
    }

    /// How many rows are left, without making them.
    pub(crate) fn count(self) -> u64 {
        (self.next..self.rows).filter(|row| self.comes_out(*row)).count() as u64
    }

    fn comes_out(&self, row: usize) -> bool {
        match self.table.emits.build {
            Alone::Never | Alone::Noted => false,
            Alone::Matched => self.matched.get(row),
            Alone::Unmatched => !self.matched.get(row),
            Alone::Marked => true,
        }
    }
}

/// The flags of rows: where one stands for a key, it is that of all rows of the key.
fn spread(table: &Resident, matched: &mut OwnFlags) {
    let Some(flags) = &table.flags else { return };
    if table.sieves() {
        (0..table.rows.keyed).filter(|row| flags.get(*row)).for_each(|row| matched.set(row));
        return;
    }
    for value in table.inside.table.values().filter(|value| flags.get(table.bit(*value))) {
        match group(value) {
            (_, None) => matched.set(value as Row as usize),
            (rows, Some(start)) => {
                let rows = &table.inside.groups[start..start + rows as usize];
                rows.iter().for_each(|row| matched.set(*row as usize));
            }
        }
    }
}

/// How many of the build rows may come out: of a null-aware join none if a probe key was null, and
/// those with a null key, which are last, only if there was no probe row at all.
fn unless_unknown(table: &Resident) -> usize {
    let rows = table.rows;
    match table.facts.probed() {
        _ if !table.spec.null_aware => rows.all(),
        (_, true) => 0,
        (true, false) => rows.keyed + rows.impossible,
        (false, false) => rows.all(),
    }
}
