//! Results on standard output, as text or as JSON.
//!
//! `println!` panics when the reader has gone (`| head`); these functions return
//! [`ReaderGone`](crate::errors::ReaderGone) instead, which ends the command quietly.
//! Progress and remarks belong on standard error.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

use crate::errors::ReaderGone;

/// Prints text, ending with one newline.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    bytes(text.trim_end_matches('\n').as_bytes())?;
    bytes(b"\n")
}

/// Prints one value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_json::to_string_pretty(value).context("can't write the result as JSON")?)
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        Err(error) => Err(error).context("can't write to standard output"),
    }
}
