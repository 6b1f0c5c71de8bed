//! Random inputs, and the expected output by nested loops.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_select::take::take;

use super::kinds::{identity, pool};
use crate::JoinType;

/// One side: key columns, in batches, with the row number as payload.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) kinds: Vec<&'static str>,
    /// By row, then by key: the index of its value.
    pub(super) rows: Vec<Vec<Option<usize>>>,
    pub(super) batch_rows: usize,
    /// Bytes of a padding column; none if zero.
    pub(super) pad: usize,
}

impl Input {
    /// Columns before `id`.
    pub(super) fn id_column(&self) -> usize {
        self.kinds.len() + usize::from(self.pad > 0)
    }

    /// `key0, key1, …, pad, id`.
    pub(super) fn whole(&self) -> RecordBatch {
        // Two extra rows at the front give every array an offset.
        let picked = |key: usize| {
            let rows = self.rows.iter().map(|row| row[key].map(|at| at as u32));
            [Some(0), None].into_iter().chain(rows).collect::<UInt32Array>()
        };
        let keys = self.kinds.iter().enumerate().map(|(key, kind)| {
            let array: ArrayRef = take(&pool(kind), &picked(key), None).unwrap();
            (format!("key{key}"), array.slice(2, self.rows.len()), true)
        });
        let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..self.rows.len() as u32));
        let columns = keys.chain(self.padding()).chain([("id".to_owned(), ids, false)]);
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn padding(&self) -> Option<(String, ArrayRef, bool)> {
        let pads = (0..self.rows.len())
            .map(|row| (row % 5 > 0).then(|| "pad".repeat(row % self.pad.max(1))));
        let pads: StringArray = pads.collect();
        (self.pad > 0).then(|| ("pad".to_owned(), Arc::new(pads) as ArrayRef, true))
    }

    pub(super) fn batches(&self) -> Vec<RecordBatch> {
        let whole = self.whole();
        let starts = (0..self.rows.len()).step_by(self.batch_rows);
        let batch = |start| whole.slice(start, self.batch_rows.min(self.rows.len() - start));
        starts.map(batch).collect()
    }

    pub(super) fn key(&self, row: usize) -> Vec<Option<i128>> {
        let values = self.kinds.iter().zip(&self.rows[row]);
        values.map(|(kind, value)| value.and_then(|at| identity(kind, at))).collect()
    }
}

/// A row of the output: rows of both sides, and the mark.
pub(super) type JoinedRow = (Option<u32>, Option<u32>, Option<bool>);

/// The join computed by the oracle.
pub(super) struct JoinCase {
    pub(super) join_type: JoinType,
    pub(super) nulls_equal: bool,
    pub(super) null_aware: bool,
    pub(super) filtered: bool,
}

/// The residual predicate of the tests: true, false or null by row numbers.
pub(super) fn wanted(left: u32, right: u32) -> Option<bool> {
    let mixed = left.wrapping_mul(7).wrapping_add(right.wrapping_mul(13)) % 11;
    (mixed != 0).then_some(mixed < 4 || left.is_multiple_of(5))
}

/// The output by nested loops, sorted.
pub(super) fn oracle(left: &Input, right: &Input, case: &JoinCase) -> Vec<JoinedRow> {
    let (lefts, rights) = (left.rows.len(), right.rows.len());
    let keys = |input: &Input| (0..input.rows.len()).map(|row| input.key(row)).collect::<Vec<_>>();
    let (left_keys, right_keys) = (keys(left), keys(right));
    let is_match = |l: usize, r: usize| {
        let null = left_keys[l].contains(&None);
        let equal = left_keys[l] == right_keys[r] && (case.nulls_equal || !null);
        equal && (!case.filtered || wanted(l as u32, r as u32) == Some(true))
    };
    let (mut left_matched, mut right_matched) = (vec![false; lefts], vec![false; rights]);
    let mut matches = Vec::new();
    for (l, left_matched) in left_matched.iter_mut().enumerate() {
        for (r, right_matched) in right_matched.iter_mut().enumerate() {
            if is_match(l, r) {
                (*left_matched, *right_matched) = (true, true);
                matches.push((Some(l as u32), Some(r as u32), None));
            }
        }
    }
    let unmatched = |matched: &[bool], wanted: bool| {
        let rows = (0..matched.len()).filter(|row| matched[*row] == wanted);
        rows.map(|row| Some(row as u32)).collect::<Vec<_>>()
    };
    let unknown = |own: &[Vec<Option<i128>>], row: u32, other: &[Vec<Option<i128>>]| {
        let null = |key: &Vec<Option<i128>>| key.contains(&None);
        let own_null = null(&own[row as usize]);
        case.null_aware && (other.iter().any(null) || (own_null && !other.is_empty()))
    };
    let anti = |matched: &[bool], own: &[_], other: &[_]| {
        let rows = unmatched(matched, false).into_iter().flatten();
        rows.filter(|row| !unknown(own, *row, other)).map(Some).collect::<Vec<_>>()
    };
    let of_left = |rows: Vec<Option<u32>>| rows.into_iter().map(|l| (l, None, None));
    let of_right = |rows: Vec<Option<u32>>| rows.into_iter().map(|r| (None, r, None));
    let mut joined: Vec<JoinedRow> = match case.join_type {
        JoinType::Inner => matches,
        JoinType::Left => {
            matches.into_iter().chain(of_left(unmatched(&left_matched, false))).collect()
        }
        JoinType::Right => {
            matches.into_iter().chain(of_right(unmatched(&right_matched, false))).collect()
        }
        JoinType::Full => {
            let lefts = of_left(unmatched(&left_matched, false));
            let rights = of_right(unmatched(&right_matched, false));
            matches.into_iter().chain(lefts).chain(rights).collect()
        }
        JoinType::LeftSemi => of_left(unmatched(&left_matched, true)).collect(),
        JoinType::RightSemi => of_right(unmatched(&right_matched, true)).collect(),
        JoinType::LeftAnti => of_left(anti(&left_matched, &left_keys, &right_keys)).collect(),
        JoinType::RightAnti => of_right(anti(&right_matched, &right_keys, &left_keys)).collect(),
        JoinType::LeftMark => {
            let marks = left_matched.iter().enumerate();
            marks.map(|(l, mark)| (Some(l as u32), None, Some(*mark))).collect()
        }
        JoinType::RightMark => {
            let marks = right_matched.iter().enumerate();
            marks.map(|(r, mark)| (None, Some(r as u32), Some(*mark))).collect()
        }
    };
    joined.sort_unstable();
    joined
}
