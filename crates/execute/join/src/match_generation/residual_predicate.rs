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
        candidates: &mut Matches,
    ) -> Result<(), JoinError> {
        if let Some(store) = &table.data.store
            && table.data.collides
        {
            let mut kept = 0;
            for at in 0..candidates.len() {
                let (key, row) = (candidates.probe[at], candidates.build[at]);
                if store.equals(row, &self.keys.full_keys, key as usize) {
                    (candidates.probe[kept], candidates.build[kept]) = (self.keys.row(key), row);
                    kept += 1;
                }
            }
            candidates.probe.truncate(kept);
            candidates.build.truncate(kept);
        }
        if let (Some(filter), Some(batch)) = (&table.spec.filter, &self.batch)
            && candidates.len() > 0
        {
            let accepted = gather::evaluate_filter(table, filter, batch, candidates)?;
            if accepted.null_count() > 0 {
                candidates.retain(|at| accepted.is_valid(at) && accepted.value(at));
            } else {
                candidates.retain(|at| accepted.value(at));
            }
        }
        candidates.probe.iter().for_each(|row| self.matched.set(*row as usize));
        if let Some(bitmap) = &table.match_bitmap {
            candidates.build.iter().for_each(|row| bitmap.set(*row as usize));
        }
        Ok(())
    }
}
