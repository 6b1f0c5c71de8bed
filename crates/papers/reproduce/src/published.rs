//! Figures of the two papers with counters, as data, and what they say of each other.
//!
//! ```text
//! published/keeton.toml     tables 1 to 18, figures 2, 3, 8 ─► Paper ─┬► tables and claims
//! published/hassanein.toml  tables 1, 2, levels of clients            └► derived: recomputed
//!                                                those that disagree ──► contradictions
//! ```
//!
//! A printed figure is an interval: 0.66 is anything that rounds to it. A recomputed one disagrees
//! with what is printed only if no values within the rounding of its inputs give it. So a 2.90
//! where the paper prints 2.89 is not a contradiction, and a 14 where it prints 11 is one.

mod claim;
mod configuration;
mod contradiction;
mod derived;
mod paper;
mod printed_figure;
mod sums;

use std::sync::OnceLock;

pub use claim::Claim;
pub use configuration::{Access, Configuration, State};
pub(crate) use contradiction::significant;
pub use contradiction::{Contradiction, contradictions};
pub use derived::{Agreement, Input, Nature, RecomputedFigure, derived};
pub use paper::{Cell, Column, Metric, Paper, Row, Table};
pub use printed_figure::{PrintedFigure, PrintedFigureError, Quantity};

static KEETON: &str = include_str!("../published/keeton.toml");
static HASSANEIN: &str = include_str!("../published/hassanein.toml");

/// Keeton, Patterson, He, Raphael, Baker (1998): on-line transactions on a quad Pentium Pro.
pub fn keeton() -> &'static Paper {
    static PAPER: OnceLock<Paper> = OnceLock::new();
    PAPER.get_or_init(|| read(KEETON))
}

/// Hassanein, Rashid, Hammad (2008): PostgreSQL on a Pentium 4 with and without SMT.
pub fn hassanein() -> &'static Paper {
    static PAPER: OnceLock<Paper> = OnceLock::new();
    PAPER.get_or_init(|| read(HASSANEIN))
}

fn read(text: &str) -> Paper {
    toml::from_str(text).expect("the tests read the same text")
}

#[cfg(test)]
mod tests;
