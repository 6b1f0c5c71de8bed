//! A file or a stream whose beginning is known: its schema, and where its messages are.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, MetadataVersion, root_as_footer};
use arrow_schema::{DataType, Schema, SchemaRef};

use crate::messages::{METADATA_BYTES_MAX, Messages, PREFIX_BYTES, Source, message_of};
use crate::{MessageError, schema, wrong};

/// The footer's length and the magic word.
const TRAILER_BYTES: usize = 10;

/// The messages of a file or a stream, and what they are to be decoded by.
pub struct ArrowInput {
    /// Not read yet.
    pub messages: Messages,
    /// Of all columns.
    pub schema: SchemaRef,
    /// Of the format.
    pub version: MetadataVersion,
}

impl ArrowInput {
    /// Opens a file, of which a batch may take so much.
    ///
    /// # Errors
    /// When its footer can't be read, its schema takes too much, or its blocks lie outside of it or
    /// in each other.
    pub fn file(mut file: impl Source + 'static, bytes_max: usize) -> Result<Self, MessageError> {
        let length = file.seek(SeekFrom::End(0))?;
        let trailer = trailer(&mut file, length)?;
        let bytes = footer(&mut file, trailer)?;
        let footer = root_as_footer(&bytes).map_err(|error| wrong(error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| wrong("it has no schema"))?;
        let schema = schema_of(schema, bytes_max)?;
        let within = |block: &Block| -> Result<Block, MessageError> {
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
        Ok(Self::of(messages, schema, version))
    }

    /// Begins a stream, by its schema.
    ///
    /// # Errors
    /// When it begins without one, or with one that takes too much.
    pub fn stream(stream: impl Source + 'static, bytes_max: usize) -> Result<Self, MessageError> {
        let mut messages = Messages::of_stream(Box::new(stream), bytes_max)?;
        let first = messages.next_message()?.ok_or_else(|| wrong("it is empty"))?;
        let message = message_of(&first.bytes)?;
        let schema = message.header_as_schema().ok_or_else(|| wrong("it begins without schema"))?;
        let (schema, version) = (schema_of(schema, bytes_max)?, message.version());
        Ok(Self::of(messages, schema, version))
    }

    fn of(messages: Messages, schema: SchemaRef, version: MetadataVersion) -> Self {
        Self { messages: messages.with_alignment(alignment(&schema)), schema, version }
    }
}

/// The end of a file: where it begins, and the length of the footer before it.
pub(crate) struct Trailer {
    at: u64,
    footer_bytes: usize,
}

impl Trailer {
    /// Whether there is as much before it as it says.
    pub(crate) fn is_within(&self) -> bool {
        self.footer_bytes as u64 <= self.at
    }
}

/// The trailer of a file of this length.
pub(crate) fn trailer(file: &mut (impl Read + Seek), length: u64) -> Result<Trailer, MessageError> {
    let at = length.checked_sub(TRAILER_BYTES as u64);
    let at = at.ok_or_else(|| wrong("it is too short"))?;
    file.seek(SeekFrom::Start(at))?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact(&mut trailer)?;
    let footer_bytes = read_footer_length(trailer).map_err(|error| wrong(error.to_string()))?;
    Ok(Trailer { at, footer_bytes })
}

/// The footer before a trailer.
pub(crate) fn footer(
    file: &mut (impl Read + Seek),
    trailer: Trailer,
) -> Result<Vec<u8>, MessageError> {
    let Trailer { at, footer_bytes: bytes } = trailer;
    let begin = at.checked_sub(bytes as u64).filter(|_| bytes <= METADATA_BYTES_MAX);
    let begin = begin.ok_or_else(|| wrong("its footer is longer than the file"))?;
    file.seek(SeekFrom::Start(begin))?;
    let mut footer = vec![0; bytes];
    file.read_exact(&mut footer)?;
    Ok(footer)
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

/// Refuses blocks of which one lies in another: a footer may name one any number of times.
fn check_apart(some: &VecDeque<Block>, others: &VecDeque<Block>) -> Result<(), MessageError> {
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

fn schema_of(schema: arrow_ipc::Schema<'_>, bytes_max: usize) -> Result<SchemaRef, MessageError> {
    schema::check(schema, bytes_max)?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(wrong("its numbers are in the other order of bytes"));
    }
    let schema: Schema = fb_to_schema(schema);
    schema::check_row(&schema, bytes_max)?;
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
