//! Five papers, experiment by experiment: what they print, arithmetic on it, and what was found
//! here.
//!
//! ```text
//!   ledger ──► rows of a paper ─────────┬──► verdicts: one row each ─┬─► list of figures ─┐
//!   results of its studies ─────────────┤                            ├────────────────────┴► page,
//!   published: tables, claims, functions┴──► tables: printed │ ours ─┘                      JSON
//!                 └──► recomputed figures, contradictions      (`counters papers`)
//! ```
//!
//! Everything that is about a paper and that no tool needs is here, so that the crates that
//! measure know no paper. What a study claims and how a claim is judged stay with the study: a
//! claim is an expectation, from wherever it comes.
//!
//! Deliberately absent: it runs nothing and prints nothing.

#![forbid(unsafe_code)]

pub mod chang;
pub mod error;
pub mod functions;
pub mod ledger;
pub mod list_of_figures;
pub mod page;
pub mod paper;
pub mod published;
pub mod tables;
pub mod verdicts;
