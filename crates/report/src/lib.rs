//! Observations to one self-contained page.

#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod chart;
mod number;
