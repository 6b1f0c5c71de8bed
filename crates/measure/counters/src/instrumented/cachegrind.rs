//! Reads `cachegrind.out` (Valgrind manual 3.19, section 5.6.1).
//!
//! ```text
//!   desc: D1 cache:         32768 B, 64 B, 8-way associative
//!   cmd: /bin/true
//!   events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim
//!   fl=libc-start.c
//!   fn=__libc_start_main
//!   128 2 1 1 2            line of the source, counts; zeros at the end may be left out
//!   summary: 2 1 1 2 …
//! ```
//!
//! Functions come once per file that code was inlined from; here they are one again, by name.
//! Functions of the same name in several files are one as well: the format does not distinguish
//! them from inlined code.

use super::sheet::{Fault, Sheet, number};
use super::{Error, ProgramCounts, Tool};

/// Reads a whole file.
///
/// # Errors
/// If a line is not of the format, or sums are missing or wrong.
pub(super) fn parse(text: &str) -> Result<ProgramCounts, Error> {
    let mut reader = Reader { sheet: Sheet::new(Tool::Cachegrind), file: "", function: None };
    let fault = |line, why| Error::Format { tool: Tool::Cachegrind, line, why };
    let mut lines = 0;
    for (at, line) in text.lines().enumerate() {
        lines = at + 1;
        reader.line(line.trim_end()).map_err(|why| fault(lines, why))?;
    }
    reader.sheet.finish().map_err(|why| fault(lines, why))
}

struct Reader<'a> {
    sheet: Sheet,
    file: &'a str,
    function: Option<usize>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), Fault> {
        if let Some(text) = line.strip_prefix("desc:") {
            self.sheet.describe(text);
        } else if let Some(text) = line.strip_prefix("cmd:") {
            self.sheet.set_command(text);
        } else if let Some(text) = line.strip_prefix("events:") {
            self.sheet.set_events(text)?;
        } else if let Some(file) = line.strip_prefix("fl=") {
            (self.file, self.function) = (file, None);
        } else if let Some(name) = line.strip_prefix("fn=") {
            self.function = Some(self.sheet.function(None, name));
        } else if let Some(text) = line.strip_prefix("summary:") {
            let counts = self.sheet.counts(text.split_ascii_whitespace())?;
            self.sheet.add_totals(&counts)?;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            self.row(line)?;
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err("neither counts nor a line of the header".to_owned());
        }
        Ok(())
    }

    fn row(&mut self, line: &str) -> Result<(), Fault> {
        let mut words = line.split_ascii_whitespace();
        if words.next().and_then(number).is_none() {
            return Err("counts without the number of a line".to_owned());
        }
        let counts = self.sheet.counts(words)?;
        let Some(function) = self.function else {
            return Err("counts of no function".to_owned());
        };
        self.sheet.add(function, self.file, &counts)
    }
}

#[cfg(test)]
mod tests;
