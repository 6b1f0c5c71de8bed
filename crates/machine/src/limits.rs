//! What this machine can do, measured.

pub mod field;
pub mod latency;
pub mod lines;
mod team;

/// Words of a huge page.
const HUGE_PAGE_WORDS: usize = crate::pages::HUGE_PAGE_BYTES / size_of::<u64>();
