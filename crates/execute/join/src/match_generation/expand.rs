//! Expands hits to matches: a hit whose hash proves nothing is compared once, then matched with all
//! rows of its key.

use workahead_walks::memory::{Memory, Prefetching, ToL1};
use workahead_walks::place::{Intent, Place};
use workahead_walks::walk::Row;

use super::{MatchGenerator, Matches};
use crate::duplicates::duplicate_list;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::lookup::Hit;

/// Prefetch distances, in hits: for duplicate lists, and for keys to be compared.
const LISTS_AHEAD: usize = 8;
const KEYS_AHEAD: usize = 16;

impl MatchGenerator {
    /// Drops hits with equal hashes but different keys. Comparing one row of a duplicate list is
    /// enough: its rows have the same key.
    pub(super) fn verify(&mut self, table: &InMemoryBuildSide) {
        let Some(store) = &table.data.store else { return };
        let duplicate_lists = &table.data.duplicate_lists;
        let first_row = |hit: &Hit| match duplicate_list(hit.value) {
            (_, None) => hit.value as Row,
            (_, Some(start)) => duplicate_lists[start],
        };
        let hits = &mut self.hits;
        let mut memory = Prefetching::<ToL1>::default();
        let mut kept = 0;
        for at in 0..hits.len() {
            if !duplicate_lists.is_empty()
                && let Some(ahead) = hits.get(at + 2 * KEYS_AHEAD)
                && let (_, Some(start)) = duplicate_list(ahead.value)
            {
                memory.fetch(Place::of(&duplicate_lists[start]), Intent::Read);
            }
            if let Some(ahead) = hits.get(at + KEYS_AHEAD) {
                store.prefetch(first_row(ahead));
            }
            if let Some(ahead) = hits.get(at + KEYS_AHEAD / 2) {
                store.prefetch_long(first_row(ahead));
            }
            let hit = hits[at];
            if store.equals(first_row(&hit), &self.keys.full_keys, hit.key as usize) {
                hits[kept] = hit;
                kept += 1;
            }
        }
        hits.truncate(kept);
    }

    /// Matches the rows of hits until none are left or `to` has `room` rows. If keys of a duplicate
    /// list may differ, the probe side is given by key positions instead of rows.
    pub(super) fn expand<const UNPROVEN: bool>(
        &mut self,
        table: &InMemoryBuildSide,
        to: &mut Matches,
        room: usize,
    ) {
        let (duplicate_lists, payload) =
            (&table.data.duplicate_lists, table.data.payload.is_some());
        let as_keys = UNPROVEN && table.data.collides;
        // One match is enough to output a probe row on its own, unless build rows track theirs.
        let once = UNPROVEN && !table.output_rules.matches && table.match_bitmap.is_none();
        let mut memory = Prefetching::<ToL1>::default();
        while let Some(hit) = self.hits.get(self.next_hit) {
            let left = room - to.len();
            if left == 0 {
                return;
            }
            if !duplicate_lists.is_empty()
                && let Some(ahead) = self.hits.get(self.next_hit + LISTS_AHEAD)
                && let (_, Some(start)) = duplicate_list(ahead.value)
            {
                memory.fetch(Place::of(&duplicate_lists[start]), Intent::Read);
            }
            let probe_row = self.keys.row(hit.key);
            let (rows, start) = if payload { (1, None) } else { duplicate_list(hit.value) };
            if once && self.matched.get(probe_row as usize) {
                (self.rows_done, self.next_hit) = (0, self.next_hit + 1);
                continue;
            }
            let probe_row = if as_keys { hit.key } else { probe_row };
            let Some(start) = start else {
                if payload {
                    to.probe.push(probe_row);
                    to.values.push(hit.value);
                } else {
                    to.push(probe_row, hit.value as Row);
                }
                self.next_hit += 1;
                continue;
            };
            let more = (rows - self.rows_done).min(left as u32);
            let start = start + self.rows_done as usize;
            to.build.extend_from_slice(&duplicate_lists[start..start + more as usize]);
            to.probe.resize(to.build.len(), probe_row);
            self.rows_done += more;
            if self.rows_done == rows {
                self.rows_done = 0;
                self.next_hit += 1;
            }
        }
    }
}
