//! Reads untrusted traces.

use std::io::{ErrorKind, Read};

use super::{
    ADDRESS_BITS, AFTERS, END, HAS_BYTES, HAS_INSTRUCTIONS, HAS_THREAD, Header, INSTRUCTIONS_MAX,
    KINDS, Kind, MAGIC, Record, RecordHistory, THREADS_MAX, TraceError, VERSION, zag_zig,
};

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Reads a trace record by record. It returns `None` only after a whole file: the number of records
/// and the checksum match, and nothing follows. After an error it returns `None`.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    bytes: Bytes<R>,
    header: Header,
    said: RecordHistory,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If this is not a trace, or not of this version.
    pub(crate) fn new(from: R) -> Result<Self, TraceError> {
        let mut bytes = Bytes::new(from);
        for expected in MAGIC {
            match bytes.byte("the header") {
                Ok(byte) if byte == expected => {}
                Ok(_) => return Err(TraceError::Magic),
                Err(error) => return Err(error),
            }
        }
        let version = bytes.two("the version")?;
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let threads = bytes.two("the number of threads")?;
        bytes.within("the number of threads", threads.into(), (1, THREADS_MAX.into()))?;
        let after = bytes.byte("the dependency of loads")?;
        bytes.within("the dependency of loads", after.into(), (0, AFTERS.len() as u64 - 1))?;
        let mut shift = |what| {
            let shift = bytes.byte(what)?;
            bytes.within(what, shift.into(), (0, 31))?;
            Ok((shift > 0).then(|| 1 << shift))
        };
        let (line, page) = (shift("the line's shift")?, shift("the page's shift")?);
        let zero = bytes.byte("a zero")?;
        bytes.within("the last byte of the header", zero.into(), (0, 0))?;
        let header = Header { threads, after: AFTERS[usize::from(after)], line, page };
        Ok(Self { bytes, header, said: RecordHistory::nothing(threads), is_over: false })
    }

    /// The header.
    #[must_use]
    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    fn record(&mut self) -> Result<Option<Record>, TraceError> {
        let bytes = &mut self.bytes;
        let tag = bytes.byte("a record or the end")?;
        if tag == END {
            return self.end().map(|()| None);
        }
        let known = HAS_THREAD | HAS_BYTES | HAS_INSTRUCTIONS | 7;
        let kind = usize::from(tag & 7);
        if tag & !known != 0 || kind >= KINDS {
            let takes = "kinds 0 to 6 and the bits 3 to 5".to_owned();
            return Err(bytes.value("a record's tag", tag.into(), takes));
        }
        let kind = Kind::ALL[kind];
        if tag & HAS_THREAD != 0 {
            let most = u64::from(self.header.threads) - 1;
            self.said.thread = bytes.number("the thread", most)? as u16;
        }
        let thread = self.said.thread;
        let last = &mut self.said.last[usize::from(thread)][kind as usize];
        if kind != Kind::Compute {
            let difference = zag_zig(bytes.number("an address", u64::MAX)?);
            let address = last.address.wrapping_add(difference.cast_unsigned());
            bytes.within("an address", address, (0, (1 << ADDRESS_BITS) - 1))?;
            last.address = address;
        }
        if tag & HAS_BYTES != 0 {
            let most = if kind == Kind::Compute { 0 } else { u16::MAX };
            last.bytes = bytes.number("a length", most.into())? as u16;
        }
        let instructions = match tag & HAS_INSTRUCTIONS {
            0 => 0,
            _ => bytes.number("a number of instructions", INSTRUCTIONS_MAX.into())? as u32,
        };
        self.said.records += 1;
        Ok(Some(Record { thread, kind, address: last.address, bytes: last.bytes, instructions }))
    }

    /// Checks the end record, and that nothing follows.
    fn end(&mut self) -> Result<(), TraceError> {
        let bytes = &mut self.bytes;
        let (said, found) = (bytes.number("the number of records", u64::MAX)?, self.said.records);
        if said != found {
            return Err(TraceError::Count { at: bytes.at(), said, found });
        }
        let found = bytes.checksum();
        let at = bytes.at();
        let mut said = [0; 4];
        for byte in &mut said {
            *byte = bytes.byte("the checksum")?;
        }
        let said = u32::from_le_bytes(said);
        if said != found {
            return Err(TraceError::Checksum { at, said, found });
        }
        match bytes.byte("nothing") {
            Err(TraceError::Truncated { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(TraceError::Trailing { at: bytes.at() - 1 }),
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
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

/// Bytes with their position and their checksum.
#[derive(Debug)]
struct Bytes<R> {
    from: R,
    buffer: Box<[u8]>,
    next: usize,
    filled: usize,
    /// Position of the buffer's first byte.
    base: u64,
    hasher: crc32fast::Hasher,
}

impl<R: Read> Bytes<R> {
    fn new(from: R) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { from, buffer, next: 0, filled: 0, base: 0, hasher: crc32fast::Hasher::new() }
    }

    fn at(&self) -> u64 {
        self.base + self.next as u64
    }

    /// Checksum of all bytes read so far.
    fn checksum(&self) -> u32 {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.buffer[..self.next]);
        hasher.finalize()
    }

    #[inline]
    fn byte(&mut self, expected: &'static str) -> Result<u8, TraceError> {
        if self.next == self.filled {
            self.refill(expected)?;
        }
        self.next += 1;
        Ok(self.buffer[self.next - 1])
    }

    /// Refills an empty buffer.
    fn refill(&mut self, expected: &'static str) -> Result<(), TraceError> {
        let at = self.at();
        self.hasher.update(&self.buffer[..self.filled]);
        (self.base, self.next, self.filled) = (at, 0, 0);
        loop {
            match self.from.read(&mut self.buffer) {
                Ok(0) => return Err(TraceError::Truncated { at, expected }),
                Ok(read) => {
                    self.filled = read;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(TraceError::Io { at, source }),
            }
        }
    }

    fn two(&mut self, expected: &'static str) -> Result<u16, TraceError> {
        Ok(u16::from_le_bytes([self.byte(expected)?, self.byte(expected)?]))
    }

    /// A LEB128 number of at most ten bytes.
    #[inline]
    fn number(&mut self, what: &'static str, most: u64) -> Result<u64, TraceError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                self.within(what, number, (0, most))?;
                return Ok(number);
            }
        }
        Err(self.value(what, number, "numbers of 64 bits in at most ten bytes".to_owned()))
    }

    #[inline]
    fn within(
        &self,
        what: &'static str,
        value: u64,
        (least, most): (u64, u64),
    ) -> Result<(), TraceError> {
        match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(self.value(what, value, format!("{least} to {most}"))),
        }
    }

    fn value(&self, what: &'static str, value: u64, takes: String) -> TraceError {
        TraceError::Value { at: self.at(), what, value, takes }
    }
}
