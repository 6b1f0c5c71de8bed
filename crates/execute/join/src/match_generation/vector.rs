//! Generates matches directly from a selection vector.

use workahead_walks::selection::SelectionVector;
use workahead_walks::walk::Row;

use super::{MatchGenerator, Matches};
use crate::chunks::NO_ROW;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::keys::NormalizedKeys;
use crate::lookup::{Lookup, VECTOR};

/// Looks up the next keys, at most `most`: the position of the first one, and the selection vector.
fn vector<'l>(
    lookup: &'l mut Lookup,
    keys: &NormalizedKeys,
    table: &InMemoryBuildSide,
    most: usize,
) -> (Row, &'l mut SelectionVector) {
    let (first, selection) = lookup.vector(&table.data.hash_table, keys, most);
    if let Some(store) = &table.data.store {
        store.confirm(selection, &keys.full_keys, first as usize);
    }
    (first, selection)
}

impl MatchGenerator {
    /// Whether keys are compared hit by hit instead of by whole vectors: with the first row of a
    /// duplicate list; with long strings, whose bytes are a second line that is prefetched
    /// separately; and if few keys hit.
    fn compares_hits(&self, table: &InMemoryBuildSide) -> bool {
        let unique = table.data.duplicate_lists.is_empty();
        table.data.store.as_ref().is_some_and(|s| s.holds_long() || !unique || self.few_hit)
    }

    /// Records which of the next rows have a match, if nothing else is needed of the probe side.
    /// False if that isn't so.
    pub(super) fn match_vector(&mut self, table: &InMemoryBuildSide) -> bool {
        let only_matches = !table.output_rules.matches && table.match_bitmap.is_none();
        let by_hits = table.has_residual_predicate() || self.compares_hits(table);
        if by_hits || !only_matches || self.keys.rows().is_some() {
            return false;
        }
        let (first, selection) = vector(&mut self.lookup, &self.keys, table, VECTOR);
        self.metrics.matched_rows += selection.hits() as u64;
        self.matched.set_words(first as usize, selection.found());
        self.drained = self.lookup.is_drained();
        true
    }

    /// Counts how many of the next keys hit, if nothing else is needed.
    pub(super) fn count_vector(&mut self, table: &InMemoryBuildSide) -> Option<u64> {
        let once = table.data.duplicate_lists.is_empty() || !table.output_rules.matches;
        if !once || table.match_bitmap.is_some() || self.compares_hits(table) {
            return None;
        }
        let most = table.spec.batch_rows;
        let (_, selection) = vector(&mut self.lookup, &self.keys, table, most);
        let hits = selection.hits() as u64;
        self.metrics.matched_rows += hits;
        self.drained = self.lookup.is_drained();
        Some(hits)
    }

    /// Generates the matches of the next rows, if every key has at most one build row, so that a
    /// selection vector is all that is needed. False if that isn't so.
    pub(super) fn generate_vector(&mut self, table: &InMemoryBuildSide, room: usize) -> bool {
        let unique = table.data.duplicate_lists.is_empty();
        let by_hits = table.has_residual_predicate() || self.compares_hits(table);
        let tracked = table.output_rules.probe == SideOutput::Tracked;
        // Rows without a key, perhaps dropped by the Bloom filter, have no match in an inner join.
        let all = self.keys.rows().is_none() || table.output_rules.probe == SideOutput::Never;
        if by_hits || !unique || !table.output_rules.matches || tracked || !all {
            return false;
        }
        let most = room - self.out.len();
        let (first, selection) = vector(&mut self.lookup, &self.keys, table, most);
        let (hits, start) = (selection.hits(), self.out.probe.len());
        self.metrics.matched_rows += hits as u64;
        let payload = table.data.payload.is_some();
        if let Some(bitmap) = &table.match_bitmap {
            selection.hits_each().for_each(|(_, value)| bitmap.set(table.bit(value)));
        }
        let rows = first..first + selection.values().len() as Row;
        self.next_row = rows.end as usize;
        // The vector fills the room or is the last one: nothing follows it in this output.
        let all_of_run = hits == rows.len() && self.out.len() == 0 && self.keys.rows().is_none();
        if all_of_run && table.output_rules.probe == SideOutput::Never {
            self.out.run = rows;
            if payload {
                self.out.values = selection.take_values();
            } else {
                self.out.build.extend(selection.values().iter().map(|value| *value as Row));
            }
        } else if hits == rows.len() && payload {
            self.out.probe.extend(rows);
            self.out.values.extend_from_slice(selection.values());
        } else if hits == rows.len() {
            self.out.probe.extend(rows);
            self.out.build.extend(selection.values().iter().map(|value| *value as Row));
        } else if table.output_rules.probe == SideOutput::Unmatched {
            self.out.probe.extend(rows);
            for (found, values) in selection.blocks() {
                let row = |(at, value): (usize, &u64)| {
                    if found >> at & 1 == 0 { NO_ROW } else { *value as Row }
                };
                self.out.build.extend(values.iter().enumerate().map(row));
            }
        } else if payload {
            Matches::extend((&mut self.out.probe, &mut self.out.values), first, selection, |v| v);
        } else {
            let row = |value| value as Row;
            Matches::extend((&mut self.out.probe, &mut self.out.build), first, selection, row);
        }
        if let Some(rows) = self.keys.rows() {
            let keys = &mut self.out.probe[start..];
            keys.iter_mut().for_each(|key| *key = rows[*key as usize]);
        }
        self.drained = self.lookup.is_drained();
        true
    }
}
