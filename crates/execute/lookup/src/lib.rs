//! Hash and ordered indexes whose look-ups come in batches, so that their cache misses overlap.
//!
//! ```
//! use workahead_lookup::HashIndex;
//! let index: HashIndex<u64, &str> = [(1, "one"), (2, "two")].into_iter().collect();
//! let mut found = [None; 3];
//! index.get_many(&[2, 3, 1], &mut found);
//! assert_eq!(found, [Some(&"two"), None, Some(&"one")]);
//! ```
//!
//! One look-up in a table that is larger than the caches waits for memory, and the next waits after
//! it. A batch asks for the lines of many keys before it reads the first: the waits overlap, and
//! what a look-up costs falls to what a line costs. The look-ups are walks of `workahead-walks`,
//! driven by its schedules; which one is chosen by [`Technique`], and answers never depend on it.
//!
//! | | one key | many keys |
//! |---|---|---|
//! | [`HashIndex`] | as any hash table | mostly one line a key (entries up to 18 bytes) |
//! | [`OrderedIndex`] | a CSB+-tree: ranges, too | the lower levels' lines; upper levels are in cache |
//!
//! The feature `hashbrown` adds `TableLookup`: batches for those who keep their own table. The
//! feature `helper` adds `Executor`: batches with a helper thread, where a race says that it wins.
//! Without the feature `std` the crate is `no_std` and needs `alloc`: no seeds from the system, no
//! huge pages, no threads.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod hash_index;
#[cfg(feature = "hashbrown")]
mod hashbrown_table;
mod hasher;
mod memory;
pub mod ordered_index;
mod technique;

pub use hash_index::HashIndex;
#[cfg(feature = "hashbrown")]
pub use hashbrown_table::TableLookup;
pub use hasher::{FoldedHasher, FoldedState};
pub use memory::Pages;
pub use ordered_index::OrderedIndex;
pub use technique::Technique;
#[cfg(feature = "helper")]
pub use workahead_walks::Executor;
