//! Arrow in, Arrow out.

#![forbid(unsafe_code)]
