//! Reads and writes of ranges of an engine's memory.

pub(super) use crate::drivers::space::{PAGE_BYTES, Space};
use crate::op::{Dependence, Op};

/// Bytes per copy operation: a line of the paper's machine, half of today's.
const COPY_BYTES: u64 = 32;

/// Reads of a range of bytes.
pub(super) fn reads(address: u64, bytes: u64) -> impl Iterator<Item = Op> {
    pieces(address, bytes).map(|(address, bytes)| Op::Load {
        address,
        bytes,
        after: Dependence::None,
    })
}

/// Writes of a range of bytes.
pub(super) fn writes(address: u64, bytes: u64) -> impl Iterator<Item = Op> {
    pieces(address, bytes).map(|(address, bytes)| Op::Store { address, bytes })
}

/// A read through the pointer loaded last.
pub(super) fn follow(address: u64) -> Op {
    Op::Load { address, bytes: 4, after: Dependence::Load }
}

/// A read.
pub(super) fn read(address: u64) -> Op {
    Op::Load { address, bytes: 4, after: Dependence::None }
}

/// A write.
pub(super) fn write(address: u64) -> Op {
    Op::Store { address, bytes: 4 }
}

fn pieces(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u16)> {
    let end = address + bytes;
    let first = address / COPY_BYTES;
    (first..end.div_ceil(COPY_BYTES)).map(move |piece| {
        let from = (piece * COPY_BYTES).max(address);
        let until = ((piece + 1) * COPY_BYTES).min(end);
        (from, (until - from) as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_bytes_once() {
        let of = |address, bytes| pieces(address, bytes).collect::<Vec<_>>();
        assert_eq!(of(64, 40), [(64, 32), (96, 8)]);
        assert_eq!(of(90, 10), [(90, 6), (96, 4)]);
        assert_eq!(of(32, 32), [(32, 32)]);
        let mut space = Space::new();
        let (one, two) = (space.reserve(1), space.reserve(5000));
        assert_eq!((two - one, space.reserve(1) - two), (4096, 8192));
    }
}
