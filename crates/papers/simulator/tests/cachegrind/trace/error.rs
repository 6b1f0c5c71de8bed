//! Errors of traces: position, cause, and remedy.

use std::io;

/// Why a trace can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    /// The file can't be read or written.
    #[error("byte {at}: the trace can't be read or written: {source}")]
    Io {
        /// How far it got.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file is something else.
    #[error(
        "byte 0: this is not a trace of addresses: make one with a converter, from lackey's text"
    )]
    Magic,
    /// A later program wrote it.
    #[error(
        "byte 8: the trace has version {0}, known is 1: read it with the program that wrote it"
    )]
    Version(u16),
    /// It ends too early.
    #[error("byte {at}: the trace ends where {expected} should be: record it again to its end")]
    Truncated {
        /// Its length.
        at: u64,
        /// The expected content.
        expected: &'static str,
    },
    /// A value is out of its range.
    #[error(
        "byte {at}: {what} is {value}: it takes {takes}; the trace is damaged, record it again"
    )]
    Value {
        /// Where the value ends.
        at: u64,
        /// Its name.
        what: &'static str,
        /// The value.
        value: u64,
        /// The allowed values.
        takes: String,
    },
    /// Records are missing.
    #[error("byte {at}: the trace has {found} records and says {said}: record it again")]
    Count {
        /// Where it says so.
        at: u64,
        /// The number that it states.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// Bytes were changed.
    #[error("byte {at}: the checksum is {found:#010x}, not {said:#010x}: copy or record it again")]
    Checksum {
        /// Where it is.
        at: u64,
        /// The sum that it states.
        said: u32,
        /// The sum of its bytes.
        found: u32,
    },
    /// Something comes after the end.
    #[error("byte {at}: the trace goes on after its end: cut it there, or read one at a time")]
    Trailing {
        /// Where the end was.
        at: u64,
    },
    /// A record that can't be written.
    #[error("record {record}: {what} is {value}: a trace takes {takes}")]
    Unwritable {
        /// Its number, from 0.
        record: u64,
        /// The field that is out of its range.
        what: &'static str,
        /// The value.
        value: u64,
        /// The allowed values.
        takes: String,
    },
    /// A line that lackey does not write.
    #[error(
        "line {line}: `{text}` is not an access: it takes `I`, ` L`, ` S` or ` M` with \
         address,size as from valgrind --tool=lackey --trace-mem=yes --log-file=FILE"
    )]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The line, as far as it fits.
        text: String,
    },
    /// A text that ends within a line.
    #[error("line {line}: the text ends within it: record it again to its end")]
    Unended {
        /// Its number, from 1.
        line: u64,
    },
}
