//! Arrow files and streams, whose lengths are checked before anything is allocated for them.
//!
//! ```text
//! file, stream ─► workahead_messages ─► checked ─► arrow-ipc's decoder ─► batch
//! ```
//!
//! A decoder looks at all values, and at some of them as often as others refer to them: views of
//! one long text take it hours. So it works aside, but for messages in which there is little.

use std::collections::HashSet;
use std::io::{Read, Seek};
use std::sync::atomic::AtomicBool;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::MessageHeader;
use arrow_ipc::reader::FileDecoder;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use workahead_join::run_bytes;
use workahead_messages::{
    ArrowInput, Dictionaries, EncapsulatedMessage, MessageError, Messages, RATIO_USUAL, message_of,
    values_of,
};

use super::aside::aside;
use super::plain::{self, Texts};
use super::refusal::{UNUSED_BYTES_MAX, refused, wrong};

/// A message of fewer bytes, dictionaries included, is decoded within a second, whatever in it
/// refers to what: eight thousand views of 128 KiB. Others take longer to join than a thread to
/// start.
const ASIDE_BYTES: usize = 256 << 10;

/// The batches of a file or a stream.
pub(super) struct IpcReader {
    messages: Messages,
    interrupted: &'static AtomicBool,
    /// None after an error, or where it was left behind.
    decoder: Option<BatchDecoder>,
}

/// What is known of the messages so far.
struct BatchDecoder {
    /// Of the file.
    schema: SchemaRef,
    decoder: FileDecoder,
    /// Most bytes of a batch: read, decompressed and with a value of its own in each row, together
    /// with all dictionaries.
    bytes_max: usize,
    dictionaries: Dictionaries,
    /// Numbers of the dictionaries that the columns to read need; none if all do.
    needed: Option<HashSet<i64>>,
    texts: Texts,
    /// Bytes that were decompressed and that no row has.
    unused_bytes: usize,
}

/// The contents of messages, by their metadata.
pub(super) struct Contents {
    /// All columns, as they are read.
    pub(super) schema: SchemaRef,
    pub(super) texts: Texts,
    /// In memory while a batch is read, at most.
    pub(super) reading_bytes: usize,
}

impl IpcReader {
    /// Opens a file.
    pub(super) fn file(
        file: impl Read + Seek + Send + 'static,
        bytes_max: usize,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ArrowError> {
        let input = ArrowInput::file(file, bytes_max).map_err(refused)?;
        Ok(Self::new(input, bytes_max, interrupted))
    }

    /// Begins a stream, by its schema.
    pub(super) fn stream(
        stream: impl Read + Seek + Send + 'static,
        bytes_max: usize,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, ArrowError> {
        let input = ArrowInput::stream(stream, bytes_max).map_err(refused)?;
        Ok(Self::new(input, bytes_max, interrupted))
    }

    fn new(input: ArrowInput, bytes_max: usize, interrupted: &'static AtomicBool) -> Self {
        let ArrowInput { messages, schema, version } = input;
        let decoder = BatchDecoder {
            decoder: FileDecoder::new(schema.clone(), version),
            bytes_max,
            dictionaries: Dictionaries::new(&schema),
            needed: None,
            texts: Texts::Keys,
            unused_bytes: 0,
            schema,
        };
        Self { messages, interrupted, decoder: Some(decoder) }
    }

    /// Reads these columns only, if any are named, and dictionaries of texts in this way.
    pub(super) fn with_columns(self, columns: Option<Vec<usize>>, texts: Texts) -> Self {
        let decoder = self.decoder.map(|decoder| decoder.with_columns(columns, texts));
        Self { decoder, ..self }
    }

    /// Looks through the messages, but not at what is in them.
    pub(super) fn look_through(self) -> Result<Contents, ArrowError> {
        let Self { mut messages, decoder: Some(decoder), .. } = self else { return Err(over()) };
        decoder.look_through(&mut messages)
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while let Some(message) = self.messages.next_message().map_err(refused)? {
            let batch = self.decode(message)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        Ok(None)
    }

    /// The batch of a message; none of a dictionary.
    fn decode(&mut self, message: EncapsulatedMessage) -> Result<Option<RecordBatch>, ArrowError> {
        let mut decoder = self.decoder.take().ok_or_else(over)?;
        let bytes = decoder.dictionaries.bytes.saturating_add(message.size.decoding());
        let (decoder, batch) = if bytes < ASIDE_BYTES {
            let batch = decoder.decode(&message)?;
            (decoder, batch)
        } else {
            aside(self.interrupted, move || {
                let batch = decoder.decode(&message)?;
                Ok::<_, ArrowError>((decoder, batch))
            })??
        };
        self.decoder = Some(decoder);
        Ok(batch)
    }
}

/// Nothing is read any more.
fn over() -> ArrowError {
    wrong("it could not be read")
}

impl BatchDecoder {
    fn with_columns(mut self, columns: Option<Vec<usize>>, texts: Texts) -> Self {
        self.texts = texts;
        let Some(columns) = columns else { return self };
        if !self.dictionaries.are_nested {
            let fields: Vec<_> = columns.iter().map(|at| self.schema.field(*at).clone()).collect();
            self.needed = Some(values_of(&Schema::new(fields)).into_keys().collect());
        }
        self.decoder = self.decoder.with_projection(columns);
        self
    }

    fn look_through(mut self, messages: &mut Messages) -> Result<Contents, ArrowError> {
        let (mut most, mut seen) = (0, HashSet::new());
        let mut texts = Texts::Keys;
        // Errors of a message are reported when it is read.
        while let Ok(Some((metadata, size))) = messages.next_size() {
            let Ok(message) = message_of(&metadata) else { break };
            if let Some(dictionary) = message.header_as_dictionary_batch() {
                if !seen.insert(dictionary.id()) {
                    texts = Texts::Values;
                }
                if self.dictionaries.add(&dictionary, size, self.bytes_max).is_err() {
                    // It is passed over where no column needs it, and the rest is not known.
                    (texts, most) = (Texts::Values, self.bytes_max);
                    break;
                }
            }
            most = most.max(self.dictionaries.bytes.saturating_add(size.decoding()));
        }
        plain::check(texts, &self.schema)?;
        let schema = plain::schema(texts, &self.schema);
        // How often rows have the same value is only seen once it is read.
        let is_known = schema == self.schema;
        let reading_bytes = if is_known { most.min(self.bytes_max) } else { self.bytes_max };
        Ok(Contents { schema, texts, reading_bytes })
    }

    /// Whether a dictionary is needed, once it is counted.
    fn count_dictionary(&mut self, message: &EncapsulatedMessage) -> Result<bool, MessageError> {
        let Some(dictionary) = message_of(&message.bytes)?.header_as_dictionary_batch() else {
            return Ok(true);
        };
        if self.needed.as_ref().is_some_and(|needed| !needed.contains(&dictionary.id())) {
            return Ok(false);
        }
        self.dictionaries.check(&dictionary, message.size, self.bytes_max)?;
        Ok(true)
    }

    /// The batch of a message; none of a dictionary.
    fn decode(&mut self, message: &EncapsulatedMessage) -> Result<Option<RecordBatch>, ArrowError> {
        let header = message_of(&message.bytes).map_err(refused)?;
        if header.header_type() == MessageHeader::DictionaryBatch {
            if self.count_dictionary(message).map_err(refused)? {
                self.decoder.read_dictionary(&message.block, &message.bytes)?;
            }
            return Ok(None);
        }
        let beside = self.dictionaries.beside(&header, message.size, self.bytes_max);
        let beside = beside.map_err(refused)?;
        let batch = self.decoder.read_record_batch(&message.block, &message.bytes)?;
        let Some(batch) = batch else { return Ok(None) };
        self.check_used(&batch, message)?;
        plain::batch(self.texts, batch, beside, self.bytes_max).map(Some)
    }

    /// Refuses a file that decompresses to much that no row has.
    fn check_used(
        &mut self,
        batch: &RecordBatch,
        from: &EncapsulatedMessage,
    ) -> Result<(), ArrowError> {
        if from.size.made / RATIO_USUAL <= from.size.bytes {
            return Ok(());
        }
        let columns = batch.columns().iter();
        let made = columns.clone().map(|column| made_bytes(&column.to_data(), &from.bytes));
        let used = columns.map(|column| run_bytes(column, 0..column.len()));
        let unused = made.sum::<usize>().saturating_sub(used.sum());
        self.unused_bytes = self.unused_bytes.saturating_add(unused);
        if self.unused_bytes > UNUSED_BYTES_MAX {
            return Err(wrong("its batches have more that no row has than rows: write it again"));
        }
        Ok(())
    }
}

/// Bytes of an array's buffers that are not a part of the message. A dictionary is in another one.
fn made_bytes(array: &ArrayData, message: &Buffer) -> usize {
    let range = message.as_ptr_range();
    let nulls = array.nulls().map(|nulls| nulls.buffer());
    let made = array.buffers().iter().chain(nulls).filter(|of| !range.contains(&of.as_ptr()));
    let own: usize = made.map(Buffer::capacity).sum();
    match array.data_type() {
        DataType::Dictionary(..) => own,
        _ => own + array.child_data().iter().map(|child| made_bytes(child, message)).sum::<usize>(),
    }
}

impl Iterator for IpcReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests;
