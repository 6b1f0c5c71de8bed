//! Whether spill files are compressed: as is faster here.
//!
//! A slow disk is worth compressing for, a page cache that takes everything is not, and random keys
//! hardly shrink. So the first bytes of a directory are written in both ways, and then those whose
//! writing and reading took less time a byte, with a look at the other way now and then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_ipc::CompressionType;

/// Bytes that each way is tried with before it is judged.
const TRIED_BYTES: u64 = 4 << 20;
/// One file in this many is written in the other way, as the disk may have become slow.
const LOOK_EVERY: u64 = 32;

/// The costs of both ways, shared by the files of a directory.
#[derive(Debug, Default)]
pub(super) struct Compression {
    plain: Costs,
    compressed: Costs,
    files: AtomicU64,
}

#[derive(Debug, Default)]
struct Costs {
    written: Cost,
    read: Cost,
}

#[derive(Debug, Default)]
struct Cost {
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Cost {
    fn add(&self, bytes: usize, time: Duration) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Nanoseconds a byte; none before it is known.
    fn a_byte(&self) -> Option<f64> {
        let (bytes, time) = (self.bytes(), self.nanoseconds.load(Ordering::Relaxed));
        (bytes > 0).then(|| time as f64 / bytes as f64)
    }
}

impl Compression {
    /// Of the next file.
    pub(super) fn choose(&self) -> Option<CompressionType> {
        let file = self.files.fetch_add(1, Ordering::Relaxed);
        let tried = |costs: &Costs| costs.written.bytes() >= TRIED_BYTES;
        let compresses = match (tried(&self.plain), tried(&self.compressed)) {
            (true, true) => self.gains() != (file.is_multiple_of(LOOK_EVERY)),
            (true, false) => true,
            (false, true) => false,
            (false, false) => file.is_multiple_of(2),
        };
        compresses.then_some(CompressionType::LZ4_FRAME)
    }

    /// Whether compressing saves time.
    fn gains(&self) -> bool {
        let sum = |costs: &Costs, both_read: bool| {
            let read = costs.read.a_byte().filter(|_| both_read);
            costs.written.a_byte().unwrap_or(0.0) + read.unwrap_or(0.0)
        };
        let both_read = [&self.plain, &self.compressed].map(|costs| costs.read.a_byte().is_some());
        let both_read = both_read == [true; 2];
        sum(&self.compressed, both_read) < sum(&self.plain, both_read)
    }

    fn costs(&self, compressed: bool) -> &Costs {
        if compressed { &self.compressed } else { &self.plain }
    }

    /// `bytes`, before compression, were written.
    pub(super) fn wrote(&self, compressed: bool, bytes: usize, time: Duration) {
        self.costs(compressed).written.add(bytes, time);
    }

    /// `bytes`, after decompression, were read.
    pub(super) fn read(&self, compressed: bool, bytes: usize, time: Duration) {
        self.costs(compressed).read.add(bytes, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(compression: &Compression) -> usize {
        (0..320).filter(|_| compression.choose().is_some()).count()
    }

    #[test]
    fn both_ways_are_tried_and_the_faster_is_taken() {
        let compression = Compression::default();
        assert_eq!(chosen(&compression), 160);
        let (bytes, second) = (8 << 20, Duration::from_secs(1));
        compression.wrote(true, bytes, second);
        assert_eq!(chosen(&compression), 0, "the other one is not known yet");
        compression.wrote(false, bytes, second / 2);
        assert_eq!(chosen(&compression), 10);
        // The time saved by writing may be lost by reading.
        compression.read(true, bytes, second);
        assert_eq!(chosen(&compression), 10, "one is not compared with nothing");
        compression.read(false, bytes, second * 2);
        assert_eq!(chosen(&compression), 310);
    }
}
