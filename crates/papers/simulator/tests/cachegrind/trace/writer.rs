//! Writes a trace, record by record.

use std::io::{self, BufWriter, Write};

use super::{
    ADDRESS_BITS, AFTERS, END, HAS_BYTES, HAS_INSTRUCTIONS, HAS_THREAD, Header, INSTRUCTIONS_MAX,
    Kind, Last, MAGIC, Record, RecordHistory, THREADS_MAX, TraceError, VERSION, zig_zag,
};

/// Writes a trace. Without [`finish`](Self::finish) it is incomplete.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    to: BufWriter<W>,
    hasher: crc32fast::Hasher,
    at: u64,
    said: RecordHistory,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// If there are no threads or too many, a line or page is not a power of two, or writing fails.
    pub(crate) fn new(to: W, header: &Header) -> Result<Self, TraceError> {
        let refused = |what, value, takes: &str| TraceError::Unwritable {
            record: 0,
            what,
            value,
            takes: takes.to_owned(),
        };
        if !(1..=THREADS_MAX).contains(&header.threads) {
            let takes = format!("1 to {THREADS_MAX}");
            return Err(refused("the number of threads", header.threads.into(), &takes));
        }
        let shift = |what, bytes: Option<u32>| match bytes {
            None => Ok(0),
            Some(bytes) if bytes.is_power_of_two() && bytes > 1 => Ok(bytes.trailing_zeros() as u8),
            Some(bytes) => Err(refused(what, bytes.into(), "powers of two from 2")),
        };
        let (line, page) = (shift("a line", header.line)?, shift("a page", header.page)?);
        let after = AFTERS.iter().position(|after| *after == header.after).unwrap_or_default();
        let said = RecordHistory::nothing(header.threads);
        let mut writer =
            Self { to: BufWriter::new(to), hasher: crc32fast::Hasher::new(), at: 0, said };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&header.threads.to_le_bytes())?;
        writer.put(&[after as u8, line, page, 0])?;
        Ok(writer)
    }

    /// Writes one record.
    ///
    /// # Errors
    /// If the thread or a value is out of range, or writing fails.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        self.check(record)?;
        let Record { thread, kind, address, bytes, instructions } = *record;
        let last = &mut self.said.last[usize::from(thread)][kind as usize];
        let before = std::mem::replace(last, Last { address, bytes });
        let mut tag = kind as u8;
        tag |= if thread == self.said.thread { 0 } else { HAS_THREAD };
        tag |= if bytes == before.bytes { 0 } else { HAS_BYTES };
        tag |= if instructions == 0 { 0 } else { HAS_INSTRUCTIONS };
        let mut line = Line::default();
        line.byte(tag);
        if tag & HAS_THREAD != 0 {
            line.number(thread.into());
        }
        if kind != Kind::Compute {
            line.number(zig_zag(address.wrapping_sub(before.address).cast_signed()));
        }
        if tag & HAS_BYTES != 0 {
            line.number(bytes.into());
        }
        if instructions != 0 {
            line.number(instructions.into());
        }
        self.said.thread = thread;
        self.said.records += 1;
        self.put(line.bytes())
    }

    fn check(&self, record: &Record) -> Result<(), TraceError> {
        let Record { thread, kind, address, bytes, instructions } = *record;
        let threads = self.said.last.len();
        let most = if kind == Kind::Compute { 0 } else { (1 << ADDRESS_BITS) - 1 };
        let bytes_most = if kind == Kind::Compute { 0 } else { u64::from(u16::MAX) };
        let values = [
            ("the thread", thread.into(), threads as u64 - 1),
            ("the address", address, most),
            ("the length", bytes.into(), bytes_most),
            ("the number of instructions", instructions.into(), INSTRUCTIONS_MAX.into()),
        ];
        match values.into_iter().find(|(_, value, most)| value > most) {
            None => Ok(()),
            Some((what, value, most)) => Err(TraceError::Unwritable {
                record: self.said.records,
                what,
                value,
                takes: format!("at most {most}"),
            }),
        }
    }

    /// Writes the end record and flushes; returns the inner writer.
    ///
    /// # Errors
    /// If writing fails.
    pub(crate) fn finish(mut self) -> Result<W, TraceError> {
        let mut line = Line::default();
        line.byte(END);
        line.number(self.said.records);
        self.put(line.bytes())?;
        let sum = self.hasher.clone().finalize();
        self.put(&sum.to_le_bytes())?;
        let at = self.at;
        self.to.into_inner().map_err(|error| failed(at, error.into_error()))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.hasher.update(bytes);
        self.to.write_all(bytes).map_err(|source| failed(self.at, source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn failed(at: u64, source: io::Error) -> TraceError {
    TraceError::Io { at, source }
}

/// The bytes of a record: a tag, and four numbers of at most ten bytes.
#[derive(Default)]
struct Line {
    held: [[u8; 11]; 4],
    count: usize,
}

impl Line {
    fn byte(&mut self, byte: u8) {
        self.held.as_flattened_mut()[self.count] = byte;
        self.count += 1;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn bytes(&self) -> &[u8] {
        &self.held.as_flattened()[..self.count]
    }
}
