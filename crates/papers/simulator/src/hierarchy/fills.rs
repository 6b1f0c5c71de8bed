//! Outstanding line fills: another access to the same line waits for the fill instead of a second
//! request.

use crate::line_history::LineHistory;
use crate::ticks::Ticks;

/// Lines remembered: far more than any machine has outstanding. If two share a slot, which is rare,
/// the older is taken to have arrived.
const PLACES: usize = 1024;

/// Arrival times of recently requested lines.
#[derive(Debug, Clone)]
pub(super) struct Fills {
    lines: LineHistory<PLACES>,
    /// Latest arrival time.
    latest: Ticks,
}

impl Fills {
    /// No fills, of lines of `1 << line_shift` bytes.
    pub(super) fn new(line_shift: u32) -> Self {
        Self { lines: LineHistory::new(line_shift), latest: 0 }
    }

    /// When a line that is otherwise available at `ready` can be used.
    #[inline(always)]
    pub(super) fn ready(&self, address: u64, ready: Ticks) -> Ticks {
        if ready >= self.latest {
            return ready;
        }
        self.lines.last(address).map_or(ready, |arrives| ready.max(arrives))
    }

    /// Records when a line will arrive.
    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, arrives: Ticks) {
        self.lines.note(address, arrives);
        self.latest = self.latest.max(arrives);
    }
}
