//! Observations to one self-contained page.
