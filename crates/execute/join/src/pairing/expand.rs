//! From hits to pairs: a hit is compared once if its hash proves nothing, then paired with all rows
//! of its key.

use workahead_walks::memory::{Memory, Prefetching, ToL1};
use workahead_walks::place::{Intent, Place};
use workahead_walks::walk::Row;

use super::{Pairing, Pairs};
use crate::groups::group;
use crate::lookup::Hit;
use crate::resident::Resident;

/// How many hits ahead a group's rows are announced, and a key to be compared.
const GROUPS_AHEAD: usize = 8;
const KEYS_AHEAD: usize = 16;

impl Pairing {
    /// Drops hits whose hash is all that is equal. One row of the key is asked: the others have it
    /// too.
    pub(super) fn verify(&mut self, table: &Resident) {
        let Some(store) = &table.inside.store else { return };
        let groups = &table.inside.groups;
        let first = |hit: &Hit| match group(hit.value) {
            (_, None) => hit.value as Row,
            (_, Some(start)) => groups[start],
        };
        let found = &mut self.hits;
        let mut memory = Prefetching::<ToL1>::default();
        let mut kept = 0;
        for at in 0..found.len() {
            if !groups.is_empty()
                && let Some(ahead) = found.get(at + 2 * KEYS_AHEAD)
                && let (_, Some(start)) = group(ahead.value)
            {
                memory.fetch(Place::of(&groups[start]), Intent::Read);
            }
            if let Some(ahead) = found.get(at + KEYS_AHEAD) {
                store.fetch(first(ahead));
            }
            if let Some(ahead) = found.get(at + KEYS_AHEAD / 2) {
                store.fetch_long(first(ahead));
            }
            let hit = found[at];
            if store.equals(first(&hit), &self.keys.parts, hit.word as usize) {
                found[kept] = hit;
                kept += 1;
            }
        }
        found.truncate(kept);
    }

    /// Pairs the rows of hits until there are none left or `to` has so many. Where each pair must
    /// be compared, the probe's are words yet, not rows.
    pub(super) fn expand<const SIEVED: bool>(
        &mut self,
        table: &Resident,
        to: &mut Pairs,
        room: usize,
    ) {
        let (groups, inline) = (&table.inside.groups, table.inside.inline.is_some());
        let as_words = SIEVED && table.inside.collides;
        // One match is enough for a row that comes out alone, unless build rows need theirs.
        let once = SIEVED && !table.emits.pairs && table.flags.is_none();
        let mut memory = Prefetching::<ToL1>::default();
        while let Some(hit) = self.hits.get(self.next_hit) {
            let left = room - to.len();
            if left == 0 {
                return;
            }
            if !groups.is_empty()
                && let Some(ahead) = self.hits.get(self.next_hit + GROUPS_AHEAD)
                && let (_, Some(start)) = group(ahead.value)
            {
                memory.fetch(Place::of(&groups[start]), Intent::Read);
            }
            let probe_row = self.keys.row(hit.word);
            let (rows, start) = if inline { (1, None) } else { group(hit.value) };
            if once && self.matched.get(probe_row as usize) {
                (self.rows_done, self.next_hit) = (0, self.next_hit + 1);
                continue;
            }
            let probe_row = if as_words { hit.word } else { probe_row };
            let Some(start) = start else {
                if inline {
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
            to.build.extend_from_slice(&groups[start..start + more as usize]);
            to.probe.resize(to.build.len(), probe_row);
            self.rows_done += more;
            if self.rows_done == rows {
                self.rows_done = 0;
                self.next_hit += 1;
            }
        }
    }
}
