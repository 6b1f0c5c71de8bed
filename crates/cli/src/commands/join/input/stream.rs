//! CSV and Arrow IPC: read from start to end, each batch by any thread.

use std::fs::File;
use std::io::Seek;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_csv::reader::{Format as CsvFormat, ReaderBuilder};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

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
                let reader = ipc(Interruptible::new(file, interrupted), format, bounds)?;
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
                batch_rows: size.rows,
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
        let reader = ipc(Interruptible::new(file, self.interrupted), self.format, self.bounds)?;
        Ok(reader.with_columns(self.columns.clone()).with_texts(self.texts))
    }
}

fn ipc(file: Interruptible<File>, format: Format, bounds: Bounds) -> Result<IpcReader, ArrowError> {
    match format {
        Format::Arrow => IpcReader::file(file, bounds.batch_bytes),
        _ => IpcReader::stream(file, bounds.batch_bytes),
    }
}

/// Slices batches to at most `batch_rows` rows.
struct BatchSlicer {
    batches: IpcReader,
    /// The rest of the previous batch.
    rest: Option<(RecordBatch, Arc<Permit>)>,
    batch_rows: usize,
    permits: Arc<Permits>,
    interrupted: &'static AtomicBool,
}

impl BatchSlicer {
    fn read(&mut self) -> Result<Option<Piece>, ArrowError> {
        let (batch, permit) = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let permit = self.permits.take(self.interrupted)?;
                let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
                (batch, permit)
            }
        };
        let (all, rows) = (batch.num_rows(), batch.num_rows().min(self.batch_rows));
        self.rest = (rows < all).then(|| (batch.slice(rows, all - rows), permit.clone()));
        Ok(Some((batch.slice(0, rows), Some(permit))))
    }
}

impl Iterator for BatchSlicer {
    type Item = Result<Piece, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
