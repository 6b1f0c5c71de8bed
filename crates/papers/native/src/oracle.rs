//! The expected answer of an equi-join, by code independent of the code under test: both sides
//! sorted, then merged.

use workahead_study::engine::Answer;
use workahead_walks::materialise::pair_checksum;

/// The answer of each probe record: number and checksum of its matches.
pub(crate) struct Oracle(Vec<Answer>);

impl Oracle {
    /// Joins by sorting: row `i` of each side has key `i`.
    pub(crate) fn equi_join<K: Ord + Copy>(
        probe: impl Iterator<Item = K>,
        build: impl Iterator<Item = K>,
    ) -> Self {
        let (probe, build) = (sorted(probe), sorted(build));
        let mut answers = vec![Answer::default(); probe.len()];
        let mut build = build.as_slice();
        for (key, row) in probe {
            while build.first().is_some_and(|first| first.0 < key) {
                build = &build[1..];
            }
            let matching = build.iter().take_while(|other| other.0 == key);
            for &(_, other) in matching {
                add(&mut answers[row as usize], one(row, other));
            }
        }
        Self(answers)
    }

    /// The answer of a stream of probes, given by positions of probe records.
    pub(crate) fn of(&self, stream: impl Iterator<Item = u32>) -> Answer {
        let mut answer = Answer::default();
        for record in stream {
            add(&mut answer, self.0[record as usize]);
        }
        answer
    }
}

/// The answer of one pair.
pub(crate) fn one(left: u32, right: u32) -> Answer {
    Answer { rows: 1, checksum: pair_checksum(left, right) }
}

/// Adds one answer to another.
pub fn add(sum: &mut Answer, other: Answer) {
    sum.rows += other.rows;
    sum.checksum = sum.checksum.wrapping_add(other.checksum);
}

/// The answer repeated `copies` times.
#[must_use]
pub fn times(answer: Answer, copies: usize) -> Answer {
    let copies = copies as u64;
    Answer { rows: answer.rows * copies, checksum: answer.checksum.wrapping_mul(copies) }
}

fn sorted<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<(K, u32)> {
    let mut sorted: Vec<_> = keys.zip(0..).collect();
    sorted.sort_unstable();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_nested_loops() {
        let probe = [3u32, 1, 4, 1, 5, 9, 2, 6];
        let build = [5u32, 3, 5, 8, 9, 7, 1, 9, 9];
        let oracle = Oracle::equi_join(probe.iter().copied(), build.iter().copied());
        let stream = [7u32, 1, 5, 5, 0];
        let mut expected = Answer::default();
        for record in stream {
            for (row, key) in build.iter().enumerate() {
                if *key == probe[record as usize] {
                    add(&mut expected, one(record, row as u32));
                }
            }
        }
        assert_eq!(expected.rows, 1 + 3 + 3 + 1, "by hand: 6 none, 1 one, 9 three twice, 3 one");
        assert_eq!(oracle.of(stream.into_iter()), expected);
        assert_eq!(oracle.of(std::iter::repeat_n(5, 4)), times(oracle.of([5].into_iter()), 4));
    }
}
