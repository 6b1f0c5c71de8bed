//! Conversion from the text of valgrind's lackey.
//!
//! ```text
//!   valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM
//!
//!   ==1== …                 what valgrind itself says: skipped
//!   I  04000840,3           an instruction: address in hexadecimal, bytes in decimal
//!    L 1ffefff5a8,8         what it read, wrote (S), read and wrote (M)
//! ```

use std::io::{BufRead, Read};

use super::{ADDRESS_BITS, Kind, Record, TraceError};

/// Longest line: far beyond those of lackey and of valgrind's messages.
const LINE_MAX: u64 = 4096;

/// The records of a text, all of thread 0, as lackey does not distinguish threads. Instructions
/// without data are counted in the next record, and in one of their own at the end.
#[derive(Debug)]
pub(crate) struct Lackey<R> {
    from: R,
    /// Number of the last line.
    line: u64,
    text: Vec<u8>,
    /// Whether the last instruction has had no data so far.
    is_bare: bool,
    is_over: bool,
}

impl<R: BufRead> Lackey<R> {
    /// Reads from a text.
    pub(crate) const fn new(from: R) -> Self {
        Self { from, line: 0, text: Vec::new(), is_bare: false, is_over: false }
    }

    fn record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            self.text.clear();
            self.line += 1;
            let read = self.from.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.text);
            let read = read.map_err(|source| TraceError::Io { at: 0, source })?;
            if read == 0 {
                return Ok(self.rest());
            }
            let Some(text) = self.text.strip_suffix(b"\n") else {
                return Err(match read as u64 == LINE_MAX {
                    true => self.refused(),
                    false => TraceError::Unended { line: self.line },
                });
            };
            if text.starts_with(b"==") || text.is_empty() {
                continue;
            }
            let (kind, address, bytes) = access(text).ok_or_else(|| self.refused())?;
            let instructions = u32::from(kind == Kind::Fetch && self.is_bare);
            self.is_bare = kind == Kind::Fetch;
            return Ok(Some(Record { thread: 0, kind, address, bytes, instructions }));
        }
    }

    /// An instruction without data at the end.
    fn rest(&mut self) -> Option<Record> {
        std::mem::take(&mut self.is_bare).then_some(Record {
            thread: 0,
            kind: Kind::Compute,
            address: 0,
            bytes: 0,
            instructions: 1,
        })
    }

    fn refused(&self) -> TraceError {
        let shown = String::from_utf8_lossy(&self.text[..self.text.len().min(40)]);
        let text = shown.trim_end().chars().filter(|char| !char.is_control()).collect();
        TraceError::Line { line: self.line, text }
    }
}

/// An access as lackey writes it.
fn access(text: &[u8]) -> Option<(Kind, u64, u16)> {
    let (kind, rest) = text.split_at_checked(3)?;
    let kind = match kind {
        b"I  " => Kind::Fetch,
        b" L " => Kind::Load,
        b" S " => Kind::Store,
        b" M " => Kind::Modify,
        _ => return None,
    };
    let (address, bytes) = str::from_utf8(rest).ok()?.split_once(',')?;
    // No signs: `from_str_radix` takes a plus.
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_hexdigit());
    if !is_number(address) || !is_number(bytes) {
        return None;
    }
    let address = u64::from_str_radix(address, 16).ok()?;
    let bytes: u16 = bytes.parse().ok()?;
    (address < 1 << ADDRESS_BITS && bytes > 0).then_some((kind, address, bytes))
}

impl<R: BufRead> Iterator for Lackey<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let record = self.record().transpose();
        self.is_over = !matches!(record, Some(Ok(_)));
        record
    }
}
