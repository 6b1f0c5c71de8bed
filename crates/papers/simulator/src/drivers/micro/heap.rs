//! Heap sort as in PostgreSQL 8.1's run generation (`tuplesort_heap_insert`,
//! `tuplesort_heap_siftup`; Knuth, volume 3, algorithm 5.2.3H), and merge sort.

/// Rows in a binary heap: the least comes first.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Sort key and row number.
    slots: Vec<(u32, u32)>,
}

impl Rows {
    /// Inserts a row; calls `compare` for each comparison with the slot of the other row, and both
    /// rows.
    pub(super) fn insert(&mut self, row: (u32, u32), mut compare: impl FnMut(usize, [u32; 2])) {
        let mut hole = self.slots.len();
        self.slots.push(row);
        while hole > 0 {
            let parent = (hole - 1) / 2;
            compare(parent, [row.1, self.slots[parent].1]);
            if row.0 >= self.slots[parent].0 {
                break;
            }
            self.slots[hole] = self.slots[parent];
            hole = parent;
        }
        self.slots[hole] = row;
    }

    /// Removes the least row.
    pub(super) fn take(&mut self, mut compare: impl FnMut(usize, [u32; 2])) -> Option<(u32, u32)> {
        let last = self.slots.pop()?;
        let Some(least) = self.slots.first().copied() else { return Some(last) };
        let len = self.slots.len();
        let mut hole = 0;
        while 2 * hole + 1 < len {
            let mut child = 2 * hole + 1;
            if child + 1 < len {
                compare(child, [self.slots[child].1, self.slots[child + 1].1]);
                child += usize::from(self.slots[child].0 > self.slots[child + 1].0);
            }
            compare(child, [last.1, self.slots[child].1]);
            if last.0 <= self.slots[child].0 {
                break;
            }
            self.slots[hole] = self.slots[child];
            hole = child;
        }
        self.slots[hole] = last;
        Some(least)
    }
}

/// Merge sort; calls `compare` for each pair.
pub(super) fn merge_sort(numbers: &mut Vec<u32>, compare: &mut impl FnMut(u32, u32)) {
    let mut width = 1;
    while width < numbers.len() {
        let mut merged = Vec::with_capacity(numbers.len());
        for run in numbers.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let ([one, ..], [two, ..]) = (left, right) {
                compare(*one, *two);
                let from = if one <= two { &mut left } else { &mut right };
                merged.push(from[0]);
                *from = &from[1..];
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        *numbers = merged;
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_sort(keys in prop::collection::vec(0_u32..100, 0..200)) {
            let mut rows = Rows::default();
            let mut count = 0;
            for (row, key) in (0..).zip(&keys) {
                rows.insert((*key, row), |_, _| count += 1);
            }
            let next = || rows.take(|_, _| count += 1);
            let out: Vec<(u32, u32)> = std::iter::from_fn(next).collect();
            let mut wanted = keys.clone();
            wanted.sort_unstable();
            prop_assert!(out.iter().map(|row| row.0).eq(wanted.iter().copied()));
            // Each row once.
            let mut numbers: Vec<u32> = out.iter().map(|row| row.1).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..keys.len() as u32));
            let bound = keys.len() * (keys.len().max(1).ilog2() as usize + 2) * 3;
            prop_assert!(count <= bound);
            let mut merged = keys.clone();
            merge_sort(&mut merged, &mut |_, _| ());
            prop_assert_eq!(merged, wanted);
        }
    }
}
