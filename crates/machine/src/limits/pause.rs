//! The cost of the processor's pause instruction.
//!
//! A few cycles on old cores, 40 on AMD's, 140 on Intel's since Skylake: a loop that waits by
//! counting pauses must know. The timed call is `std::hint::spin_loop`, the instruction that our
//! own waiting loops execute (`pause` on x86, `isb` on ARM).

use crate::clock::Moment;

const PAUSES: u32 = 1 << 12;
const BATCHES: usize = 16;

/// Nanoseconds of one pause, by this CPU's own time: the best of some batches.
pub(super) fn ns() -> f64 {
    let batch = |_| {
        let start = Moment::now();
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
        start.elapsed().cpu_s * 1e9 / f64::from(PAUSES)
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pause_takes_some_time() {
        let ns = super::ns();
        assert!(ns.is_finite() && ns > 0.0, "{ns}");
    }
}
