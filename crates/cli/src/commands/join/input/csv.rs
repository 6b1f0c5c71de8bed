//! CSV in batches of a number of rows and of bytes, whichever is reached first: a record may have a
//! hundred bytes or ten million.

use std::io::{BufRead, BufReader, Read};

use arrow_array::RecordBatch;
use arrow_csv::reader::Decoder;
use arrow_schema::ArrowError;
use memchr::memchr2;

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
            // A batch can only end with a record: from one line end to the next from here on.
            let many = bytes + read.len() >= self.bytes_max;
            let piece = if many { to_line_end(read) } else { read };
            let room = self.decoder.capacity();
            let taken = self.decoder.decode(piece)?;
            let is_whole = self.decoder.capacity() < room && is_line_end(piece);
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

/// The bytes before a line end; or the first byte of one, by itself. A line end in quotes ends no
/// record, which only the decoder can tell: a record that it completes by this byte ends with it.
fn to_line_end(bytes: &[u8]) -> &[u8] {
    let end = memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
    &bytes[..end.max(1).min(bytes.len())]
}

fn is_line_end(piece: &[u8]) -> bool {
    matches!(piece, b"\n" | b"\r")
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
        let returns = ["\"x\ry\",1\n", "\"x\r\ny\",1\r\n", "3,4\r", "3,\r\n\r\n"];
        let returns = returns.map(|line| line.repeat(40));
        let others = [plain.repeat(40), quoted.repeat(40), [quoted, plain, carriage].concat()];
        for text in others.into_iter().chain(returns) {
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
