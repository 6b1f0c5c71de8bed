//! Lines on their way: whoever needs one waits for it, and asks for it no second time.

use crate::line_history::LineHistory;
use crate::ticks::Ticks;

/// Lines remembered. More than any machine has on their way by far; two that share a place are the
/// exception, and then the older is taken to have arrived.
const PLACES: usize = 1024;

/// When lines arrive that were asked for lately.
#[derive(Debug, Clone)]
pub(super) struct Fills {
    lines: LineHistory<PLACES>,
    /// When the last of them arrives.
    latest: Ticks,
}

impl Fills {
    /// None, of lines of `1 << line_shift` bytes.
    pub(super) fn new(line_shift: u32) -> Self {
        Self { lines: LineHistory::new(line_shift), latest: 0 }
    }

    /// When the line of an address can be used that otherwise could be at `ready`.
    #[inline(always)]
    pub(super) fn ready(&self, address: u64, ready: Ticks) -> Ticks {
        if ready >= self.latest {
            return ready;
        }
        self.lines.when(address).map_or(ready, |arrives| ready.max(arrives))
    }

    /// A line will arrive.
    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, arrives: Ticks) {
        self.lines.note(address, arrives);
        self.latest = self.latest.max(arrives);
    }
}
