//! What it is run on.

#![forbid(unsafe_code)]
