//! Applies the residual predicate to candidate matches.

use arrow_array::Array;

use super::{MatchGenerator, Matches};
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::{JoinError, gather};

impl MatchGenerator {
    /// Drops candidates that don't match, and records the rows that do.
    pub(super) fn apply_residual_predicate(
        &mut self,
        table: &InMemoryBuildSide,
        found: &mut Matches,
    ) -> Result<(), JoinError> {
        if let Some(store) = &table.data.store
            && table.data.collides
        {
            let mut kept = 0;
            for at in 0..found.len() {
                let (word, row) = (found.probe[at], found.build[at]);
                if store.equals(row, &self.keys.full_keys, word as usize) {
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
        if let Some(flags) = &table.match_bitmap {
            found.build.iter().for_each(|row| flags.set(*row as usize));
        }
        Ok(())
    }
}
