//! From a vector of lookups to pairs, without hits between.

use workahead_operators::walk::Row;

use super::{Pairing, Pairs};
use crate::chunks::NO_ROW;
use crate::join_type::Alone;
use crate::lookup::VECTOR;
use crate::resident::Resident;

impl Pairing {
    /// Notes which of the next rows have a match, where that is all there is to know of the probe
    /// side. False where it is not so.
    pub(super) fn match_vector(&mut self, table: &Resident) -> bool {
        let proven = !table.sieves() && table.inside.store.is_none();
        let only_matches = !table.emits.pairs && table.flags.is_none();
        if !proven || !only_matches || self.keys.rows().is_some() {
            return false;
        }
        let words = self.keys.words();
        let Some((first, answers)) = self.lookup.vector(&table.inside.table, words, VECTOR) else {
            return false;
        };
        self.metrics.matched_rows += answers.hits() as u64;
        self.matched.set_words(first as usize, answers.found());
        self.drained = self.lookup.is_drained();
        true
    }

    /// How many of the next keys are found, where that is all there is to count.
    pub(super) fn count_vector(&mut self, table: &Resident) -> Option<u64> {
        let once = table.inside.groups.is_empty() || !table.emits.pairs;
        if !once || table.inside.store.is_some() || table.flags.is_some() {
            return None;
        }
        let (words, most) = (self.keys.words(), table.join.batch_rows);
        let (_, answers) = self.lookup.vector(&table.inside.table, words, most)?;
        let hits = answers.hits() as u64;
        self.metrics.matched_rows += hits;
        self.drained = self.lookup.is_drained();
        Some(hits)
    }

    /// Pairs the next rows without hits between: where every key has at most one build row, what a
    /// vector of lookups gives is all there is to know. False where it is not so.
    pub(super) fn pair_vector(&mut self, table: &Resident, room: usize) -> bool {
        let unique = table.inside.groups.is_empty() && table.inside.store.is_none();
        let flags = table.sieves() || table.emits.probe == Alone::Noted;
        // Rows without a word, which a filter may have dropped, are no pairs of an inner join.
        let all = self.keys.rows().is_none() || table.emits.probe == Alone::Never;
        if !unique || !table.emits.pairs || flags || !all {
            return false;
        }
        let (words, most) = (self.keys.words(), room - self.out.len());
        let Some((first, answers)) = self.lookup.vector(&table.inside.table, words, most) else {
            return false;
        };
        let (hits, start) = (answers.hits(), self.out.probe.len());
        self.metrics.matched_rows += hits as u64;
        let inline = table.inside.inline.is_some();
        if let Some(flags) = &table.flags {
            let hits = answers.each().filter(|(found, _)| *found);
            hits.for_each(|(_, value)| flags.set(table.bit(value)));
        }
        let rows = first..first + answers.values().len() as Row;
        self.next_row = rows.end as usize;
        if hits == rows.len() && inline {
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
