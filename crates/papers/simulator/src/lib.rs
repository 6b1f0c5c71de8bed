//! Modelled machines: caches, TLBs, a bus, and cores of one to eight threads, which run the same
//! walks and workloads as real ones.
//!
//! ```text
//!   script ──ops──► thread ──► core: width, window, stores, branches
//!                                │ address
//!                                ▼
//!                   TLB, hierarchy of caches (MESI, MSI), bus, memory    ──► counts and cycles
//! ```
//!
//! Everything is deterministic: integer ticks, no clock, no addresses of this process, no threads
//! of the operating system that could change an order. A figure from here is *modelled* (tier E)
//! wherever it is shown.
//!
//! Deliberately absent: this crate reads no clock, prints nothing and knows no study.

#![forbid(unsafe_code)]

mod branches;
pub mod bus;
pub mod cache;
pub mod catalogue;
pub mod core;
pub mod counts;
pub mod drivers;
pub mod geometry;
pub mod hierarchy;
mod line_history;
mod lru_set;
pub mod op;
mod prefetcher;
pub mod preset;
mod reservation_table;
pub mod run;
pub mod scheduler;
pub mod ticks;
mod tlb;
pub mod walks;
