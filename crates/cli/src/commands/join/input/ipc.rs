//! Arrow files and streams, whose lengths are checked before anything is allocated for them.
//!
//! ```text
//! file    footer ─► blocks, each within the file ─┐
//! stream  message after message ──────────────────┴─► checked ─► arrow-ipc's decoder ─► batch
//! ```
//!
//! arrow-ipc allocates what a message says of its length and of its contents before compression. A
//! message here is as long as what was read of it, its buffers lie in it, and what they are decoded
//! to fits the memory that may be used, as do all dictionaries together. An item of a list counts
//! also where its type has no bytes.

mod items;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{
    Block, CompressionType, Message, MessageHeader, MetadataVersion, RecordBatch as BatchMessage,
    root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::fields::ITEM_BYTES;
use super::interruptible::Interruptible;
use super::refusal::too_much;
use super::{fields, plain};

/// More is no schema and no list of buffers of a batch.
const METADATA_BYTES_MAX: usize = 64 << 20;
/// Bytes that dictionaries may be copied to, all together, as others are added to them: seconds.
const COPIED_BYTES_MAX: usize = 8 << 30;

/// A look at a field for the number of its dictionary, as bytes that are copied.
const LOOK_BYTES: usize = 16;

/// Before each message: a marker and the length of its metadata.
const PREFIX_BYTES: usize = 8;
pub(super) const MARKER: [u8; 4] = [0xff; 4];
/// The end of a file: the footer's length and the magic word.
const TRAILER_BYTES: usize = 10;
/// A buffer begins with its length before compression, or with this if it isn't compressed.
const NOT_COMPRESSED: i64 = -1;
/// Read at a time of what does not say its length itself.
const PIECE_BYTES: usize = 1 << 20;

/// The batches of a file or a stream.
pub(super) struct IpcReader {
    source: Source,
    /// Of the file.
    schema: SchemaRef,
    decoder: FileDecoder,
    /// What a batch may take, decompressed, and all dictionaries together.
    bytes_max: usize,
    /// What each dictionary holds by its number, and all of them.
    dictionaries: HashMap<i64, usize>,
    dictionary_bytes: usize,
    /// What was copied to make them.
    copied_bytes: usize,
    /// Types of their values, by the same numbers.
    values: HashMap<i64, DataType>,
    /// All fields, nested ones too: each message of a dictionary has all of them looked at.
    fields: usize,
    /// Values of a dictionary may hold another one, also once that is replaced.
    keeps_replaced: bool,
}

enum Source {
    File { file: Interruptible<File>, blocks: VecDeque<Block> },
    Stream { stream: Box<dyn Read + Send>, ended: bool },
}

impl IpcReader {
    /// Opens a file, and reads its dictionaries.
    pub(super) fn file(
        mut file: Interruptible<File>,
        columns: Option<Vec<usize>>,
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
        let source = Source::File { file, blocks: dictionaries };
        let mut reader = Self::new(source, schema, version, columns, bytes_max);
        reader.read_dictionaries()?;
        if let Source::File { blocks: left, .. } = &mut reader.source {
            *left = blocks;
        }
        Ok(reader)
    }

    /// Begins a stream, by its schema.
    pub(super) fn stream(
        mut stream: Box<dyn Read + Send>,
        columns: Option<Vec<usize>>,
        bytes_max: usize,
    ) -> Result<Self, ArrowError> {
        let first = read_message(&mut stream, bytes_max)?.ok_or_else(|| wrong("it is empty"))?;
        let message = message_of(&first.bytes)?;
        let schema = message.header_as_schema().ok_or_else(|| wrong("it begins without schema"))?;
        let (schema, version) = (schema_of(schema, bytes_max)?, message.version());
        let source = Source::Stream { stream, ended: false };
        Ok(Self::new(source, schema, version, columns, bytes_max))
    }

    fn new(
        source: Source,
        schema: SchemaRef,
        version: MetadataVersion,
        columns: Option<Vec<usize>>,
        bytes_max: usize,
    ) -> Self {
        let decoder = FileDecoder::new(schema.clone(), version);
        let decoder = match columns {
            Some(columns) => decoder.with_projection(columns),
            None => decoder,
        };
        let keeps_replaced =
            schema.flattened_fields().iter().any(|field| match field.data_type() {
                DataType::Dictionary(_, of) => of.is_nested() || of.is_run_ends_type(),
                _ => false,
            });
        Self {
            source,
            decoder,
            bytes_max,
            dictionaries: HashMap::new(),
            dictionary_bytes: 0,
            copied_bytes: 0,
            values: items::values_of(&schema),
            fields: schema.flattened_fields().len(),
            keeps_replaced,
            schema,
        }
    }

    /// All columns, as they are read.
    pub(super) fn schema(&self) -> SchemaRef {
        plain::schema(&self.schema)
    }

    fn read_dictionaries(&mut self) -> Result<(), ArrowError> {
        while let Some(message) = self.source.next(self.bytes_max)? {
            self.take_dictionary(&message)?;
        }
        Ok(())
    }

    fn take_dictionary(&mut self, message: &Encapsulated) -> Result<(), ArrowError> {
        if let Some(dictionary) = message_of(&message.bytes)?.header_as_dictionary_batch() {
            let values = self.values.get(&dictionary.id());
            if let Some((batch, values)) = dictionary.data().zip(values) {
                items::check(&batch, [values].into_iter(), self.bytes_max)?;
            }
            let before = self.dictionaries.entry(dictionary.id()).or_default();
            let replaces = !dictionary.isDelta() && !self.keeps_replaced;
            let kept = if replaces { 0 } else { *before };
            self.dictionary_bytes = self.dictionary_bytes - *before + kept + message.held;
            let copied = if dictionary.isDelta() { *before } else { 0 };
            self.copied_bytes += copied + self.fields * LOOK_BYTES;
            *before = kept + message.held;
            if self.dictionary_bytes > self.bytes_max {
                let (bytes, most) = (self.dictionary_bytes, self.bytes_max);
                return Err(too_much("a file's dictionaries", bytes, most, "").into());
            }
            if self.copied_bytes > COPIED_BYTES_MAX {
                return Err(wrong("its dictionaries are added to too often: write each at once"));
            }
        }
        self.decoder.read_dictionary(&message.block, &message.bytes)
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while let Some(message) = self.source.next(self.bytes_max)? {
            let header = message_of(&message.bytes)?;
            match header.header_type() {
                MessageHeader::DictionaryBatch => self.take_dictionary(&message)?,
                _ => {
                    if let Some(batch) = header.header_as_record_batch() {
                        let columns = self.schema.fields().iter().map(|field| field.data_type());
                        items::check(&batch, columns, self.bytes_max)?;
                    }
                    let batch = self.decoder.read_record_batch(&message.block, &message.bytes)?;
                    if let Some(batch) = batch {
                        return plain::batch(batch, self.bytes_max).map(Some);
                    }
                }
            }
        }
        Ok(None)
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

/// A message as it lies in the file: prefix, metadata, body.
struct Encapsulated {
    bytes: Buffer,
    /// Its lengths; the offset is none, as the bytes begin with it.
    block: Block,
    /// What the arrays that are made of it hold: these bytes, or those they are decoded to.
    held: usize,
}

impl Source {
    fn next(&mut self, bytes_max: usize) -> Result<Option<Encapsulated>, ArrowError> {
        match self {
            Source::File { file, blocks } => {
                let Some(block) = blocks.pop_front() else { return Ok(None) };
                let metadata_bytes = block.metaDataLength() as usize;
                let bytes = metadata_bytes + block.bodyLength() as usize;
                fits(bytes, bytes_max)?;
                file.seek(SeekFrom::Start(block.offset() as u64))?;
                // The block lies in the file.
                let mut whole = vec![0; bytes];
                file.read_exact(&mut whole)?;
                checked(whole, metadata_bytes, bytes_max).map(Some)
            }
            Source::Stream { ended: true, .. } => Ok(None),
            Source::Stream { stream, ended } => {
                let message = read_message(stream, bytes_max)?;
                *ended = message.is_none();
                Ok(message)
            }
        }
    }
}

/// The next message of a stream; none at its end.
fn read_message(
    stream: &mut (impl Read + ?Sized),
    bytes_max: usize,
) -> Result<Option<Encapsulated>, ArrowError> {
    let mut word = [0; 4];
    match stream.read_exact(&mut word) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    // Before 2019 there was no marker.
    if word == MARKER {
        stream.read_exact(&mut word)?;
    }
    let metadata_bytes = usize::try_from(i32::from_le_bytes(word));
    let metadata_bytes = metadata_bytes.ok().filter(|bytes| *bytes <= METADATA_BYTES_MAX);
    let metadata_bytes = metadata_bytes.ok_or_else(|| wrong("a message's metadata is too long"))?;
    if metadata_bytes == 0 {
        return Ok(None);
    }
    let mut whole = [MARKER, word].concat();
    read_to(stream, &mut whole, metadata_bytes)?;
    let body_bytes = usize::try_from(message_of(&whole)?.bodyLength());
    let body_bytes = body_bytes.map_err(|_| wrong("a message's body has less than no bytes"))?;
    fits(body_bytes, bytes_max)?;
    let metadata_bytes = whole.len();
    read_to(stream, &mut whole, body_bytes)?;
    checked(whole, metadata_bytes, bytes_max).map(Some)
}

/// Appends exactly `bytes`, of which only those that arrive are allocated.
fn read_to(
    stream: &mut (impl Read + ?Sized),
    to: &mut Vec<u8>,
    mut bytes: usize,
) -> Result<(), ArrowError> {
    while bytes > 0 {
        let piece = bytes.min(PIECE_BYTES.max(to.len()));
        let begin = to.len();
        to.resize(begin + piece, 0);
        stream.read_exact(&mut to[begin..])?;
        bytes -= piece;
    }
    Ok(())
}

/// A message whose buffers lie in it.
fn checked(
    whole: Vec<u8>,
    metadata_bytes: usize,
    bytes_max: usize,
) -> Result<Encapsulated, ArrowError> {
    let body = &whole[metadata_bytes..];
    let message = message_of(&whole[..metadata_bytes])?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        }
        _ => None,
    };
    let decoded = batch.map_or(Ok(0), |batch| check(&batch, body, bytes_max))?;
    let (block, held) = (Block::new(0, metadata_bytes as i32, body.len() as i64), whole.len());
    let held = decoded.max(held);
    Ok(Encapsulated { bytes: Buffer::from_vec(whole), block, held })
}

/// What the arrays of a batch take, if they may take it.
fn check(batch: &BatchMessage<'_>, body: &[u8], bytes_max: usize) -> Result<usize, ArrowError> {
    let nodes = batch.nodes().into_iter().flatten();
    let lengths = nodes.map(|node| (node.length(), node.null_count()));
    for (rows, nulls) in lengths.chain([(batch.length(), 0)]) {
        // Arrow's own rows are 32 bits wide in more places than not.
        if i32::try_from(rows).is_err() || nulls < 0 || nulls > rows || rows < 0 {
            return Err(wrong("a batch has an impossible number of rows"));
        }
    }
    // Rows have numbers, also where their types have no bytes.
    fits(batch.length() as usize * ITEM_BYTES, bytes_max)?;
    let codec = batch.compression().map(|compression| compression.codec());
    // Of each buffer, though several may be the same bytes: the decoder copies one that begins at
    // an odd place.
    let mut decoded = 0_usize;
    for buffer in batch.buffers().into_iter().flatten() {
        let range =
            usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range
            .and_then(|(begin, bytes)| body.get(begin..begin.checked_add(bytes)?))
            .ok_or_else(|| wrong("a buffer lies outside of its message"))?;
        let mut takes = bytes.len();
        if codec.is_some() && !bytes.is_empty() {
            let length = bytes.first_chunk().map(|first| i64::from_le_bytes(*first));
            let length = length.ok_or_else(|| wrong("a compressed buffer is too short"))?;
            if length != NOT_COMPRESSED {
                let length = usize::try_from(length).ok().filter(|length| {
                    codec != Some(CompressionType::LZ4_FRAME) || holds(&bytes[8..], *length)
                });
                takes = length.ok_or_else(|| wrong("a buffer can't decompress to what it says"))?;
            }
        }
        decoded = decoded.saturating_add(takes);
    }
    fits(decoded, bytes_max)?;
    Ok(decoded)
}

/// Whether a frame of LZ4 may hold as many bytes as it is said to, and not many more: its decoder
/// reads to the end whatever that is. Each block makes at most the size that the frame names.
///
/// <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>
fn holds(frame: &[u8], length: usize) -> bool {
    const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
    const UNCOMPRESSED: u32 = 1 << 31;
    let Some((flags, rest)) = frame.strip_prefix(&MAGIC).and_then(|rest| rest.split_first()) else {
        return false;
    };
    let Some((sizes, rest)) = rest.split_first() else { return false };
    let has = |bit: u8| usize::from(flags >> bit & 1);
    let block_max = match sizes >> 4 & 7 {
        size @ 4..=7 => (64 << 10) << (2 * (size - 4)),
        _ => return false,
    };
    // The content's size, the dictionary's number, and a checksum.
    let mut rest = rest.get(8 * has(3) + 4 * has(0) + 1..).unwrap_or_default();
    let (mut made, mut ended) = (0_usize, false);
    while let Some((size, after)) = rest.split_first_chunk().filter(|_| !ended) {
        let size = u32::from_le_bytes(*size);
        let bytes = (size & !UNCOMPRESSED) as usize;
        ended = size == 0;
        let most = if size & UNCOMPRESSED == 0 { block_max.min(255 * bytes) } else { bytes };
        made = made.saturating_add(most);
        rest = after.get(bytes + if ended { 4 * has(2) } else { 4 * has(4) }..).unwrap_or_default();
    }
    // The last block is rarely full, and writers may end one early.
    ended && rest.is_empty() && length <= made && made <= 2 * length + block_max
}

fn fits(bytes: usize, bytes_max: usize) -> Result<(), ArrowError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(too_much("a batch", bytes, bytes_max, ", or write the file in smaller batches").into())
}

/// The metadata of what begins with a prefix.
fn message_of(bytes: &[u8]) -> Result<Message<'_>, ArrowError> {
    let metadata = match bytes.strip_prefix(&MARKER) {
        Some(_) => bytes.get(PREFIX_BYTES..),
        None => bytes.get(PREFIX_BYTES / 2..),
    };
    let metadata = metadata.ok_or_else(|| wrong("a message is too short"))?;
    root_as_message(metadata).map_err(|error| wrong(&error.to_string()))
}

fn schema_of(schema: arrow_ipc::Schema<'_>, bytes_max: usize) -> Result<SchemaRef, ArrowError> {
    fields::check(schema, bytes_max)?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(wrong("its numbers are in the other order of bytes"));
    }
    let schema = fb_to_schema(schema);
    fields::check_row(&schema, bytes_max)?;
    plain::check(&schema)?;
    Ok(Arc::new(schema))
}

fn wrong(says: &str) -> ArrowError {
    ArrowError::ParseError(says.to_owned())
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
