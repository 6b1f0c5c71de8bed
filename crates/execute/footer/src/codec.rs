//! How pages are compressed, and whether more comes out of one than its header says.
//!
//! Snappy, zstd and blocks of LZ4 are given room for as much as the header says, and fill no more.
//! Gzip, frames of LZ4 and Brotli go on to their end in the parquet crate, whatever it says: of ten
//! megabytes they may make ten gigabytes. What comes out of such a page is therefore counted and
//! thrown away before, by the decoders that the crate has, so that it is decoded twice.
//!
//! Lengths alone spare hardly any page that: a byte of gzip may stand for 1,032, one of Brotli for
//! any number. Nor can it be decoded here only, and handed on decompressed: the readers of the
//! parquet crate take no decoder of others, and DataFusion has none but these. LZ4 costs little:
//! most writers frame its blocks as Hadoop does, which four bytes distinguish from a frame.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;

use crate::pages::PageError;

/// How the pages of a column are compressed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Not at all, or so that no more comes out than there is room for.
    #[default]
    Bounded,
    /// Members of gzip that follow each other.
    Gzip,
    /// Hadoop's framing, a frame or a block, which are tried in this order. The first and the last
    /// are bounded.
    Lz4,
    /// A stream of Brotli.
    Brotli,
}

impl Codec {
    /// By its number in a footer: `CompressionCodec`.
    pub(crate) fn new(number: i32) -> Self {
        match number {
            2 => Self::Gzip,
            4 => Self::Brotli,
            5 => Self::Lz4,
            _ => Self::Bounded,
        }
    }

    /// Refuses what more than `most` bytes come out of. Where it is damaged, no decoder goes on.
    pub(crate) fn check(self, compressed: impl Read, most: usize) -> Result<(), PageError> {
        let is_exceeded = match self {
            Self::Bounded => false,
            Self::Gzip => is_longer(MultiGzDecoder::new(compressed), most),
            Self::Lz4 => is_longer(FrameDecoder::new(compressed), most),
            Self::Brotli => return check_brotli(compressed, most),
        };
        if is_exceeded { Err(PageError::Excess) } else { Ok(()) }
    }
}

#[cfg(not(feature = "brotli"))]
fn check_brotli(_: impl Read, _: usize) -> Result<(), PageError> {
    Err(PageError::Brotli)
}

#[cfg(feature = "brotli")]
fn check_brotli(mut compressed: impl Read, most: usize) -> Result<(), PageError> {
    /// Seven bits, before the size of a window of up to a GiB.
    const LARGE: u8 = 0x11;
    let mut first = [0];
    if compressed.read_exact(&mut first).is_err() {
        return Ok(());
    }
    // A decoder fills such a window before the first byte comes out. The format has none: it is an
    // extension, which the parquet crate's decoder knows.
    if first[0] & 0x7f == LARGE {
        return Err(PageError::Window);
    }
    // With as long a buffer as in the parquet crate.
    let decoder = brotli::Decompressor::new((&first[..]).chain(compressed), most);
    if is_longer(decoder, most) { Err(PageError::Excess) } else { Ok(()) }
}

/// Whether a decoder makes more bytes.
fn is_longer(decoder: impl Read, most: usize) -> bool {
    let made = io::copy(&mut decoder.take(most as u64 + 1), &mut io::sink());
    // An error came before there were too many.
    made.is_ok_and(|bytes| bytes > most as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use lz4_flex::frame::FrameEncoder;

    use super::*;

    const ZEROS: usize = 1 << 20;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// What is compressed makes this number of bytes, and fewer if it is cut.
    fn makes(codec: Codec, compressed: &[u8], bytes: usize) {
        assert!(compressed.len() < bytes / 100, "{codec:?}: {}", compressed.len());
        assert_eq!(codec.check(compressed, bytes), Ok(()), "{codec:?}");
        assert_eq!(codec.check(compressed, bytes - 1), Err(PageError::Excess), "{codec:?}");
        assert_eq!(codec.check(compressed, 1_000), Err(PageError::Excess), "{codec:?}");
        assert_eq!(codec.check(&compressed[..compressed.len() / 2], bytes), Ok(()), "{codec:?}");
        assert_eq!(codec.check(io::empty(), 0), Ok(()), "{codec:?}");
    }

    #[test]
    fn what_comes_out_is_counted() {
        let zeros = vec![0; ZEROS];
        makes(Codec::Gzip, &gzip(&zeros), ZEROS);
        makes(Codec::Gzip, &gzip(&zeros).repeat(64), 64 * ZEROS);
        makes(Codec::Lz4, &frame(&zeros), ZEROS);
        // A decoder of pages ends where the first frame does.
        makes(Codec::Lz4, &frame(&zeros).repeat(2), ZEROS);
    }

    #[test]
    fn hadoops_framing_and_blocks_are_bounded() {
        let block = lz4_flex::block::compress(&vec![0; ZEROS]);
        let lengths = [ZEROS as u32, block.len() as u32].map(u32::to_be_bytes).concat();
        for bytes in [[&lengths[..], &block].concat(), block, vec![9; 100]] {
            assert_eq!(Codec::Lz4.check(&bytes[..], 0), Ok(()));
            assert_eq!(Codec::Gzip.check(&bytes[..], 0), Ok(()));
        }
        assert_eq!(Codec::Bounded.check(&gzip(&[0; 100])[..], 0), Ok(()));
    }

    #[cfg(not(feature = "brotli"))]
    #[test]
    fn brotli_is_refused() {
        assert_eq!(Codec::Brotli.check(io::empty(), 0), Err(PageError::Brotli));
    }

    #[cfg(feature = "brotli")]
    #[test]
    fn what_comes_out_of_brotli_is_counted() {
        let mut compressed = Vec::new();
        let mut encoder = brotli::CompressorWriter::new(&mut compressed, 4096, 1, 22);
        encoder.write_all(&vec![0; ZEROS]).unwrap();
        drop(encoder);
        makes(Codec::Brotli, &compressed, ZEROS);
        compressed[0] = 0x91;
        assert_eq!(Codec::Brotli.check(&compressed[..], ZEROS), Err(PageError::Window));
    }
}
