//! CSV in batches of a number of rows and of bytes, whichever is reached first: a record may have a
//! hundred bytes or ten million.

use std::io::{BufRead, BufReader, Read};

use arrow_array::RecordBatch;
use arrow_csv::reader::Decoder;
use arrow_schema::ArrowError;
use memchr::memchr;

use super::records::too_long;

/// The batches of a file.
pub(super) struct CsvBatches<R> {
    from: BufReader<R>,
    decoder: Decoder,
    bytes_max: usize,
    /// Bytes since a record was complete, and the most there may be.
    record_bytes: usize,
    record_max: usize,
}

impl<R: Read> CsvBatches<R> {
    /// The decoder bounds the rows.
    pub(super) fn new(from: R, decoder: Decoder, bytes_max: usize, record_max: usize) -> Self {
        Self { from: BufReader::new(from), decoder, bytes_max, record_bytes: 0, record_max }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut bytes = 0;
        loop {
            let read = self.from.fill_buf()?;
            // A batch can only end with a record: line by line from here on.
            let many = bytes + read.len() >= self.bytes_max;
            let piece = if many { first_line(read) } else { read };
            let room = self.decoder.capacity();
            let taken = self.decoder.decode(piece)?;
            let is_whole = self.decoder.capacity() < room && ends_a_line(piece);
            self.from.consume(taken);
            bytes += taken;
            let begun = if self.decoder.capacity() < room { 0 } else { self.record_bytes };
            self.record_bytes = begun + taken;
            if self.record_bytes > self.record_max {
                return Err(too_long(self.record_max).into());
            }
            if taken == 0 || self.decoder.capacity() == 0 || (many && is_whole) {
                return self.decoder.flush();
            }
        }
    }
}

impl<R: Read> Iterator for CsvBatches<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)]
}

/// Whether a record that was completed in this piece is completed by its end. A carriage return
/// ends a record too, and what follows it may be the beginning of the next.
fn ends_a_line(piece: &[u8]) -> bool {
    let Some(line) = piece.strip_suffix(b"\n") else { return false };
    memchr(b'\r', line.strip_suffix(b"\r").unwrap_or(line)).is_none()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_csv::ReaderBuilder;
    use arrow_schema::{DataType, Field, Schema};
    use arrow_select::concat::concat_batches;

    use super::*;

    fn batches(text: &str, rows: usize, bytes_max: usize) -> Vec<RecordBatch> {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let decoder = ReaderBuilder::new(schema).with_header(true).with_batch_size(rows);
        let from = BufReader::with_capacity(7, text.as_bytes());
        let decoder = decoder.build_decoder();
        let (record_bytes, record_max) = (0, usize::MAX);
        let batches = CsvBatches { from, decoder, bytes_max, record_bytes, record_max };
        batches.map(Result::unwrap).collect()
    }

    #[test]
    fn wide_records_make_short_batches() {
        let quoted = "\"x\n\"\"y\"\"\r\n5\" z\",\"\n\"\n";
        let plain = "1,5\" pipe\n";
        let carriage = "3,4\r\"a\nb\",c\r\n";
        for text in [plain.repeat(40), quoted.repeat(40), [quoted, plain, carriage].concat()] {
            let text = format!("a,b\n{text}");
            let whole = batches(&text, 1000, usize::MAX);
            assert_eq!(whole.len(), 1);
            for bytes_max in [0, 1, 9, 50, 200] {
                let cut = batches(&text, 1000, bytes_max);
                assert_eq!(concat_batches(&cut[0].schema(), &cut).unwrap(), whole[0]);
                assert!(cut.len() >= text.len() / (bytes_max + 40), "{bytes_max}: {}", cut.len());
            }
            let cut = batches(&text, 3, usize::MAX);
            assert!(cut.iter().all(|batch| batch.num_rows() <= 3));
        }
    }
}
