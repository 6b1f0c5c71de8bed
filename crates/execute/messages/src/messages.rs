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

use crate::{MARKER, MessageError, RATIO_USUAL, ended, lz4, too_much, wrong};

/// A longer one is neither a schema nor a list of buffers of a batch.
pub(crate) const METADATA_BYTES_MAX: usize = 64 << 20;

/// Before each message: the marker and the length of its metadata.
pub(crate) const PREFIX_BYTES: usize = 8;
/// A buffer begins with its length before compression, or with this if it isn't compressed.
const NOT_COMPRESSED: i64 = -1;
const LENGTH_BYTES: usize = size_of::<i64>();

/// What messages are read from.
pub trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Messages not read yet.
pub struct Messages {
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
#[derive(Debug)]
pub struct EncapsulatedMessage {
    /// All of it.
    pub bytes: Buffer,
    /// Its lengths; the offset is none, as the bytes begin with it.
    pub block: Block,
    /// What it takes.
    pub size: Size,
}

/// The bytes of a message and of its buffers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// As it lies in the file.
    pub bytes: usize,
    /// Of the buffers that the decoder makes; others lie in the message.
    pub made: usize,
    /// Of all buffers, one by one, though several may be the same bytes.
    pub buffers: usize,
}

impl Size {
    /// While it is decoded.
    #[must_use]
    pub fn decoding(self) -> usize {
        self.bytes.saturating_add(self.made)
    }

    /// What the arrays that are made of it hold: its bytes, or those they are decoded to.
    #[must_use]
    pub fn held(self) -> usize {
        self.buffers.max(self.bytes)
    }
}

impl Messages {
    pub(crate) fn of_stream(mut from: Box<dyn Source>, bytes_max: usize) -> io::Result<Self> {
        let length = from.seek(SeekFrom::End(0))?;
        from.rewind()?;
        Ok(Self::of(from, length, Next::Anything, bytes_max))
    }

    /// Blocks that lie in a file of `length` bytes.
    pub(crate) fn of_file(
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

    pub(crate) fn with_alignment(self, alignment: usize) -> Self {
        Self { alignment, ..self }
    }

    /// The next message; none at the end.
    ///
    /// # Errors
    /// When it is not in the file, or takes more than it may.
    pub fn next_message(&mut self) -> Result<Option<EncapsulatedMessage>, MessageError> {
        let Some((mut whole, body_bytes)) = self.metadata()? else { return Ok(None) };
        let metadata_bytes = whole.len();
        fits(metadata_bytes + body_bytes, self.bytes_max)?;
        self.append(&mut whole, body_bytes)?;
        let (message, body) = (message_of(&whole[..metadata_bytes])?, &whole[metadata_bytes..]);
        let mut read = |at: usize, to: &mut [u8]| {
            let from = body.get(at..).and_then(|body| body.get(..to.len())).ok_or_else(ended)?;
            to.copy_from_slice(from);
            Ok(())
        };
        let lengths = (metadata_bytes, body_bytes);
        let size = size(&message, lengths, self.alignment, Frames::Walked, &mut read)?;
        let block = Block::new(0, metadata_bytes as i32, body_bytes as i64);
        Ok(Some(EncapsulatedMessage { bytes: Buffer::from_vec(whole), block, size }))
    }

    /// The next message's metadata with its prefix, and what it takes; its body is passed. Whether
    /// that decompresses to what it says is seen once it is read.
    ///
    /// # Errors
    /// As [`next_message`](Self::next_message).
    pub fn next_size(&mut self) -> Result<Option<(Vec<u8>, Size)>, MessageError> {
        self.sized(Frames::Passed)
    }

    /// The same for a decoder that reads the message without another look.
    ///
    /// # Errors
    /// As [`next_message`](Self::next_message).
    pub(crate) fn next_checked(&mut self) -> Result<Option<(Vec<u8>, Size)>, MessageError> {
        self.sized(Frames::Walked)
    }

    fn sized(&mut self, frames: Frames) -> Result<Option<(Vec<u8>, Size)>, MessageError> {
        let Some((metadata, body_bytes)) = self.metadata()? else { return Ok(None) };
        let from = &mut self.from;
        let begin = from.stream_position()?;
        let end = begin.checked_add(body_bytes as u64).filter(|end| *end <= self.length);
        let end = end.ok_or_else(ended)?;
        let mut at = begin;
        let mut read = |place: usize, to: &mut [u8]| {
            let place = begin + place as u64;
            if place + to.len() as u64 > end {
                return Err(ended());
            }
            from.seek_relative(place as i64 - at as i64)?;
            at = place + to.len() as u64;
            from.read_exact(to)
        };
        let lengths = (metadata.len(), body_bytes);
        let size = size(&message_of(&metadata)?, lengths, self.alignment, frames, &mut read)?;
        from.seek_relative(end as i64 - at as i64)?;
        Ok(Some((metadata, size)))
    }

    /// The next message's metadata with its prefix, and the length of its body.
    fn metadata(&mut self) -> Result<Option<(Vec<u8>, usize)>, MessageError> {
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
    fn metadata_of_stream(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        let mut word = [0; 4];
        // A stream may end between two messages, and nowhere else.
        match self.from.read_exact(&mut word[..1]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        self.from.read_exact(&mut word[1..]).map_err(cut)?;
        // Before 2019 there was no marker.
        if word == MARKER {
            self.from.read_exact(&mut word).map_err(cut)?;
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
            return Err(ended());
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

/// Frames of compressed buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// Not looked at.
    Passed,
    /// Walked through by the headers of their blocks.
    Walked,
}

/// What a message takes, by its metadata. `read` reads bytes at a place of its body.
fn size(
    message: &Message<'_>,
    (metadata_bytes, body_bytes): (usize, usize),
    alignment: usize,
    frames: Frames,
    read: &mut dyn FnMut(usize, &mut [u8]) -> io::Result<()>,
) -> Result<Size, MessageError> {
    let mut size = Size { bytes: metadata_bytes + body_bytes, made: 0, buffers: 0 };
    let Some(batch) = batch_of(message) else { return Ok(size) };
    check_rows(&batch)?;
    let codec = batch.compression().map(|compression| compression.codec());
    let walks = frames == Frames::Walked && codec == Some(CompressionType::LZ4_FRAME);
    let mut place = Place { bytes: body_bytes, looked_at: 0 };
    for buffer in batch.buffers().into_iter().flatten() {
        let range = range_of(buffer, body_bytes)?;
        let (mut begin, mut bytes) = (range.start, range.len());
        let mut is_made = false;
        if codec.is_some() && bytes > 0 {
            if bytes < LENGTH_BYTES {
                return Err(wrong("a compressed buffer is too short"));
            }
            let mut length = [0; LENGTH_BYTES];
            read(begin, &mut length)?;
            begin += LENGTH_BYTES;
            match i64::from_le_bytes(length) {
                NOT_COMPRESSED => {}
                length => {
                    let length = usize::try_from(length);
                    bytes = length.map_err(|_| wrong("a buffer has less than no bytes"))?;
                    is_made = true;
                }
            }
            let frame = begin..range.end;
            // Of no bytes, nothing is decompressed.
            if is_made && walks && bytes > 0 {
                place.look_at(frame.len())?;
                if !lz4::holds(&frame, bytes, read)? {
                    return Err(wrong("a buffer can't decompress to what it says"));
                }
            }
        }
        if is_made || !(metadata_bytes + begin).is_multiple_of(alignment) {
            size.made = size.made.saturating_add(bytes);
        } else {
            // A decoder looks at what it doesn't make, too.
            place.look_at(bytes)?;
        }
        size.buffers = size.buffers.saturating_add(bytes);
    }
    Ok(size)
}

/// The bytes of a message's body, and those of its buffers that are looked at where they lie: a
/// place may be named any number of times, and each time costs nothing but the look.
struct Place {
    bytes: usize,
    looked_at: usize,
}

impl Place {
    fn look_at(&mut self, bytes: usize) -> Result<(), MessageError> {
        self.looked_at = self.looked_at.saturating_add(bytes);
        match self.looked_at / RATIO_USUAL > self.bytes {
            true => Err(wrong("too many of its buffers lie in the same place")),
            false => Ok(()),
        }
    }
}

/// Refuses numbers of rows that no batch has.
fn check_rows(batch: &BatchMessage<'_>) -> Result<(), MessageError> {
    let nodes = batch.nodes().into_iter().flatten();
    let lengths = nodes.map(|node| (node.length(), node.null_count()));
    for (rows, nulls) in lengths.chain([(batch.length(), 0)]) {
        // Arrow's own rows are 32 bits wide in more places than not.
        if i32::try_from(rows).is_err() || nulls < 0 || nulls > rows || rows < 0 {
            return Err(wrong("a batch has an impossible number of rows"));
        }
    }
    Ok(())
}

/// Where a buffer lies in its message's body.
fn range_of(buffer: &arrow_ipc::Buffer, body_bytes: usize) -> Result<Range<usize>, MessageError> {
    let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
    let range = range.and_then(|(begin, bytes)| Some(begin..begin.checked_add(bytes)?));
    let range = range.filter(|range| range.end <= body_bytes);
    range.ok_or_else(|| wrong("a buffer lies outside of its message"))
}

/// The error of a read that found no more.
fn cut(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::UnexpectedEof { ended() } else { error }
}

/// Refuses a batch that takes more than it may.
///
/// # Errors
/// When it does.
pub(crate) fn fits(bytes: usize, bytes_max: usize) -> Result<(), MessageError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(too_much("a batch", bytes, bytes_max, ", or write the file in smaller batches"))
}

/// The message of what begins with a prefix.
///
/// # Errors
/// When it is none.
pub fn message_of(bytes: &[u8]) -> Result<Message<'_>, MessageError> {
    let metadata = match bytes.strip_prefix(&MARKER) {
        Some(_) => bytes.get(PREFIX_BYTES..),
        None => bytes.get(PREFIX_BYTES / 2..),
    };
    let metadata = metadata.ok_or_else(|| wrong("a message is too short"))?;
    root_as_message(metadata).map_err(|error| wrong(error.to_string()))
}
