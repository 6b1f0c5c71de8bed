//! Observations to one self-contained page.

#![forbid(unsafe_code)]
