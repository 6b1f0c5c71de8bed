//! A stream prefetcher: misses of consecutive lines fetch the lines after them.

use crate::preset::{Prefetcher, Preset};

/// Streams of a core's misses.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    /// By stream: the line that would continue it.
    next: Vec<u64>,
    /// When each stream was used last, and its number: `turn * STREAMS_MAX + stream`.
    used: Vec<u64>,
    turn: u64,
    ahead: u64,
    line_shift: u32,
    page_shift: u32,
}

/// Most streams of a preset.
const STREAMS_MAX: u64 = 64;

/// The next line of an unused stream: beyond any address.
const NONE: u64 = 1 << 63;

impl Streams {
    pub(crate) fn new(prefetcher: &Prefetcher, preset: &Preset) -> Self {
        let line = preset.cache.last().map_or(64, |level| level.line);
        Self {
            next: vec![NONE; prefetcher.streams as usize],
            used: (0..u64::from(prefetcher.streams)).collect(),
            turn: 0,
            ahead: u64::from(prefetcher.ahead),
            line_shift: line.trailing_zeros(),
            page_shift: preset.page.trailing_zeros(),
        }
    }

    /// A line came from memory. The second of two neighbours makes a stream, which is followed
    /// within its page: the next page is another frame of memory.
    pub(crate) fn missed(&mut self, address: u64, mut fetch: impl FnMut(u64)) {
        self.turn += 1;
        let line = address >> self.line_shift;
        let (mut found, mut oldest) = (usize::MAX, u64::MAX);
        // Branch-free: which stream matches is unpredictable.
        let (next, used) = (&self.next[..], &self.used[..self.next.len()]);
        for at in (0..next.len()).rev() {
            // The stream's own lines were prefetched, so that its next miss is some lines further
            // on.
            found = if line.wrapping_sub(next[at]) <= self.ahead { at } else { found };
            oldest = oldest.min(used[at]);
        }
        let goes_on = found != usize::MAX;
        let stream = if goes_on { found } else { (oldest % STREAMS_MAX) as usize };
        self.next[stream] = line + 1;
        self.used[stream] = self.turn * STREAMS_MAX + stream as u64;
        if goes_on {
            let end = ((address >> self.page_shift) + 1) << self.page_shift >> self.line_shift;
            for ahead in line + 1..(line + self.ahead + 1).min(end) {
                fetch(ahead << self.line_shift);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(misses: &[u64], streams: u32) -> Vec<u64> {
        let preset = crate::preset::tests::small();
        let mut streams = Streams::new(&Prefetcher { streams, ahead: 2 }, &preset);
        let mut lines = Vec::new();
        for line in misses {
            streams.missed(line * 64, |address| lines.push(address / 64));
        }
        lines
    }

    #[test]
    fn two_neighbours_make_a_stream() {
        assert_eq!(fetched(&[5, 9, 6, 30, 2], 4), [7, 8]);
        // It goes on where its own lines end.
        assert_eq!(fetched(&[5, 6, 9], 4), [7, 8, 10, 11]);
        assert!(fetched(&[5, 4, 3], 4).is_empty());
    }

    #[test]
    fn it_ends_with_its_page() {
        assert_eq!(fetched(&[61, 62], 4), [63]);
        assert!(fetched(&[62, 63], 4).is_empty());
    }

    #[test]
    fn it_follows_as_many_as_it_has() {
        let two = [100, 200, 101, 201];
        assert_eq!(fetched(&two, 2), [102, 103, 202, 203]);
        assert!(fetched(&two, 1).is_empty());
    }
}
