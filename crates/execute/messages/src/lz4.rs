//! What a frame of LZ4 may hold, by the headers of its blocks.

use std::io;
use std::ops::Range;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// The magic, flags and the size of blocks.
const HEADER_BYTES: usize = 6;
const SIZE_BYTES: usize = 4;
const UNCOMPRESSED: u32 = 1 << 31;

/// Whether the frame at these places may hold as many bytes as it is said to, and not many more:
/// its decoder reads to the end whatever that is. Each block makes at most the size that the frame
/// names. `read` reads bytes at a place.
///
/// <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>
pub(crate) fn holds(
    frame: &Range<usize>,
    length: usize,
    read: &mut dyn FnMut(usize, &mut [u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut header = [0; HEADER_BYTES];
    if frame.len() < header.len() {
        return Ok(false);
    }
    read(frame.start, &mut header)?;
    let Some([flags, sizes]) = header.strip_prefix(&MAGIC) else { return Ok(false) };
    let has = |bit: u8| usize::from(flags >> bit & 1);
    let block_max = match sizes >> 4 & 7 {
        size @ 4..=7 => (64 << 10) << (2 * (size - 4)),
        _ => return Ok(false),
    };
    // The content's size, the dictionary's number, and a checksum.
    let mut at = frame.start + HEADER_BYTES + 8 * has(3) + 4 * has(0) + 1;
    let (mut made, mut ended) = (0_usize, false);
    while !ended && at + SIZE_BYTES <= frame.end {
        let mut size = [0; SIZE_BYTES];
        read(at, &mut size)?;
        let size = u32::from_le_bytes(size);
        let bytes = (size & !UNCOMPRESSED) as usize;
        ended = size == 0;
        let most = if size & UNCOMPRESSED == 0 { block_max.min(255 * bytes) } else { bytes };
        made = made.saturating_add(most);
        at += SIZE_BYTES + bytes + if ended { 4 * has(2) } else { 4 * has(4) };
    }
    // The last block is rarely full, and writers may end one early.
    Ok(ended && at >= frame.end && length <= made && made <= 2 * length + block_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_make_what_the_frame_names_at_most() {
        // Five blocks of 300 bytes, each of which may be 64 KiB.
        let blocks = [&[0x2c, 1, 0, 0][..], &[0; 300]].concat().repeat(5);
        let bytes = [&MAGIC[..], &[0x60, 0x40, 0], &blocks, &[0; 4]].concat();
        let holds = |bytes: &[u8], length| {
            let mut read = |at: usize, to: &mut [u8]| {
                to.copy_from_slice(&bytes[at..at + to.len()]);
                Ok(())
            };
            holds(&(0..bytes.len()), length, &mut read).unwrap()
        };
        for length in [140_000, 5 << 16] {
            assert!(holds(&bytes, length), "{length}");
        }
        // A block that is not the last is full, and none makes more.
        for length in [1, 100_000, (5 << 16) + 1, usize::MAX / 4] {
            assert!(!holds(&bytes, length), "{length}");
        }
        for end in 0..bytes.len() {
            assert!(!holds(&bytes[..end], 300_000), "{end}");
        }
    }
}
