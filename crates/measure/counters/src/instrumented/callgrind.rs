//! Reads `callgrind.out` (Valgrind manual 3.19, "Callgrind Format Specification").
//!
//! ```text
//!   positions: line            how many numbers stand before the counts of a line
//!   events: Ir Dr Dw
//!   ob=(1) /bin/true           names once, `(1)` afterwards; one numbering each for objects,
//!   fl=(1) main.c              files and functions
//!   fn=(1) main
//!   35 5 2                     counts of main itself; `+1`, `-3`, `*`: from the line before
//!   cfn=(2) work               what main calls next ...
//!   calls=3 70                 ... three times ...
//!   36 400 90 12               ... with what that cost, in all: not main's own
//!   totals: 5 2
//! ```
//!
//! Lines of the source are not kept, so relative ones need no reckoning; they are only checked.

use std::collections::HashMap;

use super::sheet::{Fault, Sheet, number};
use super::{Error, ProgramCounts, Tool};

/// Reads a whole file.
///
/// # Errors
/// If a line is not of the format, or sums are missing or wrong.
pub(super) fn parse(text: &str) -> Result<ProgramCounts, Error> {
    let mut reader = Reader::new();
    let fault = |line, why| Error::Format { tool: Tool::Callgrind, line, why };
    let mut lines = 0;
    for (at, line) in text.lines().enumerate() {
        lines = at + 1;
        reader.line(line.trim_end()).map_err(|why| fault(lines, why))?;
    }
    reader.sheet.finish().map_err(|why| fault(lines, why))
}

/// Names by number.
#[derive(Default)]
struct Names<'a>(HashMap<u64, &'a str>);

impl<'a> Names<'a> {
    /// `(7) name` names it, `(7)` recalls it, `name` alone has no number; `(below main)` is such a
    /// name.
    fn resolve(&mut self, text: &'a str) -> Result<&'a str, Fault> {
        let numbered = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let id = numbered.and_then(|(id, name)| Some((id.parse::<u64>().ok()?, name.trim_start())));
        match id {
            None => Ok(text),
            Some((id, "")) => {
                self.0.get(&id).copied().ok_or_else(|| format!("({id}) was never named"))
            }
            Some((id, name)) => {
                self.0.insert(id, name);
                Ok(name)
            }
        }
    }
}

/// The owner of the next line of counts.
#[derive(Clone, Copy)]
enum Next {
    /// The function's own.
    Own,
    /// That of a call.
    Call,
}

struct Reader<'a> {
    sheet: Sheet,
    objects: Names<'a>,
    files: Names<'a>,
    names: Names<'a>,
    positions: usize,
    object: Option<&'a str>,
    file: &'a str,
    function: Option<usize>,
    /// The object and name of what is called next.
    called: (Option<&'a str>, Option<&'a str>),
    next: Next,
}

impl<'a> Reader<'a> {
    fn new() -> Self {
        Self {
            sheet: Sheet::new(Tool::Callgrind),
            objects: Names::default(),
            files: Names::default(),
            names: Names::default(),
            positions: 1,
            object: None,
            file: "",
            function: None,
            called: (None, None),
            next: Next::Own,
        }
    }

    fn line(&mut self, line: &'a str) -> Result<(), Fault> {
        let Some(first) = line.chars().next() else { return Ok(()) };
        if first.is_ascii_digit() || matches!(first, '+' | '-' | '*') {
            return self.row(line);
        }
        if first == '#' {
            return Ok(());
        }
        if let Some((key, value)) = line.split_once('=')
            && self.position(key, value.trim_start())?
        {
            return Ok(());
        }
        match line.split_once(':') {
            Some((key, value)) => self.header(key, value),
            None => Err("neither counts nor a line of the header".to_owned()),
        }
    }

    /// `fn=(1) main` and its like; false when it is none of them.
    fn position(&mut self, key: &str, value: &'a str) -> Result<bool, Fault> {
        match key {
            "ob" => self.object = Some(self.objects.resolve(value)?),
            "fl" => self.file = self.files.resolve(value)?,
            // Inlined from another file, and back: still the same function's.
            "fi" | "fe" | "cfi" | "cfl" => drop(self.files.resolve(value)?),
            "fn" => {
                let name = self.names.resolve(value)?;
                self.function = Some(self.sheet.function(self.object, name));
                self.called = (None, None);
            }
            "cob" => self.called.0 = Some(self.objects.resolve(value)?),
            "cfn" => self.called.1 = Some(self.names.resolve(value)?),
            "calls" => self.next = Next::Call,
            // Where it jumps to; the line after it has a position and no counts.
            "jump" | "jcnd" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn header(&mut self, key: &str, value: &'a str) -> Result<(), Fault> {
        match key {
            "positions" => {
                self.positions = value.split_ascii_whitespace().count();
                if !(1..=2).contains(&self.positions) {
                    return Err("positions are `instr`, `line` or both".to_owned());
                }
            }
            "events" => self.sheet.set_events(value)?,
            "cmd" => self.sheet.set_command(value),
            "desc" => self.sheet.describe(value),
            "totals" => {
                let counts = self.sheet.counts(value.split_ascii_whitespace())?;
                self.sheet.add_totals(&counts)?;
            }
            // A sum over all parts of a run, with what was counted outside of any function.
            "version" | "creator" | "pid" | "part" | "thread" | "target" | "event" | "summary" => {}
            _ => return Err(format!("unknown line `{key}:`")),
        }
        Ok(())
    }

    fn row(&mut self, line: &str) -> Result<(), Fault> {
        let mut words = line.split_ascii_whitespace();
        for _ in 0..self.positions {
            if !words.next().is_some_and(is_position) {
                return Err("counts without their position".to_owned());
            }
        }
        let counts = self.sheet.counts(words)?;
        let Some(function) = self.function else {
            return Err("counts of no function".to_owned());
        };
        match std::mem::replace(&mut self.next, Next::Own) {
            Next::Own => self.sheet.add(function, self.file, &counts),
            Next::Call => {
                let (object, name) = std::mem::take(&mut self.called);
                let name = name.ok_or_else(|| "a call of no function".to_owned())?;
                // A function that calls itself has those counts already.
                if self.sheet.function(object.or(self.object), name) == function {
                    return Ok(());
                }
                self.sheet.add_called(function, &counts)
            }
        }
    }
}

/// `35`, `0x8048000`, `+3`, `-3` or `*`.
fn is_position(word: &str) -> bool {
    word == "*" || number(word.strip_prefix(['+', '-']).unwrap_or(word)).is_some()
}

#[cfg(test)]
mod tests;
