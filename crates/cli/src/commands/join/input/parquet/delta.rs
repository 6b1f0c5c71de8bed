//! Runs of numbers as `DELTA_BINARY_PACKED`: how long one is, without decoding it.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/#DELTAENC>

use super::thrift::Reader;

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

#[cfg(test)]
mod tests {
    use super::*;

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
