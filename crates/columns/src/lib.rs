//! Arrow in, Arrow out.
