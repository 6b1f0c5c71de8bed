//! Write-combining buffers: lines on their way that gather stores.
//!
//! ```text
//!   store ──► store buffer ──retired, in order──► the nearest cache has its line: done
//!                                            └──► buffer of its line ──► farther caches, memory
//! ```
//!
//! A store to a line of such a buffer is combined with what is there, and leaves the store
//! buffer free sooner (Intel, Write Combining Store Buffers on Hyper-Threading Technology-Enabled
//! Systems). The store buffer then holds a thread up only while all buffers are in use. A store is
//! performed once it has retired.

use crate::hierarchy::Access;
use crate::line_history::LineHistory;
use crate::preset::{Contents, Preset};
use crate::reservation_table::SlotReservations;
use crate::ticks::{Ticks, ticks};

/// Lines remembered: more than any machine has buffers.
const PLACES: usize = 512;

/// The write-combining buffers of a core.
#[derive(Debug, Clone)]
pub(super) struct CombiningBuffers {
    buffers: SlotReservations,
    /// By line, until when a buffer gathers its stores.
    open: LineHistory<PLACES>,
}

/// A store that is to leave the store buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreStart {
    pub(super) address: u64,
    pub(super) issued: Ticks,
    /// The latency of the nearest cache.
    pub(super) nearest: Ticks,
}

impl CombiningBuffers {
    /// A number of buffers, each of a line of the nearest cache.
    pub(super) fn new(buffers: usize, preset: &Preset) -> Self {
        let nearest = preset.cache.iter().find(|level| level.holds != Contents::Instructions);
        let line = nearest.map_or(64, |level| level.line);
        Self {
            buffers: SlotReservations::new(buffers, ticks(preset.memory.latency)),
            open: LineHistory::new(line.trailing_zeros()),
        }
    }

    /// A store beyond the nearest cache, by `beyond`, in a buffer of its line; returns also how
    /// long it waited for one. Where its line's is open, it only joins the stores before it.
    #[inline]
    pub(super) fn gather(
        &mut self,
        store: StoreStart,
        beyond: impl FnOnce(Ticks) -> Access,
    ) -> (Access, Ticks) {
        let StoreStart { address, issued, nearest } = store;
        if self.open.last(address).is_some_and(|until| until > issued) {
            return (Access { ready: issued + nearest, ..beyond(issued) }, 0);
        }
        let admitted = self.buffers.free_from(issued);
        let access = beyond(admitted);
        if access.ready > admitted + nearest {
            self.buffers.take(admitted, access.ready);
            self.open.note(address, access.ready);
        }
        (access, admitted - issued)
    }
}

#[cfg(test)]
mod tests {
    use crate::core::Processor;
    use crate::op::{Dependence, Op};
    use crate::preset::tests::small;
    use crate::ticks::cycles;

    const LOAD: Op = Op::Load { address: 128, bytes: 4, after: Dependence::None };

    fn store(address: u64) -> Op {
        Op::Store { address, bytes: 4 }
    }

    /// A thread with a window of 64, two stores, one outstanding line and a number of buffers.
    fn ran(combining: u32, ops: &[Op]) -> Processor {
        let mut preset = small();
        (preset.core.window, preset.core.stores) = (64, 2);
        (preset.core.outstanding, preset.core.combining) = (1, combining);
        let mut processor = Processor::new(&preset).unwrap();
        ops.iter().for_each(|op| processor.run(0, *op));
        processor
    }

    fn now(combining: u32, ops: &[Op]) -> f64 {
        cycles(ran(combining, ops).now(0))
    }

    /// By hand: the first store begins at 0, is issued at 1, translated at 21, and its line is
    /// there at 121. A third store needs a place in the store buffer: without buffers that gather,
    /// at 121; with one, the first leaves at 23, as L1 takes 2.
    #[test]
    fn stores_to_a_line_leave_before_it_is_there() {
        let ops = [store(0), store(4), store(8)];
        assert_eq!([0, 1, 2].map(|buffers| now(buffers, &ops)), [121.0, 23.0, 23.0]);
    }

    /// By hand: with one buffer the second line's is free at 121, and its store leaves at 123; with
    /// two buffers at 23. The fourth store waits for that, or begins a cycle after the third, which
    /// waited for the first.
    #[test]
    fn each_line_takes_a_buffer() {
        let ops = [store(0), store(64), store(68), store(72)];
        assert_eq!([1, 2].map(|buffers| now(buffers, &ops)), [123.0, 24.0]);
    }

    /// One line on its way at a time: a load waits for that of the store, unless stores have
    /// buffers of their own; then only for the bus, which a line takes for 8 cycles.
    #[test]
    fn loads_need_no_buffer_of_stores() {
        let loaded = |buffers| {
            let mut processor = ran(buffers, &[store(0), Op::Compute { uops: 20 }, LOAD]);
            processor.drain(0);
            cycles(processor.now(0))
        };
        assert_eq!([0, 1].map(loaded), [221.0, 129.0]);
    }

    /// A store is performed after it has retired: behind a load from memory that is done at 121.
    #[test]
    fn stores_are_performed_in_order() {
        let left = |buffers| {
            let processor = ran(buffers, &[LOAD, store(0)]);
            cycles(*processor.cpus[0].store_buffer.back().unwrap())
        };
        assert_eq!([0, 1].map(left), [221.0, 123.0]);
    }
}
