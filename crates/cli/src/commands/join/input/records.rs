//! CSV whose records have a limit: a file without line ends, or with a quote that is never closed,
//! is refused before its first record fills the memory.

use std::io::{self, ErrorKind, Read};

use memchr::{memchr, memchr_iter, memchr2, memrchr};
use workahead_footer::COLUMNS_MAX;

/// A CSV reader's bytes until a record ends.
pub(super) struct Records<R> {
    from: R,
    delimiter: u8,
    /// Bytes of the record so far.
    bytes: usize,
    bytes_max: usize,
    /// Within a field in quotes.
    quoted: bool,
    /// The last byte, and whether it was the quote at the end of a text.
    last: u8,
    closed: bool,
    /// Columns of the header so far, until it ends.
    header: Option<usize>,
    /// Bytes so far that may be a mark of the order of bytes: a reader leaves it out.
    mark: usize,
}

/// UTF-8's.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The refusal of a record.
pub(super) fn too_long(bytes_max: usize) -> io::Error {
    let most = match bytes_max >> 20 {
        0 => format!("{bytes_max} bytes"),
        most => format!("{most} MiB"),
    };
    let says = format!("a record is longer than {most}: raise --max-record if it is meant");
    io::Error::new(ErrorKind::InvalidData, says)
}

impl<R: Read> Records<R> {
    pub(super) fn new(from: R, delimiter: u8, bytes_max: usize) -> Self {
        let (bytes, quoted, closed, header) = (0, false, false, Some(1));
        Self { from, delimiter, bytes, bytes_max, quoted, last: b'\n', closed, header, mark: 0 }
    }

    /// The bytes after a byte-order mark at the beginning.
    fn after_mark<'r>(&mut self, read: &'r [u8]) -> &'r [u8] {
        let begins = read.iter().zip(&MARK[self.mark..]).take_while(|(one, other)| one == other);
        let begins = begins.count();
        self.mark += begins;
        if begins < read.len() {
            // Half of one is a field's text, within which a quote begins nothing.
            if (1..MARK.len()).contains(&self.mark) {
                self.last = MARK[self.mark - 1];
            }
            self.mark = MARK.len();
        }
        &read[begins..]
    }

    fn count(&mut self, read: &[u8]) -> io::Result<()> {
        let read = self.after_mark(read);
        let Some(last) = read.last() else { return Ok(()) };
        let end = match self.quoted || memchr(b'"', read).is_some() {
            true => self.last_end(read),
            false => {
                self.closed = false;
                memrchr(b'\n', read)
            }
        };
        self.last = *last;
        self.header = match (self.header, end) {
            (Some(columns), None) => Some(columns + memchr_iter(self.delimiter, read).count()),
            _ => None,
        };
        if self.header.is_some_and(|columns| columns > COLUMNS_MAX) {
            let says = format!("it has more than {COLUMNS_MAX} columns: name fewer in its header");
            return Err(io::Error::new(ErrorKind::InvalidData, says));
        }
        self.bytes = end.map_or(self.bytes + read.len(), |end| read.len() - end - 1);
        if self.bytes <= self.bytes_max { Ok(()) } else { Err(too_long(self.bytes_max)) }
    }

    /// Where the last record of a piece ends. A quote begins a text only where a field begins; two
    /// within one stand for one, and change nothing here.
    fn last_end(&mut self, read: &[u8]) -> Option<usize> {
        let (mut at, mut end) = (0, None);
        // The place after the quote at the end of a text.
        let mut closed = self.closed.then_some(0);
        loop {
            let rest = &read[at..];
            let found = match self.quoted {
                true => memchr(b'"', rest),
                false => memchr2(b'"', b'\n', rest),
            };
            let Some(found) = found.map(|found| at + found) else { break };
            at = found + 1;
            if read[found] == b'\n' {
                end = Some(found);
            } else if self.quoted {
                (self.quoted, closed) = (false, Some(at));
            } else {
                let before = if found == 0 { self.last } else { read[found - 1] };
                let begins = [b'\n', b'\r', self.delimiter].contains(&before);
                self.quoted = begins || closed == Some(found);
            }
        }
        self.closed = !self.quoted && closed == Some(read.len());
        end
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
        let mut pieces = Records::new(text.as_bytes(), b',', most);
        let (mut buffer, mut all) = (vec![0; piece], 0);
        loop {
            match pieces.read(&mut buffer)? {
                0 => return Ok(all),
                bytes => all += bytes as u64,
            }
        }
    }

    #[test]
    fn a_quote_within_a_field_is_one() {
        let inch = format!("a,b\n0,5\" pipe\n0,6\"\" pipe\n{}", "1,2\n".repeat(1_000));
        // The first is not a quote, so the second is never closed.
        let open = format!("a,b\n0,x\"y\n0,\"{}", "1,2\n".repeat(1_000));
        for piece in [1, 3, 7, 4_096] {
            assert_eq!(read(&inch, piece, 20).unwrap(), inch.len() as u64, "{piece}");
            assert!(read(&open, piece, 200).is_err(), "{piece}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_a_field() {
        let quoted = format!("\u{feff}\"a{}", "\n1".repeat(1_000));
        let whole = format!("\u{feff}\"a\nb\",c\n{}", "1,2\n".repeat(1_000));
        // Half of one stands for itself: the quote is within a field.
        let half = [&MARK[..2], b"\"a", "\n1".repeat(1_000).as_bytes()].concat();
        for piece in [1, 2, 3, 4, 4_096] {
            assert!(read(&quoted, piece, 100).is_err(), "{piece}");
            assert_eq!(read(&whole, piece, 100).unwrap(), whole.len() as u64, "{piece}");
            let mut pieces = Records::new(half.as_slice(), b',', 100);
            let mut all = Vec::new();
            let mut buffer = vec![0; piece];
            while let bytes @ 1.. = pieces.read(&mut buffer).unwrap() {
                all.extend_from_slice(&buffer[..bytes]);
            }
            assert_eq!(all, half, "{piece}");
        }
    }

    #[test]
    fn a_header_has_a_limited_number_of_columns() {
        let long = ",".repeat(COLUMNS_MAX + 5_000);
        let says = read(&long, 4_096, 1 << 20).unwrap_err().to_string();
        assert!(says.contains("more than 65536 columns"), "{says}");
        let rows = format!("a,b\n{}", "1,2\n".repeat(COLUMNS_MAX));
        assert_eq!(read(&rows, 4_096, 20).unwrap(), rows.len() as u64);
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
