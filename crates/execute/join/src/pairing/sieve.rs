//! From pairs to those that match.

use arrow_array::Array;

use super::{Pairing, Pairs};
use crate::resident::Resident;
use crate::{JoinError, gather};

impl Pairing {
    /// Drops pairs that do not match, and notes the rows that do.
    pub(super) fn sieve(&mut self, table: &Resident, found: &mut Pairs) -> Result<(), JoinError> {
        if let Some(store) = &table.inside.store
            && table.inside.collides
        {
            let mut kept = 0;
            for at in 0..found.len() {
                let (word, row) = (found.probe[at], found.build[at]);
                if store.equals(row, &self.keys.parts, word as usize) {
                    (found.probe[kept], found.build[kept]) = (self.keys.row(word), row);
                    kept += 1;
                }
            }
            found.probe.truncate(kept);
            found.build.truncate(kept);
        }
        if let (Some(filter), Some(batch)) = (&table.spec.filter, &self.batch)
            && found.len() > 0
        {
            let wanted = gather::wanted(table, filter, batch, found)?;
            if wanted.null_count() > 0 {
                found.retain(|at| wanted.is_valid(at) && wanted.value(at));
            } else {
                found.retain(|at| wanted.value(at));
            }
        }
        found.probe.iter().for_each(|row| self.matched.set(*row as usize));
        if let Some(flags) = &table.flags {
            found.build.iter().for_each(|row| flags.set(*row as usize));
        }
        Ok(())
    }
}
