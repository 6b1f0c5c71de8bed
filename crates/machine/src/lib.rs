//! What this computer is: topology, siblings, caches, pages, pinning; and its measured limits.

pub mod pages;
