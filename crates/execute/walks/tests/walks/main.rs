//! Every walk of the crate: its laws, and its answers under every technique, against plain oracles.

mod allocator;
mod cases;
mod laws;
mod sizes;
mod strategies;
mod techniques;
mod threads;
