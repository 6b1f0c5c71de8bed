//! `workahead cluster` as processes: answers, workers that die, who may ask, and what is read.
//!
//! `WORKAHEAD_KILLS` is how many workers are killed.
#![cfg(feature = "cluster")]

mod answers;
mod clients;
mod deaths;
#[path = "../process/mod.rs"]
mod process;
mod running;
mod stops;
mod trust;
mod units;
