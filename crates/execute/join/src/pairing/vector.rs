//! From a vector of lookups to pairs, without hits between.

use workahead_walks::answers::Answers;
use workahead_walks::walk::Row;

use super::{Pairing, Pairs};
use crate::chunks::NO_ROW;
use crate::join_type::Alone;
use crate::keys::Keys;
use crate::lookup::{Lookup, VECTOR};
use crate::resident::Resident;

/// Looks up the next keys, at most so many: the first one, and what became of each.
fn vector<'l>(
    lookup: &'l mut Lookup,
    keys: &Keys,
    table: &Resident,
    most: usize,
) -> (Row, &'l mut Answers) {
    let (first, answers) = lookup.vector(&table.inside.table, keys.words(), most);
    if let Some(store) = &table.inside.store {
        store.confirm(answers, &keys.parts, first as usize);
    }
    (first, answers)
}

impl Pairing {
    /// Whether the keys of hits are compared, one by one, and not those of all of a vector: with
    /// the first of several rows; with a long text, which is a second line behind the key's and is
    /// announced on its own; and where few keys hit.
    fn compares_hits(&self, table: &Resident) -> bool {
        let unique = table.inside.groups.is_empty();
        table.inside.store.as_ref().is_some_and(|s| s.holds_long() || !unique || self.few_hit)
    }

    /// Notes which of the next rows have a match, where that is all there is to know of the probe
    /// side. False where it is not so.
    pub(super) fn match_vector(&mut self, table: &Resident) -> bool {
        let only_matches = !table.emits.pairs && table.flags.is_none();
        let by_hits = table.sieves() || self.compares_hits(table);
        if by_hits || !only_matches || self.keys.rows().is_some() {
            return false;
        }
        let (first, answers) = vector(&mut self.lookup, &self.keys, table, VECTOR);
        self.metrics.matched_rows += answers.hits() as u64;
        self.matched.set_words(first as usize, answers.found());
        self.drained = self.lookup.is_drained();
        true
    }

    /// How many of the next keys are found, where that is all there is to count.
    pub(super) fn count_vector(&mut self, table: &Resident) -> Option<u64> {
        let once = table.inside.groups.is_empty() || !table.emits.pairs;
        if !once || table.flags.is_some() || self.compares_hits(table) {
            return None;
        }
        let most = table.spec.batch_rows;
        let (_, answers) = vector(&mut self.lookup, &self.keys, table, most);
        let hits = answers.hits() as u64;
        self.metrics.matched_rows += hits;
        self.drained = self.lookup.is_drained();
        Some(hits)
    }

    /// Pairs the next rows without hits between: where every key has at most one build row, what a
    /// vector of lookups gives is all there is to know. False where it is not so.
    pub(super) fn pair_vector(&mut self, table: &Resident, room: usize) -> bool {
        let unique = table.inside.groups.is_empty();
        let by_hits = table.sieves() || self.compares_hits(table);
        let flags = table.emits.probe == Alone::Noted;
        // Rows without a word, which a filter may have dropped, are no pairs of an inner join.
        let all = self.keys.rows().is_none() || table.emits.probe == Alone::Never;
        if by_hits || !unique || !table.emits.pairs || flags || !all {
            return false;
        }
        let most = room - self.out.len();
        let (first, answers) = vector(&mut self.lookup, &self.keys, table, most);
        let (hits, start) = (answers.hits(), self.out.probe.len());
        self.metrics.matched_rows += hits as u64;
        let inline = table.inside.inline.is_some();
        if let Some(flags) = &table.flags {
            let hits = answers.each().filter(|(found, _)| *found);
            hits.for_each(|(_, value)| flags.set(table.bit(value)));
        }
        let rows = first..first + answers.values().len() as Row;
        self.next_row = rows.end as usize;
        // The vector is all there is room for, or all that is left: nothing follows it.
        let all_of_run = hits == rows.len() && self.out.len() == 0 && self.keys.rows().is_none();
        if all_of_run && table.emits.probe == Alone::Never {
            self.out.run = rows;
            if inline {
                self.out.values = answers.take_values();
            } else {
                self.out.build.extend(answers.values().iter().map(|value| *value as Row));
            }
        } else if hits == rows.len() && inline {
            self.out.probe.extend(rows);
            self.out.values.extend_from_slice(answers.values());
        } else if hits == rows.len() {
            self.out.probe.extend(rows);
            self.out.build.extend(answers.values().iter().map(|value| *value as Row));
        } else if table.emits.probe == Alone::Unmatched {
            self.out.probe.extend(rows);
            let row = |(found, value)| if found { value as Row } else { NO_ROW };
            self.out.build.extend(answers.each().map(row));
        } else if inline {
            Pairs::extend((&mut self.out.probe, &mut self.out.values), rows, answers, |v| v);
        } else {
            let row = |value| value as Row;
            Pairs::extend((&mut self.out.probe, &mut self.out.build), rows, answers, row);
        }
        if let Some(rows) = self.keys.rows() {
            let pairs = &mut self.out.probe[start..];
            pairs.iter_mut().for_each(|word| *word = rows[*word as usize]);
        }
        self.drained = self.lookup.is_drained();
        true
    }
}
