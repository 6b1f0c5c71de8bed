//! CSV and Arrow IPC: read from start to end, each batch by any thread.

use std::fs::File;
use std::io::Seek;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_csv::reader::{Format as CsvFormat, ReaderBuilder};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use workahead_join::decoded_pieces;

use super::csv::CsvBatches;
use super::interruptible::Interruptible;
use super::ipc::{Contents, IpcReader};
use super::permits::{Permit, Permits};
use super::plain::Texts;
use super::records::Records;
use super::{BatchSize, Bounds, Opening};
use crate::commands::join::format::Format;

/// Rows from which the types of a CSV file's columns are inferred.
const INFERENCE_ROWS: usize = 100_000;
/// Memory of decoding without the batches.
const DECODER_BYTES: usize = 256 << 10;

/// Batches, for any thread.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<Piece, ArrowError>> + Send>;

/// Rows that one thread takes, and the permit to have the message in memory that they are in.
pub(crate) type Piece = (RecordBatch, Option<Arc<Permit>>);

/// The schema, and the columns to read.
pub(super) struct StreamedInput {
    format: Format,
    bounds: Bounds,
    interrupted: &'static AtomicBool,
    schema: SchemaRef,
    columns: Option<Vec<usize>>,
    texts: Texts,
    /// In memory beside the threads' batches while one is read.
    message_bytes: usize,
}

/// Most bytes that a batch of CSV takes beside its text, however many columns it has.
const FIELDS_BYTES_MAX: usize = 64 << 20;

impl StreamedInput {
    pub(super) fn open(
        mut file: File,
        format: Format,
        opening: &Opening<'_>,
    ) -> anyhow::Result<Self> {
        let Opening { bounds, interrupted, .. } = *opening;
        file.rewind()?;
        let (schema, texts, message_bytes) = match format {
            Format::Arrow | Format::ArrowStream => {
                let reader = ipc(file, format, bounds, interrupted)?;
                let Contents { schema, texts, reading_bytes } = reader.look_through()?;
                (schema, texts, reading_bytes)
            }
            Format::Csv | Format::Tsv | Format::Parquet => {
                let csv = CsvFormat::default().with_header(true);
                let csv = csv.with_delimiter(format.delimiter());
                let file = Interruptible::new(file, interrupted);
                let delimiter = format.delimiter();
                let records = Records::new(file, delimiter, bounds.record_bytes);
                let schema = csv.infer_schema(records, Some(INFERENCE_ROWS))?.0;
                (Arc::new(schema), Texts::Keys, 0)
            }
        };
        Ok(Self { format, bounds, interrupted, schema, columns: None, texts, message_bytes })
    }

    pub(super) fn keep_only(&mut self, columns: Vec<usize>) {
        self.columns = Some(columns);
    }

    pub(super) fn schema(&self) -> SchemaRef {
        match &self.columns {
            None => self.schema.clone(),
            Some(columns) => {
                let fields = self.schema.fields();
                let kept: Vec<_> = columns.iter().map(|column| fields[*column].clone()).collect();
                Arc::new(Schema::new(kept))
            }
        }
    }

    /// Gives a column of CSV that has no value a type: any would do.
    pub(super) fn assume(&mut self, column: &str, data_type: &DataType) {
        let is_text = matches!(self.format, Format::Csv | Format::Tsv);
        let fields = self.schema.fields().iter().map(|field| {
            let untyped = is_text && field.name() == column && field.data_type().is_null();
            if untyped {
                Arc::new(field.as_ref().clone().with_data_type(data_type.clone()))
            } else {
                field.clone()
            }
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    }

    pub(super) fn reading_bytes(&self) -> usize {
        DECODER_BYTES
    }

    pub(super) fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// The batches, with at most `messages` of Arrow in memory at once.
    pub(super) fn read(
        &self,
        mut file: File,
        size: BatchSize,
        messages: usize,
    ) -> Result<Batches, ArrowError> {
        file.rewind()?;
        Ok(match self.format {
            Format::Arrow | Format::ArrowStream => Box::new(BatchSlicer {
                batches: self.ipc(file)?,
                rest: None,
                size,
                permits: Permits::new(messages),
                interrupted: self.interrupted,
            }),
            Format::Csv | Format::Tsv | Format::Parquet => {
                // The decoder has an offset for each field of a batch, projected or not, and its
                // buffers grow to twice what is in them.
                let row_bytes = 4 * size_of::<usize>() * self.schema.fields().len().max(1);
                let bytes = self.bounds.batch_bytes.min(FIELDS_BYTES_MAX);
                let rows = (bytes / row_bytes).clamp(1, size.rows.max(1));
                let reader = ReaderBuilder::new(self.schema.clone())
                    .with_header(true)
                    .with_delimiter(self.format.delimiter())
                    .with_batch_size(rows);
                let reader = match self.columns.clone() {
                    Some(columns) => reader.with_projection(columns),
                    None => reader,
                };
                let file = Interruptible::new(file, self.interrupted);
                let (decoder, most) = (reader.build_decoder(), self.bounds.record_bytes);
                let batches = CsvBatches::new(file, decoder, size.bytes, most);
                Box::new(batches.map(|batch| Ok((batch?, None))))
            }
        })
    }

    fn ipc(&self, file: File) -> Result<IpcReader, ArrowError> {
        let reader = ipc(file, self.format, self.bounds, self.interrupted)?;
        Ok(reader.with_columns(self.columns.clone(), self.texts))
    }
}

fn ipc(
    file: File,
    format: Format,
    bounds: Bounds,
    interrupted: &'static AtomicBool,
) -> Result<IpcReader, ArrowError> {
    let (file, bytes_max) = (Interruptible::new(file, interrupted), bounds.batch_bytes);
    match format {
        Format::Arrow => IpcReader::file(file, bytes_max, interrupted),
        _ => IpcReader::stream(file, bytes_max, interrupted),
    }
}

/// Slices batches: what rows share, as texts that views or keys of a dictionary refer to, is copied
/// for each of those that are joined at once.
struct BatchSlicer {
    batches: IpcReader,
    /// Of the previous batch, those that are left.
    rest: Option<(Slices, Arc<Permit>)>,
    size: BatchSize,
    permits: Arc<Permits>,
    interrupted: &'static AtomicBool,
}

type Slices = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// Of at most `size.rows` rows each, and fewer where they are wide.
fn slices(batch: RecordBatch, size: BatchSize) -> Slices {
    let (all, most) = (batch.num_rows(), size.rows.max(1));
    let starts = (0..all.max(1)).step_by(most);
    let slices = starts.map(move |start| batch.slice(start, most.min(all - start)));
    let pieces = slices.flat_map(move |slice| decoded_pieces(&slice, size.bytes));
    Box::new(pieces.map(|(piece, _)| piece))
}

impl BatchSlicer {
    fn read(&mut self) -> Result<Option<Piece>, ArrowError> {
        loop {
            if let Some((slices, permit)) = &mut self.rest
                && let Some(slice) = slices.next()
            {
                return Ok(Some((slice, Some(permit.clone()))));
            }
            // Its permit may be the one that is waited for.
            self.rest = None;
            let permit = self.permits.take(self.interrupted)?;
            let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
            self.rest = Some((slices(batch, self.size), permit));
        }
    }
}

impl Iterator for BatchSlicer {
    type Item = Result<Piece, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, DictionaryArray, Int8Array, StringArray};

    use super::*;

    #[test]
    fn rows_that_share_a_wide_text_are_few_at_once() {
        let text = StringArray::from(vec!["x".repeat(99)]);
        let keys = Int8Array::from(vec![0; 1_000]);
        let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(text)));
        let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
        let rows = |bytes| {
            let slices = slices(batch.clone(), BatchSize { rows: 300, bytes });
            slices.map(|slice| slice.num_rows()).collect::<Vec<_>>()
        };
        assert_eq!(rows(1 << 20), [300, 300, 300, 100]);
        let few = rows(3_000);
        assert_eq!(few.iter().sum::<usize>(), 1_000);
        assert!(few.iter().all(|rows| *rows <= 30), "{few:?}");
        // Also a batch without rows is one.
        assert_eq!(slices(batch.slice(0, 0), BatchSize { rows: 300, bytes: 0 }).count(), 1);
    }
}
