//! CSV whose records have a limit: a file without line ends, or with a quote that is never closed,
//! is refused before its first record fills the memory.

use std::io::{self, ErrorKind, Read};

use memchr::{memchr_iter, memrchr};

/// What a reader of CSV collects until a record ends.
pub(super) struct Records<R> {
    from: R,
    /// Bytes of the record so far.
    bytes: usize,
    bytes_max: usize,
    quoted: bool,
}

impl<R: Read> Records<R> {
    pub(super) fn new(from: R, bytes_max: usize) -> Self {
        Self { from, bytes: 0, bytes_max, quoted: false }
    }

    fn count(&mut self, read: &[u8]) -> io::Result<()> {
        // Two quotes stand for one, and change nothing here. Counting them is faster than visiting
        // them, and most often the last line end is that of a record.
        let quotes = |bytes: &[u8]| memchr_iter(b'"', bytes).count();
        let is_odd = |quotes: usize| quotes % 2 == 1;
        let (mut before, mut rest) = (quotes(read), read);
        let quoted_after = self.quoted ^ is_odd(before);
        let end = loop {
            let Some(at) = memrchr(b'\n', rest) else { break None };
            before -= quotes(&rest[at..]);
            if !(self.quoted ^ is_odd(before)) {
                break Some(at);
            }
            rest = &rest[..at];
        };
        self.quoted = quoted_after;
        self.bytes = end.map_or(self.bytes + read.len(), |end| read.len() - end - 1);
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let most = self.bytes_max >> 20;
        let says = format!("a record is longer than {most} MiB: raise --max-record if it is meant");
        Err(io::Error::new(ErrorKind::InvalidData, says))
    }
}

impl<R: Read> Read for Records<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.from.read(to)?;
        self.count(&to[..bytes])?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, piece: usize, most: usize) -> io::Result<u64> {
        let mut pieces = Records::new(text.as_bytes(), most);
        let (mut buffer, mut all) = (vec![0; piece], 0);
        loop {
            match pieces.read(&mut buffer)? {
                0 => return Ok(all),
                bytes => all += bytes as u64,
            }
        }
    }

    #[test]
    fn records_up_to_the_limit_pass() {
        let short = "a,b\n1,2\n".repeat(1_000);
        let quoted = format!("a,b\n{}", "\"x\ny\"\"z\",2\n".repeat(1_000));
        for piece in [1, 3, 7, 4_096] {
            assert_eq!(read(&short, piece, 10).unwrap(), short.len() as u64);
            assert_eq!(read(&quoted, piece, 20).unwrap(), quoted.len() as u64);
            for long in ["a".repeat(100), format!("\"{}", "a\n".repeat(50))] {
                let says = read(&format!("a,b\n{long}"), piece, 20).unwrap_err().to_string();
                assert!(says.contains("--max-record"), "{says}");
            }
        }
    }
}
