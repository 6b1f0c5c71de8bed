//! Runs of numbers as `DELTA_BINARY_PACKED`: how long one is, without decoding it, and the numbers.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/#DELTAENC>

use workahead_footer::thrift::Reader;

use super::runs::unpacked;

/// Bytes of a run of at most `values_max` numbers; none if it is longer, or no such run.
pub(super) fn run_bytes(bytes: &[u8], values_max: usize) -> Option<usize> {
    let mut reader = Reader::new(bytes);
    let mut size = || usize::try_from(reader.varint().ok()?).ok();
    let (block, minis, values) = (size()?, size()?, size()?);
    if values > values_max {
        return None;
    }
    let of_mini = block.checked_div(minis)?;
    // The first value.
    reader.varint().ok()?;
    let mut missing = values.saturating_sub(1);
    while missing > 0 {
        // The least difference, the widths of small blocks, and those of them that hold values.
        reader.varint().ok()?;
        let widths = reader.at..reader.at.checked_add(minis)?;
        let widths = bytes.get(widths)?;
        reader.at += minis;
        for width in widths {
            if missing == 0 {
                break;
            }
            reader.at = reader.at.checked_add(of_mini.checked_mul(usize::from(*width))? / 8)?;
            missing -= of_mini.min(missing);
        }
        if of_mini == 0 {
            return None;
        }
    }
    Some(reader.at.min(bytes.len()))
}

/// The numbers of a run, as lengths: of 32 bits, and not below zero.
pub(super) struct Lengths<'a> {
    bytes: &'a [u8],
    /// The next block begins here.
    at: usize,
    minis: usize,
    of_mini: usize,
    left: usize,
    /// Lengths wrap around at 32 bits.
    length: u32,
    least: u32,
    /// Widths of the small blocks that follow, and the one that is read.
    widths: &'a [u8],
    mini: Option<(&'a [u8], u32, usize)>,
    begun: bool,
}

impl<'a> Lengths<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut size = || usize::try_from(reader.varint().ok()?).ok();
        let (block, minis, left) = (size()?, size()?, size()?);
        let of_mini = block.checked_div(minis).filter(|of_mini| *of_mini > 0)?;
        let length = reader.number().ok()? as u32;
        let (at, widths, mini, begun) = (reader.at, &[][..], None, false);
        Some(Self { bytes, at, minis, of_mini, left, length, least: 0, widths, mini, begun })
    }

    fn difference(&mut self) -> Option<u32> {
        loop {
            if let Some((bits, width, next)) = &mut self.mini
                && *next < self.of_mini
            {
                *next += 1;
                return Some(unpacked(bits, *next - 1, *width)?.wrapping_add(self.least));
            }
            if self.widths.is_empty() {
                let rest = self.bytes.get(self.at..)?;
                let mut reader = Reader::new(rest);
                self.least = reader.number().ok()? as u32;
                self.widths = rest.get(reader.at..reader.at.checked_add(self.minis)?)?;
                self.at += reader.at + self.minis;
            }
            let (width, widths) = self.widths.split_first()?;
            let width = u32::from(*width);
            let bytes = self.of_mini.checked_mul(width as usize)? / 8;
            let end = self.at.checked_add(bytes)?.min(self.bytes.len());
            self.mini = Some((self.bytes.get(self.at..end)?, width, 0));
            (self.at, self.widths) = (end, widths);
        }
    }
}

impl Iterator for Lengths<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        if self.begun {
            self.length = self.length.wrapping_add(self.difference()?);
        }
        self.begun = true;
        Some((self.length as i32).max(0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_sums_of_differences() {
        // From 3 on, each one more than the one before by at least 1, then by 1 or 2, in one bit.
        let run = [8, 1, 9, 6, 2, 1, 0b1000_0001];
        assert_eq!(Lengths::new(&run).unwrap().collect::<Vec<_>>(), [3, 5, 6, 7, 8, 9, 10, 11, 13]);
        assert_eq!(Lengths::new(&run[..6]).unwrap().collect::<Vec<_>>(), [3]);
        assert_eq!(Lengths::new(&[8, 1, 1, 5]).unwrap().collect::<Vec<_>>(), [0], "minus 3");
        let wide = [8, 1, 9, 6, 2, 200];
        assert_eq!(Lengths::new(&wide).unwrap().collect::<Vec<_>>(), [3]);
        for none in [&[][..], &[8, 0, 9, 6], &[0, 1, 9, 6], &[8, 1, 9]] {
            assert!(Lengths::new(none).is_none());
        }
    }

    #[test]
    fn a_run_is_as_long_as_its_blocks() {
        // 128 numbers in four small blocks; of the first, each difference is 2 bits.
        let run = [&[0x80, 0x01, 4, 33, 0], [0, 2, 0, 0, 0].as_slice(), &[0; 8], b"texts"].concat();
        assert_eq!(run_bytes(&run, 33), Some(18));
        assert_eq!(run_bytes(&run, 32), None, "more numbers than values");
        assert_eq!(run_bytes(&[0x80, 0x01, 4, 0, 0, 7], 9), Some(5), "no numbers");
        assert_eq!(run_bytes(&[0x80, 0x01, 4], 9), None);
        assert_eq!(run_bytes(&[0, 1, 9, 0, 0, 0], 9), None, "blocks of nothing");
        assert_eq!(run_bytes(&[1, 0, 9, 0], 9), None);
    }
}
