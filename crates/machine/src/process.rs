//! Resources that a server used between two moments: its processes and threads, its control group,
//! the machine around it.
//!
//! ```text
//! let mut tree = Tree::of(pid);
//! before = tree.look(root)      /proc/PID/stat       times, faults, also of children waited for
//!     … the measured work …     /proc/PID/task/TID   run delay (schedstat), context switches
//! after = tree.look(root)
//! after.since(&before)          ──► ResourceUse: CPU seconds, switches, delay, faults
//! ```
//!
//! The kernel forgets a process when its parent has waited for it, and keeps its times and faults
//! in the parent's sums of children (`cutime` and its like, proc(5)); those are counted. What a
//! thread or an unwaited process did after it was last seen is lost, and then the figures say that
//! they are lower bounds. A server in a control group of its own loses nothing: see [`group`].

mod allowance;
pub mod group;
mod guard;
pub mod inheritance;
pub mod machine_wide;
mod measures;
mod neighbours;
pub mod peer;
mod record;
mod resource_use;
mod tree;

pub use allowance::{Allowance, throttled_s};
pub use guard::Guard;
pub use neighbours::Neighbours;
pub use record::{migrations_of, stat_fields};
pub use resource_use::{CpuClock, ResourceUse};
pub use tree::{Snapshot, Tree, running_below};

/// Clock ticks per second in `/proc`: `USER_HZ`, 100 in the user interface of every architecture
/// this program is built for, whatever rate the kernel itself runs at (proc(5), time(7)).
pub(crate) const TICKS_PER_S: f64 = 100.0;
