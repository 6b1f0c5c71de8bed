//! The buffer pool: look-up, pins, replacement.
//!
//! ```text
//!   page ──hash──► bucket [latch | chain] ──► frame [page, pins, latch, used lately]
//! ```
//!
//! A page has one address in the model, in the buffer or not: by the time that it returns from
//! disk, none of its lines is left in a cache, so no re-read has to be modelled.

use super::footprint::{PAGE, REPLACE, UNPIN};
use super::latch::{Latch, LatchId, Mode};
use super::session::Session;
use super::space::{Space, follow, read, write};

/// Bytes of a bucket and of a frame's header.
const ENTRY_BYTES: u64 = 64;

#[derive(Debug, Clone, Default)]
struct Frame {
    page: Option<u32>,
    pins: u32,
    used: bool,
    latch: Latch,
}

/// The buffer pool.
#[derive(Debug)]
pub(super) struct Buffer {
    buckets: Vec<(Latch, Vec<u32>)>,
    frames: Vec<Frame>,
    hand: usize,
    hand_latch: Latch,
    base: u64,
}

impl Buffer {
    pub(super) fn new(pages: u32, space: &mut Space) -> Self {
        let buckets = (pages.max(8) as usize).next_power_of_two();
        let frames = vec![Frame::default(); pages.max(8) as usize];
        let base = space.reserve((buckets + frames.len() + 1) as u64 * ENTRY_BYTES);
        let buckets = vec![(Latch::default(), Vec::new()); buckets];
        Self { buckets, frames, hand: 0, hand_latch: Latch::default(), base }
    }

    fn bucket(&self, page: u32) -> usize {
        page.wrapping_mul(0x9E37_79B1) as usize >> 7 & (self.buckets.len() - 1)
    }

    fn frame_address(&self, frame: usize) -> u64 {
        self.base + (self.buckets.len() + 1 + frame) as u64 * ENTRY_BYTES
    }

    pub(super) fn bucket_latch(&mut self, bucket: usize) -> (&mut Latch, u64) {
        (&mut self.buckets[bucket].0, self.base + (bucket as u64 + 1) * ENTRY_BYTES)
    }

    pub(super) fn frame_latch(&mut self, frame: usize) -> (&mut Latch, u64) {
        let address = self.frame_address(frame);
        (&mut self.frames[frame].latch, address)
    }

    pub(super) fn hand_latch(&mut self) -> (&mut Latch, u64) {
        (&mut self.hand_latch, self.base)
    }

    /// Searches a chain for a page and pins it: the frames visited, and whether it was found.
    fn pin(&mut self, page: u32) -> (Vec<usize>, bool) {
        let chain = &self.buckets[self.bucket(page)].1;
        let found = chain.iter().position(|frame| self.frames[*frame as usize].page == Some(page));
        let looked = found.map_or(chain.len(), |found| found + 1);
        let looked: Vec<usize> = chain[..looked].iter().map(|frame| *frame as usize).collect();
        if let (Some(_), Some(frame)) = (found, looked.last()) {
            let frame = &mut self.frames[*frame];
            frame.pins += 1;
            frame.used = true;
        }
        (looked, found.is_some())
    }

    /// Replaces a page not used recently: the frames visited. Empty if another client read the
    /// page, or all frames are in use.
    fn replace(&mut self, page: u32) -> Vec<usize> {
        let bucket = self.bucket(page);
        let mut looked = Vec::new();
        if self.buckets[bucket].1.iter().any(|at| self.frames[*at as usize].page == Some(page)) {
            return looked;
        }
        // Two rounds: the first clears the use marks.
        for _ in 0..2 * self.frames.len() {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.frames.len();
            looked.push(at);
            let frame = &mut self.frames[at];
            if frame.pins > 0 || std::mem::take(&mut frame.used) {
                continue;
            }
            frame.used = true;
            if let Some(before) = frame.page.replace(page) {
                let bucket = self.bucket(before);
                self.buckets[bucket].1.retain(|frame| *frame as usize != at);
            }
            self.buckets[bucket].1.push(at as u32);
            break;
        }
        looked
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.hand_latch.is_free()
            && self.buckets.iter().all(|(latch, _)| latch.is_free())
            && self.frames.iter().all(|frame| frame.latch.is_free() && frame.pins == 0)
    }
}

impl Session {
    /// Finds a page in the buffer, or reads it, and latches it: its frame.
    pub(super) async fn page(&self, page: u32, mode: Mode) -> usize {
        self.engine().events.page_requests += 1;
        loop {
            let bucket = self.engine().buffer.bucket(page);
            self.latch(LatchId::Page(bucket), Mode::Exclusive).await;
            let (looked, found) = self.engine().buffer.pin(page);
            let mut data: Vec<_> = {
                let engine = self.engine();
                looked.iter().map(|frame| follow(engine.buffer.frame_address(*frame))).collect()
            };
            let last = looked.last().copied();
            if let Some(frame) = last.filter(|_| found) {
                data.push(write(self.engine().buffer.frame_address(frame)));
            }
            self.call(PAGE, &data);
            self.unlatch(LatchId::Page(bucket), Mode::Exclusive).await;
            if let Some(frame) = last.filter(|_| found) {
                self.latch(LatchId::Frame(frame), mode).await;
                return frame;
            }
            self.bring(page).await;
        }
    }

    /// Reads a page from disk: another client runs meanwhile.
    async fn bring(&self, page: u32) {
        self.latch(LatchId::Hand, Mode::Exclusive).await;
        let looked = {
            let mut engine = self.engine();
            engine.events.page_reads += 1;
            let looked = engine.buffer.replace(page);
            looked.iter().map(|frame| engine.buffer.frame_address(*frame)).collect::<Vec<_>>()
        };
        let data: Vec<_> = looked.iter().flat_map(|frame| [read(*frame), write(*frame)]).collect();
        self.call(REPLACE, &data);
        self.unlatch(LatchId::Hand, Mode::Exclusive).await;
        self.give_way().await;
    }

    /// Unlatches and unpins a page.
    pub(super) async fn unpin(&self, frame: usize, mode: Mode) {
        let address = self.engine().buffer.frame_address(frame);
        self.call(UNPIN, &[read(address), write(address)]);
        self.unlatch(LatchId::Frame(frame), mode).await;
        self.engine().buffer.frames[frame].pins -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pinned page stays; a recently used one stays once.
    #[test]
    fn the_clock_hand_skips_used_pages() {
        let mut buffer = Buffer::new(8, &mut Space::new());
        for page in 0..8 {
            assert_eq!(buffer.replace(page), [page as usize]);
        }
        assert!(buffer.replace(3).is_empty(), "it is there");
        let (looked, found) = buffer.pin(0);
        assert!(found && looked.last() == Some(&0));
        // All were used: one round, then the first unpinned page is replaced.
        let looked = buffer.replace(100);
        assert_eq!(looked, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert!(!buffer.pin(1).1 && buffer.pin(0).1 && buffer.pin(100).1);
        assert!(!buffer.is_quiet());
    }
}
