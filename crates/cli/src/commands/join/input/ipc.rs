//! Arrow files and streams, whose lengths are checked before anything is allocated for them.
//!
//! ```text
//! file    footer ─► blocks, each within the file ─┐
//! stream  message after message ──────────────────┴─► checked ─► arrow-ipc's decoder ─► batch
//! ```
//!
//! arrow-ipc allocates what a message says of its length and of its contents before compression. A
//! message here is as long as what was read of it, and its buffers lie in it; together with what is
//! made of it and all dictionaries it fits the memory that may be used. An item of a list counts
//! also where its type has no bytes.

mod dictionaries;
mod items;
mod messages;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, MessageHeader, MetadataVersion, root_as_footer};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use workahead_join::run_bytes;

use self::dictionaries::Dictionaries;
use self::messages::{
    EncapsulatedMessage, METADATA_BYTES_MAX, Messages, PREFIX_BYTES, fits, message_of,
};
use super::plain::Texts;
use super::refusal::{RATIO_USUAL, UNUSED_BYTES_MAX, wrong};
use super::{fields, plain};

/// The end of a file: the footer's length and the magic word.
const TRAILER_BYTES: usize = 10;

/// The batches of a file or a stream.
pub(super) struct IpcReader {
    messages: Messages,
    /// Of the file.
    schema: SchemaRef,
    decoder: FileDecoder,
    /// Most bytes of a batch: read, decompressed and with a value of its own in each row, together
    /// with all dictionaries.
    bytes_max: usize,
    dictionaries: Dictionaries,
    /// Types of dictionaries' values by their numbers.
    values: HashMap<i64, DataType>,
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
        mut file: impl Read + Seek + Send + 'static,
        bytes_max: usize,
    ) -> Result<Self, ArrowError> {
        let length = file.seek(SeekFrom::End(0))?;
        let before = length.checked_sub(TRAILER_BYTES as u64);
        let before = before.ok_or_else(|| wrong("it is too short"))?;
        file.seek(SeekFrom::Start(before))?;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_exact(&mut trailer)?;
        let footer_bytes = read_footer_length(trailer)?;
        let begin = before.checked_sub(footer_bytes as u64);
        let begin = begin.filter(|_| footer_bytes <= METADATA_BYTES_MAX);
        let begin = begin.ok_or_else(|| wrong("its footer is longer than the file"))?;
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = vec![0; footer_bytes];
        file.read_exact(&mut bytes)?;
        let footer = root_as_footer(&bytes).map_err(|error| wrong(&error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| wrong("it has no schema"))?;
        let schema = schema_of(schema, bytes_max)?;
        let within = |block: &Block| -> Result<Block, ArrowError> {
            let bytes = i64::from(block.metaDataLength()).checked_add(block.bodyLength());
            let end = bytes.and_then(|bytes| bytes.checked_add(block.offset()));
            let is_within = block.offset() >= 0
                && usize::try_from(block.metaDataLength()).is_ok_and(|b| b >= PREFIX_BYTES)
                && block.bodyLength() >= 0
                && end.is_some_and(|end| end as u64 <= length);
            is_within.then_some(*block).ok_or_else(|| wrong("a block lies outside of the file"))
        };
        let dictionaries = footer.dictionaries().into_iter().flatten().map(within);
        let dictionaries: VecDeque<_> = dictionaries.collect::<Result<_, _>>()?;
        let blocks = footer.recordBatches().into_iter().flatten().map(within);
        let blocks = blocks.collect::<Result<_, _>>()?;
        check_apart(&dictionaries, &blocks)?;
        let version = footer.version();
        let blocks = [dictionaries, blocks].into_iter().flatten().collect();
        let messages = Messages::of_file(Box::new(file), length, blocks, bytes_max);
        Ok(Self::new(messages, schema, version, bytes_max))
    }

    /// Begins a stream, by its schema.
    pub(super) fn stream(
        stream: impl Read + Seek + Send + 'static,
        bytes_max: usize,
    ) -> Result<Self, ArrowError> {
        let mut messages = Messages::of_stream(Box::new(stream), bytes_max)?;
        let first = messages.next()?.ok_or_else(|| wrong("it is empty"))?;
        let message = message_of(&first.bytes)?;
        let schema = message.header_as_schema().ok_or_else(|| wrong("it begins without schema"))?;
        let (schema, version) = (schema_of(schema, bytes_max)?, message.version());
        Ok(Self::new(messages, schema, version, bytes_max))
    }

    fn new(
        messages: Messages,
        schema: SchemaRef,
        version: MetadataVersion,
        bytes_max: usize,
    ) -> Self {
        Self {
            messages: messages.with_alignment(alignment(&schema)),
            decoder: FileDecoder::new(schema.clone(), version),
            bytes_max,
            dictionaries: Dictionaries::new(&schema),
            values: items::values_of(&schema),
            needed: None,
            texts: Texts::Keys,
            unused_bytes: 0,
            schema,
        }
    }

    /// Reads these columns only, if any are named.
    pub(super) fn with_columns(mut self, columns: Option<Vec<usize>>) -> Self {
        let Some(columns) = columns else { return self };
        if !self.dictionaries.are_nested {
            let fields: Vec<_> = columns.iter().map(|at| self.schema.field(*at).clone()).collect();
            self.needed = Some(items::values_of(&Schema::new(fields)).into_keys().collect());
        }
        self.decoder = self.decoder.with_projection(columns);
        self
    }

    /// Reads dictionaries of texts in this way.
    pub(super) fn with_texts(self, texts: Texts) -> Self {
        Self { texts, ..self }
    }

    /// Looks through the messages, but not at what is in them.
    pub(super) fn look_through(mut self) -> Result<Contents, ArrowError> {
        let (mut most, mut seen) = (0, HashSet::new());
        let mut texts = Texts::Keys;
        // Errors of a message are reported when it is read.
        while let Ok(Some((metadata, size))) = self.messages.next_size() {
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

    fn take_dictionary(&mut self, message: &EncapsulatedMessage) -> Result<(), ArrowError> {
        if let Some(dictionary) = message_of(&message.bytes)?.header_as_dictionary_batch() {
            if self.needed.as_ref().is_some_and(|needed| !needed.contains(&dictionary.id())) {
                return Ok(());
            }
            let values = self.values.get(&dictionary.id());
            if let Some((batch, values)) = dictionary.data().zip(values) {
                items::check(&batch, [values].into_iter(), self.bytes_max)?;
            }
            self.dictionaries.add(&dictionary, message.size, self.bytes_max)?;
        }
        self.decoder.read_dictionary(&message.block, &message.bytes)
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while let Some(message) = self.messages.next()? {
            let header = message_of(&message.bytes)?;
            if header.header_type() == MessageHeader::DictionaryBatch {
                self.take_dictionary(&message)?;
                continue;
            }
            if let Some(batch) = header.header_as_record_batch() {
                let columns = self.schema.fields().iter().map(|field| field.data_type());
                items::check(&batch, columns, self.bytes_max)?;
            }
            let beside = self.dictionaries.bytes.saturating_add(message.size.decoding());
            fits(beside, self.bytes_max)?;
            let batch = self.decoder.read_record_batch(&message.block, &message.bytes)?;
            if let Some(batch) = batch {
                self.check_used(&batch, &message)?;
                return plain::batch(self.texts, batch, beside, self.bytes_max).map(Some);
            }
        }
        Ok(None)
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

/// Where buffers must begin that are not copied.
fn alignment(schema: &SchemaRef) -> usize {
    let fields = schema.flattened_fields();
    let wide = |of: &DataType| matches!(of, DataType::Decimal128(..) | DataType::Decimal256(..));
    if fields.iter().any(|field| wide(field.data_type())) {
        align_of::<i128>()
    } else {
        align_of::<i64>()
    }
}

impl Iterator for IpcReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Refuses blocks of which one lies in another: a footer may name one any number of times.
fn check_apart(some: &VecDeque<Block>, others: &VecDeque<Block>) -> Result<(), ArrowError> {
    let blocks = some.iter().chain(others);
    let mut ranges: Vec<_> = blocks
        .map(|block| {
            let bytes = i64::from(block.metaDataLength()) + block.bodyLength();
            (block.offset(), block.offset() + bytes)
        })
        .collect();
    ranges.sort_unstable();
    match ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
        true => Ok(()),
        false => Err(wrong("two of its blocks lie in the same place")),
    }
}

fn schema_of(schema: arrow_ipc::Schema<'_>, bytes_max: usize) -> Result<SchemaRef, ArrowError> {
    fields::check(schema, bytes_max)?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(wrong("its numbers are in the other order of bytes"));
    }
    let schema = fb_to_schema(schema);
    fields::check_row(&schema, bytes_max)?;
    Ok(Arc::new(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart() {
        let blocks = |at: &[(i64, i32, i64)]| {
            at.iter().map(|(at, metadata, body)| Block::new(*at, *metadata, *body)).collect()
        };
        check_apart(&blocks(&[]), &blocks(&[])).unwrap();
        check_apart(&blocks(&[(48, 8, 16)]), &blocks(&[(8, 8, 32), (72, 8, 0)])).unwrap();
        for other in [(48, 8, 16), (0, 8, 64), (71, 8, 0)] {
            check_apart(&blocks(&[(48, 8, 16)]), &blocks(&[other])).unwrap_err();
        }
    }
}
