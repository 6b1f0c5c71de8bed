//! The messages of a file or a stream, one after the other: read whole, or only how much they take.
//!
//! ```text
//! file    footer ─► blocks, each within the file ─┐               ┌─► bytes, buffers in them
//! stream  one behind the other ───────────────────┴─► metadata ───┴─► sizes; the body is passed
//! ```

use std::collections::VecDeque;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

use arrow_buffer::Buffer;
use arrow_ipc::{
    Block, CompressionType, Message, MessageHeader, RecordBatch as BatchMessage, root_as_message,
};
use arrow_schema::ArrowError;

use super::super::fields::MARKER;
use super::super::refusal::{too_much, wrong};

/// A longer one is neither a schema nor a list of buffers of a batch.
pub(super) const METADATA_BYTES_MAX: usize = 64 << 20;

/// Before each message: the marker and the length of its metadata.
pub(super) const PREFIX_BYTES: usize = 8;
/// A buffer begins with its length before compression, or with this if it isn't compressed.
const NOT_COMPRESSED: i64 = -1;
const LENGTH_BYTES: usize = size_of::<i64>();

/// A source of messages.
pub(super) trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Messages not read yet.
pub(super) struct Messages {
    from: BufReader<Box<dyn Source>>,
    /// Bytes of the file or stream.
    length: u64,
    next: Next,
    /// Most bytes of a message.
    bytes_max: usize,
    /// Buffers that begin elsewhere are copied by the decoder.
    alignment: usize,
}

enum Next {
    Blocks(VecDeque<Block>),
    Anything,
    Nothing,
}

/// A message as it lies in the file: prefix, metadata, body.
pub(super) struct EncapsulatedMessage {
    pub(super) bytes: Buffer,
    /// Its lengths; the offset is none, as the bytes begin with it.
    pub(super) block: Block,
    pub(super) size: Size,
}

/// The bytes of a message and of its buffers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// As it lies in the file.
    pub(super) bytes: usize,
    /// Of the buffers that the decoder makes; others lie in the message.
    pub(super) made: usize,
    /// Of all buffers, one by one, though several may be the same bytes.
    pub(super) buffers: usize,
}

impl Size {
    /// While it is decoded.
    pub(super) fn decoding(self) -> usize {
        self.bytes.saturating_add(self.made)
    }

    /// Bytes of the arrays that are made of it: its own, or those they are decoded to.
    pub(super) fn held(self) -> usize {
        self.buffers.max(self.bytes)
    }
}

impl Messages {
    pub(super) fn of_stream(mut from: Box<dyn Source>, bytes_max: usize) -> io::Result<Self> {
        let length = from.seek(SeekFrom::End(0))?;
        from.rewind()?;
        Ok(Self::of(from, length, Next::Anything, bytes_max))
    }

    /// Blocks that lie in a file of `length` bytes.
    pub(super) fn of_file(
        from: Box<dyn Source>,
        length: u64,
        blocks: VecDeque<Block>,
        bytes_max: usize,
    ) -> Self {
        Self::of(from, length, Next::Blocks(blocks), bytes_max)
    }

    fn of(from: Box<dyn Source>, length: u64, next: Next, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), length, next, bytes_max, alignment: LENGTH_BYTES }
    }

    pub(super) fn with_alignment(self, alignment: usize) -> Self {
        Self { alignment, ..self }
    }

    /// The next message; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<EncapsulatedMessage>, ArrowError> {
        let Some((mut whole, body_bytes)) = self.metadata()? else { return Ok(None) };
        let metadata_bytes = whole.len();
        fits(metadata_bytes + body_bytes, self.bytes_max)?;
        self.append(&mut whole, body_bytes)?;
        let (message, body) = (message_of(&whole[..metadata_bytes])?, &whole[metadata_bytes..]);
        let is_lz4 = batch_of(&message).and_then(|batch| codec(&batch));
        let is_lz4 = is_lz4 == Some(CompressionType::LZ4_FRAME);
        let size = size(&message, (metadata_bytes, body_bytes), self.alignment, |range| {
            let (length, frame) = body[range].split_first_chunk().unwrap_or((&[0; 8], &[]));
            let length = i64::from_le_bytes(*length);
            if is_lz4 && usize::try_from(length).is_ok_and(|length| !holds(frame, length)) {
                return Err(wrong("a buffer can't decompress to what it says"));
            }
            Ok(length)
        })?;
        let block = Block::new(0, metadata_bytes as i32, body_bytes as i64);
        Ok(Some(EncapsulatedMessage { bytes: Buffer::from_vec(whole), block, size }))
    }

    /// The next message's metadata with its prefix, and what it takes; its body is passed.
    pub(super) fn next_size(&mut self) -> Result<Option<(Vec<u8>, Size)>, ArrowError> {
        let Some((metadata, body_bytes)) = self.metadata()? else { return Ok(None) };
        let from = &mut self.from;
        let mut at = 0;
        let message = message_of(&metadata)?;
        let size = size(&message, (metadata.len(), body_bytes), self.alignment, |range| {
            let mut length = [0; LENGTH_BYTES];
            from.seek_relative(range.start as i64 - at)?;
            from.read_exact(&mut length)?;
            at = (range.start + LENGTH_BYTES) as i64;
            Ok(i64::from_le_bytes(length))
        })?;
        from.seek_relative(body_bytes as i64 - at)?;
        Ok(Some((metadata, size)))
    }

    /// The next message's metadata with its prefix, and the length of its body.
    fn metadata(&mut self) -> Result<Option<(Vec<u8>, usize)>, ArrowError> {
        match &mut self.next {
            Next::Nothing => Ok(None),
            Next::Blocks(blocks) => {
                let Some(block) = blocks.pop_front() else { return Ok(None) };
                let (bytes, body) = (block.metaDataLength() as usize, block.bodyLength() as usize);
                fits(bytes + body, self.bytes_max)?;
                self.from.seek(SeekFrom::Start(block.offset() as u64))?;
                let mut metadata = Vec::new();
                self.append(&mut metadata, bytes)?;
                Ok(Some((metadata, body)))
            }
            Next::Anything => {
                let Some(metadata) = self.metadata_of_stream()? else {
                    self.next = Next::Nothing;
                    return Ok(None);
                };
                let body = usize::try_from(message_of(&metadata)?.bodyLength());
                let body = body.map_err(|_| wrong("a message's body has less than no bytes"))?;
                fits(body, self.bytes_max)?;
                Ok(Some((metadata, body)))
            }
        }
    }

    /// The same of a stream; none at its end.
    fn metadata_of_stream(&mut self) -> Result<Option<Vec<u8>>, ArrowError> {
        let mut word = [0; 4];
        // A stream may end between two messages, and nowhere else.
        match self.from.read_exact(&mut word[..1]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        self.from.read_exact(&mut word[1..])?;
        // Before 2019 there was no marker.
        if word == MARKER {
            self.from.read_exact(&mut word)?;
        }
        let bytes = usize::try_from(i32::from_le_bytes(word)).ok();
        let bytes = bytes.filter(|bytes| *bytes <= METADATA_BYTES_MAX);
        let bytes = bytes.ok_or_else(|| wrong("a message's metadata is too long"))?;
        if bytes == 0 {
            return Ok(None);
        }
        let mut metadata = [MARKER, word].concat();
        self.append(&mut metadata, bytes)?;
        Ok(Some(metadata))
    }

    /// Appends bytes, for which there is room only if they are there.
    fn append(&mut self, to: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
        let end = self.from.stream_position()?.saturating_add(bytes as u64);
        if end > self.length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let begin = to.len();
        to.reserve_exact(bytes);
        to.resize(begin + bytes, 0);
        self.from.read_exact(&mut to[begin..])
    }
}

/// The rows of a message that has some, or of a dictionary.
fn batch_of<'m>(message: &Message<'m>) -> Option<BatchMessage<'m>> {
    match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        }
        _ => None,
    }
}

fn codec(batch: &BatchMessage<'_>) -> Option<CompressionType> {
    batch.compression().map(|compression| compression.codec())
}

/// The size of a message, by its metadata. `length` reads how a compressed buffer begins: its
/// length before.
fn size(
    message: &Message<'_>,
    (metadata_bytes, body_bytes): (usize, usize),
    alignment: usize,
    mut length: impl FnMut(Range<usize>) -> Result<i64, ArrowError>,
) -> Result<Size, ArrowError> {
    let mut size = Size { bytes: metadata_bytes + body_bytes, made: 0, buffers: 0 };
    let Some(batch) = batch_of(message) else { return Ok(size) };
    let nodes = batch.nodes().into_iter().flatten();
    let lengths = nodes.map(|node| (node.length(), node.null_count()));
    for (rows, nulls) in lengths.chain([(batch.length(), 0)]) {
        // Arrow's own rows are 32 bits wide in more places than not.
        if i32::try_from(rows).is_err() || nulls < 0 || nulls > rows || rows < 0 {
            return Err(wrong("a batch has an impossible number of rows"));
        }
    }
    let is_compressed = codec(&batch).is_some();
    for buffer in batch.buffers().into_iter().flatten() {
        let range =
            usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let range = range.and_then(|(begin, bytes)| Some(begin..begin.checked_add(bytes)?));
        let range = range.filter(|range| range.end <= body_bytes);
        let range = range.ok_or_else(|| wrong("a buffer lies outside of its message"))?;
        let (mut begin, mut bytes) = (range.start, range.len());
        let mut is_made = false;
        if is_compressed && bytes > 0 {
            if bytes < LENGTH_BYTES {
                return Err(wrong("a compressed buffer is too short"));
            }
            match length(range)? {
                NOT_COMPRESSED => begin += LENGTH_BYTES,
                length => {
                    let length = usize::try_from(length);
                    bytes = length.map_err(|_| wrong("a buffer has less than no bytes"))?;
                    is_made = true;
                }
            }
        }
        if is_made || !(metadata_bytes + begin).is_multiple_of(alignment) {
            size.made = size.made.saturating_add(bytes);
        }
        size.buffers = size.buffers.saturating_add(bytes);
    }
    Ok(size)
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

/// Refuses a batch that takes more than it may.
pub(super) fn fits(bytes: usize, bytes_max: usize) -> Result<(), ArrowError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(too_much("a batch", bytes, bytes_max, ", or write the file in smaller batches").into())
}

/// The message of what begins with a prefix.
pub(super) fn message_of(bytes: &[u8]) -> Result<Message<'_>, ArrowError> {
    let metadata = match bytes.strip_prefix(&MARKER) {
        Some(_) => bytes.get(PREFIX_BYTES..),
        None => bytes.get(PREFIX_BYTES / 2..),
    };
    let metadata = metadata.ok_or_else(|| wrong("a message is too short"))?;
    root_as_message(metadata).map_err(|error| wrong(&error.to_string()))
}
