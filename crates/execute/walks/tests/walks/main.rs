//! Every walk of the crate: its laws, and its answers under every technique, against plain oracles.

mod allocator;
mod cases;
mod conformance;
mod sizes;
mod strategies;
mod techniques;
mod threads;
