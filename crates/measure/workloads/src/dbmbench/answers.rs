//! The answers that the rows give, reckoned without any engine.
//!
//! T1's a3 are laid out by a2, with the sums of all before each value, so that an average costs
//! two look-ups and a list of distinct values one pass over what is selected. The join with T2
//! keeps every row once: each a1 of T1 is a key of T2.

use super::{Options, Query, Range, data};

/// The answer of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Rows of the answer.
    pub rows: u64,
    /// The average, or the sum of the distinct values.
    pub sum: f64,
    /// Sum over the rows in their order; an average is taken in thousandths.
    pub checksum: u64,
}

impl Answer {
    /// An answer of one average.
    #[must_use]
    pub fn average(average: f64) -> Self {
        Self { rows: 1, sum: average, checksum: (average * 1000.0).round() as u64 }
    }

    /// The answer before its first value.
    #[must_use]
    pub fn empty() -> Self {
        Self { rows: 0, sum: 0.0, checksum: 0 }
    }

    /// Takes in the next distinct value; the order counts (Fowler, Noll, Vo: FNV-1a's prime).
    pub fn push(&mut self, value: u64) {
        self.rows += 1;
        self.sum += value as f64;
        self.checksum = (self.checksum ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Whether two answers are the same. Averages may be rounded to four digits (MariaDB's
    /// `div_precision_increment`).
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        let near = (self.sum - other.sum).abs() <= 1e-4;
        let list = self.rows != 1;
        self.rows == other.rows && near && (!list || self.checksum == other.checksum)
    }
}

/// T1, as far as answers depend on it.
#[derive(Debug)]
pub struct Answers {
    /// Where the rows of each a2 begin in `a3`; from a2 = 0, with one end more.
    starts: Vec<usize>,
    a3: Vec<u32>,
    /// Sums of `a3` before each a2.
    sums: Vec<u64>,
    a3_values: u32,
}

impl Answers {
    /// Those of the rows that the options make.
    #[must_use]
    pub fn of(options: &Options) -> Self {
        let values = options.a2_values as usize + 1;
        let mut starts = vec![0_usize; values + 1];
        for [_, a2, _] in data::t1_rows(options) {
            starts[a2 as usize + 1] += 1;
        }
        for value in 0..values {
            starts[value + 1] += starts[value];
        }
        let mut places = starts.clone();
        let mut a3 = vec![0; options.t1_rows as usize];
        for [_, a2, value] in data::t1_rows(options) {
            a3[places[a2 as usize]] = value;
            places[a2 as usize] += 1;
        }
        let mut sums = vec![0; values + 1];
        for value in 0..values {
            let here = a3[starts[value]..starts[value + 1]].iter().map(|a3| u64::from(*a3));
            sums[value + 1] = sums[value] + here.sum::<u64>();
        }
        Self { starts, a3, sums, a3_values: options.a3_values }
    }

    /// Rows of T1 that are selected.
    #[must_use]
    pub fn selected(&self, range: Range) -> u64 {
        (self.starts[range.high as usize] - self.starts[range.low as usize + 1]) as u64
    }

    /// The answer of a query.
    #[must_use]
    pub fn of_query(&self, query: Query, range: Range) -> Answer {
        let (from, to) = (range.low as usize + 1, range.high as usize);
        match query {
            Query::Utpcc | Query::Unj => {
                let sum = self.sums[to] - self.sums[from];
                Answer::average(sum as f64 / self.selected(range) as f64)
            }
            Query::Uss => {
                let mut seen = vec![false; self.a3_values as usize + 1];
                for a3 in &self.a3[self.starts[from]..self.starts[to]] {
                    seen[*a3 as usize] = true;
                }
                let mut answer = Answer::empty();
                let present = seen.iter().enumerate().filter(|(_, seen)| **seen);
                present.for_each(|(value, _)| answer.push(value as u64));
                answer
            }
        }
    }
}
