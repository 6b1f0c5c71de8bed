//! What it is run on.
