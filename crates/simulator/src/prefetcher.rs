//! A prefetcher of streams: misses of lines one after the other bring those after them.

use crate::preset::{Prefetcher, Preset};

/// Streams that a core's misses form.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    /// By stream: the line that would go on with it, and when it was used last.
    next: Vec<(u64, u64)>,
    turn: u64,
    ahead: u64,
    line: u64,
    page: u64,
}

impl Streams {
    pub(crate) fn new(prefetcher: &Prefetcher, preset: &Preset) -> Self {
        let line = preset.cache.last().map_or(64, |level| u64::from(level.line));
        Self {
            next: vec![(u64::MAX, 0); prefetcher.streams as usize],
            turn: 0,
            ahead: u64::from(prefetcher.ahead),
            line,
            page: u64::from(preset.page),
        }
    }

    /// A line came from memory. The second of two neighbours makes a stream, which is followed
    /// within its page: what comes after that is another frame of memory.
    pub(crate) fn missed(&mut self, address: u64, mut fetch: impl FnMut(u64)) {
        self.turn += 1;
        let line = address / self.line;
        let end = (address / self.page + 1) * self.page / self.line;
        let found = self.next.iter_mut().find(|(next, _)| {
            // The stream's own lines came ahead, so that its next miss is some lines further on.
            line >= *next && line <= next.saturating_add(self.ahead)
        });
        if let Some((next, used)) = found {
            (*next, *used) = (line + 1, self.turn);
            for ahead in line + 1..=(line + self.ahead).min(end - 1) {
                fetch(ahead * self.line);
            }
            return;
        }
        if let Some(oldest) = self.next.iter_mut().min_by_key(|(_, used)| *used) {
            *oldest = (line + 1, self.turn);
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
