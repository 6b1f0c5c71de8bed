//! Which schedule drives the look-ups of a batch.

/// How the look-ups of a batch are interleaved. Answers never depend on it.
///
/// ```
/// use workahead_lookup::{HashIndex, Technique};
/// let mut index: HashIndex<u32, u32> = (0..1000).map(|key| (key, key * key)).collect();
/// for technique in [Technique::InTurn, Technique::Distance(8), Technique::Lanes(8)] {
///     index.set_technique(Some(technique));
///     let mut found = [None; 2];
///     index.get_many(&[7, 5000], &mut found);
///     assert_eq!(found, [Some(&49), None]);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    /// One key to its end, then the next: for tables in cache. A hash index of 1 to 16 MiB hints at
    /// the words and entries of 64 keys before it compares one.
    InTurn,
    /// A key to its end, with a hint for the one this many keys ahead: for one line a look-up.
    Distance(u16),
    /// One step of each of this many keys, finished ones replaced at once (asynchronous memory
    /// access chaining; Kocberber et al., VLDB 2015): for chains and trees.
    Lanes(u16),
    /// This many keys step by step, finished ones left out: for look-ups of one or two lines. A
    /// hash index takes at most 128.
    Rounds(u16),
}

/// Tables up to this size are looked up in turn: half of a usual second-level cache, whose
/// latency an out-of-order core hides by itself.
const IN_CACHE_BYTES: usize = 1 << 20;

impl Technique {
    /// The rule for a table of this size, and what serves a larger one best. That is never a
    /// distance, even where most look-ups read one line: the others are waited for, which with
    /// memory as far away as 180 ns costs more than all else.
    pub(crate) const fn chosen(bytes: usize, beyond_caches: Self) -> Self {
        if bytes <= IN_CACHE_BYTES { Self::InTurn } else { beyond_caches }
    }
}

/// Keys of one drive: rows are counted in 32 bits.
const ROWS_MAX: usize = 1 << 30;

/// Keys and their places, in runs that one drive takes.
pub(crate) fn runs<'a, Q, T>(
    keys: &'a [Q],
    places: &'a mut [T],
) -> impl Iterator<Item = (&'a [Q], &'a mut [T])> {
    keys.chunks(ROWS_MAX).zip(places.chunks_mut(ROWS_MAX))
}

/// Looks parts of the keys up on threads of their own.
#[cfg(feature = "std")]
pub(crate) fn on_threads<Q: Sync, T: Send>(
    keys: &[Q],
    places: &mut [T],
    threads: core::num::NonZero<usize>,
    look_up: impl Fn(&[Q], &mut [T]) + Sync,
) {
    let part = keys.len().div_ceil(threads.get()).max(1);
    let look_up = &look_up;
    std::thread::scope(|scope| {
        for (keys, places) in keys.chunks(part).zip(places.chunks_mut(part)) {
            scope.spawn(move || look_up(keys, places));
        }
    });
}

/// Drives a walk over rows by a technique.
macro_rules! drive {
    ($technique:expr, $walk:expr, $rows:expr, $sink:expr) => {{
        use workahead_walks::schedule::{Distance, InTurn, Lanes, Rounds, Schedule, WIDTH_MAX};
        let left = $rows.left();
        let width = |width: u16| usize::from(width).min(left).clamp(1, WIDTH_MAX);
        let (walk, rows, sink) = ($walk, $rows, $sink);
        // The second level holds more misses under way than the first has buffers.
        let hints = &mut workahead_walks::Prefetching::<workahead_walks::memory::ToL2>::default();
        match $technique {
            $crate::Technique::InTurn => {
                InTurn::new().drive(walk, rows, &mut workahead_walks::Direct, sink)
            }
            $crate::Technique::Distance(rows_ahead) => {
                Distance::new(width(rows_ahead)).drive(walk, rows, hints, sink)
            }
            $crate::Technique::Lanes(lanes) => {
                Lanes::new(width(lanes)).drive(walk, rows, hints, sink)
            }
            $crate::Technique::Rounds(keys) => {
                Rounds::new(width(keys)).drive(walk, rows, hints, sink)
            }
        };
    }};
}
pub(crate) use drive;
