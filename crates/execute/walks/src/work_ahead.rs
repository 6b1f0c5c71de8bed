//! The work-ahead set: a helper thread preloads what the main thread will soon need.
//!
//! Zhou, Cieslewicz, Ross, Shah: *Improving Database Performance on Simultaneous Multithreading
//! Processors*, VLDB 2005, §4.
//!
//! ```text
//!                 post(p, s) ──►┌────┬────┬────┬────┬────┬────┐
//!   main thread                 │p, s│p, s│p, s│p, s│p, s│p, s│   a circular array of slots
//!   gets back the slot's ◄──────└────┴────┴────┴────┴────┴────┘
//!   previous content                         ▲  read, load *p, step backward (or forward)
//!                                       helper thread
//! ```
//!
//! The main thread never waits for the helper and the helper never writes: answers do not depend on
//! it, whether it is slow, stopped or dead. To that the code adds
//! * several references an entry, padded with the address of a dummy line (§4.1);
//! * admission by the number of valid pointers, which is the set's *size* (§4.1, §4.2);
//! * direction and spin-wait of the helper (§4.3, §4.4), a private copy of each slot's last
//!   pointer, never spinning on the dummy;
//! * how it waits: by `pause`, or by whatever else the CPU has to give the core to the main thread;
//! * the paper's negative variants, as named options: a mutex around each slot, a helper that
//!   skips lines it has just loaded, sleeping instead of pausing; and one the paper does not have,
//!   skipping duplicates in `post`.
//!
//! The state `s` is the main thread's alone, and so may also live in an array of its own: then only
//! pointers are shared, and the lines that both threads touch are few.

mod direct;
mod helper;
mod run;
mod set;
mod slots;
mod states;
#[cfg(all(test, not(loom)))]
mod tests;
mod throttle;
mod touch;

#[cfg(loom)]
pub use direct::run_direct_modelled;
pub use direct::{ROWS_A_CHECK, run_direct};
pub use helper::{Direction, Helper, HelperReport, RECENT_LINES, Skip, Wait};
pub use run::{HelperRun, Options, Placement, Preloadable, post_over, run};
pub use set::{Deduplicate, POSTED_LINES, Stage, Turn, TurnEnd, WorkAheadSet, drive};
pub use slots::{ENTRIES_MAX, Guard, Slots, States, dummy};
pub use throttle::Throttle;
pub use touch::touch;
