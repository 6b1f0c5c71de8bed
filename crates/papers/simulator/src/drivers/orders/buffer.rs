//! The buffer: which pages are there, who uses them, who leaves.
//!
//! ```text
//!   page ──hash──► bucket [latch | chain] ──► frame [page, pins, latch, used lately]
//! ```
//!
//! A page has one address in the model, in the buffer or not: by the time that it comes back from
//! disk, none of its lines is left in a cache, which is what reading it there would see to.

use super::footprint::{PAGE, REPLACE, UNPIN};
use super::latch::{At, Latch, Mode};
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

/// The buffer.
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

    /// The frames of a chain up to the page's, and whether it is there; then it is pinned.
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

    /// Puts a page in place of one that was not used lately: the frames that were looked at.
    /// Nothing where somebody else brought it, or all are in use.
    fn replace(&mut self, page: u32) -> Vec<usize> {
        let bucket = self.bucket(page);
        let mut looked = Vec::new();
        if self.buckets[bucket].1.iter().any(|at| self.frames[*at as usize].page == Some(page)) {
            return looked;
        }
        // Twice around: the first takes the marks away.
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
        self.world().events.page_requests += 1;
        loop {
            let bucket = self.world().buffer.bucket(page);
            self.latch(At::Page(bucket), Mode::Exclusive).await;
            let (looked, found) = self.world().buffer.pin(page);
            let mut data: Vec<_> = {
                let world = self.world();
                looked.iter().map(|frame| follow(world.buffer.frame_address(*frame))).collect()
            };
            let last = looked.last().copied();
            if let Some(frame) = last.filter(|_| found) {
                data.push(write(self.world().buffer.frame_address(frame)));
            }
            self.call(PAGE, &data);
            self.unlatch(At::Page(bucket), Mode::Exclusive).await;
            if let Some(frame) = last.filter(|_| found) {
                self.latch(At::Frame(frame), mode).await;
                return frame;
            }
            self.bring(page).await;
        }
    }

    /// Reads a page from disk: another client has the CPU meanwhile.
    async fn bring(&self, page: u32) {
        self.latch(At::Hand, Mode::Exclusive).await;
        let looked = {
            let mut world = self.world();
            world.events.page_reads += 1;
            let looked = world.buffer.replace(page);
            looked.iter().map(|frame| world.buffer.frame_address(*frame)).collect::<Vec<_>>()
        };
        let data: Vec<_> = looked.iter().flat_map(|frame| [read(*frame), write(*frame)]).collect();
        self.call(REPLACE, &data);
        self.unlatch(At::Hand, Mode::Exclusive).await;
        self.give_way().await;
    }

    /// Lets a page go.
    pub(super) async fn unpin(&self, frame: usize, mode: Mode) {
        let address = self.world().buffer.frame_address(frame);
        self.call(UNPIN, &[read(address), write(address)]);
        self.unlatch(At::Frame(frame), mode).await;
        self.world().buffer.frames[frame].pins -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is pinned stays, who was used lately stays once.
    #[test]
    fn the_hand_leaves_what_is_used() {
        let mut buffer = Buffer::new(8, &mut Space::new());
        for page in 0..8 {
            assert_eq!(buffer.replace(page), [page as usize]);
        }
        assert!(buffer.replace(3).is_empty(), "it is there");
        let (looked, found) = buffer.pin(0);
        assert!(found && looked.last() == Some(&0));
        // All were used: once around, and the first that is not pinned goes.
        let looked = buffer.replace(100);
        assert_eq!(looked, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert!(!buffer.pin(1).1 && buffer.pin(0).1 && buffer.pin(100).1);
        assert!(!buffer.is_quiet());
    }
}
