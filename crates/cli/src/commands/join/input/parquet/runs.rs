//! Numbers in runs, as Parquet writes levels and numbers of a dictionary's values: one number many
//! times, or groups of eight in as many bits as they take.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>

use workahead_footer::thrift::Reader;

/// Numbers not taken yet.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
    run: Run<'a>,
}

enum Run<'a> {
    Same { number: u32, times: usize },
    Packed { bits: &'a [u8], next: usize, end: usize },
}

impl<'a> Runs<'a> {
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Self {
        Self { bytes, width, run: Run::Same { number: 0, times: 0 } }
    }

    /// Numbers that are packed from the first one on, without a run's header.
    pub(super) fn packed(bits: &'a [u8], width: u32) -> Self {
        let end = bits.len().saturating_mul(8) / width.max(1) as usize;
        Self { bytes: &[], width, run: Run::Packed { bits, next: 0, end } }
    }

    /// The next number, and how often it is taken: at most `most` times, which is not none. None if
    /// there are no more.
    pub(super) fn take(&mut self, most: usize) -> Option<(u32, usize)> {
        // Without a bit each number is zero.
        if self.width == 0 {
            return Some((0, most));
        }
        loop {
            match &mut self.run {
                Run::Same { number, times } if *times > 0 => {
                    let taken = most.min(*times);
                    *times -= taken;
                    return Some((*number, taken));
                }
                Run::Packed { bits, next, end } if *next < *end => {
                    let number = unpacked(bits, *next, self.width)?;
                    *next += 1;
                    return Some((number, 1));
                }
                _ => self.run = self.begin()?,
            }
        }
    }

    fn begin(&mut self) -> Option<Run<'a>> {
        if self.width > u32::BITS {
            return None;
        }
        let mut reader = Reader::new(self.bytes);
        let header = usize::try_from(reader.varint().ok()?).ok()?;
        let rest = &self.bytes[reader.at..];
        if header & 1 == 0 {
            let (number, rest) = rest.split_at_checked(self.width.div_ceil(8) as usize)?;
            self.bytes = rest;
            let number = number.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            return Some(Run::Same { number, times: header >> 1 });
        }
        // The last group may be cut.
        let bytes = (header >> 1).checked_mul(self.width as usize)?;
        let (bits, rest) = rest.split_at(bytes.min(rest.len()));
        self.bytes = rest;
        Some(Run::Packed { bits, next: 0, end: (header >> 1).checked_mul(8)? })
    }
}

/// A number among those that are packed, from the lowest bit on.
pub(super) fn unpacked(bits: &[u8], at: usize, width: u32) -> Option<u32> {
    if width > u32::BITS {
        return None;
    }
    let begin = at * width as usize;
    let bytes = bits.get(begin / 8..(begin + width as usize).div_ceil(8))?;
    let whole = bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    Some((whole >> (begin % 8) & ((1 << width) - 1)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32) -> Vec<(u32, usize)> {
        let mut runs = Runs::new(bytes, width);
        std::iter::from_fn(|| runs.take(5)).collect()
    }

    #[test]
    fn runs_and_groups_follow_each_other() {
        // The numbers 0 to 7 in three bits are the example of the format's description.
        let packed = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let bytes = [&[12, 4][..], &packed, &[2, 7]].concat();
        let expected = [(4, 5), (4, 1)].into_iter().chain((0..8).map(|n| (n, 1))).chain([(7, 1)]);
        assert_eq!(all(&bytes, 3), expected.collect::<Vec<_>>());
        let mut levels = Runs::packed(&packed[1..], 3);
        assert!((0..8).all(|number| levels.take(9) == Some((number, 1))));
        assert_eq!(levels.take(9), None);
        assert_eq!(all(&[4, 1, 2], 9), [(0x201, 2)]);
        assert_eq!(Runs::new(&[], 0).take(3), Some((0, 3)));
        let mut same = Runs::new(&[20, 1, 2, 0], 1);
        assert_eq!([4, 9, 9].map(|most| same.take(most)), [(1, 4), (1, 6), (0, 1)].map(Some));
    }

    #[test]
    fn numbers_that_are_not_there_are_none() {
        for bytes in [&[][..], &[12], &[0x80], &[3], &[0xff; 12], &[0xfe, 0xff, 0xff, 0xff, 15]] {
            assert_eq!(all(bytes, 8), [], "{bytes:?}");
        }
        assert_eq!(all(&[3, 1, 2], 8), [(1, 1), (2, 1)]);
        assert_eq!(all(&[3; 99], 200), []);
    }
}
