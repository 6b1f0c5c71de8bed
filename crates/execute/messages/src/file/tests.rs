//! Files and streams that say of themselves what they are, and such as don't.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{
    BodyCompressionBuilder, Buffer, CompressionType, MessageBuilder, MetadataVersion,
    RecordBatchBuilder,
};
use arrow_schema::Schema;

use super::*;

const MOST: usize = 64 << 20;
const CODECS: [Option<CompressionType>; 3] =
    [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

fn batch() -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..20_000).map(|row| format!("row {row}"))));
    let keys = Int32Array::from_iter_values((0..20_000).map(|row| row % 3));
    let values = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let keyed: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, values));
    RecordBatch::try_from_iter([("n", numbers), ("t", texts), ("k", keyed)]).unwrap()
}

fn options(codec: Option<CompressionType>) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(codec).unwrap()
}

fn stream(codec: Option<CompressionType>) -> Vec<u8> {
    let (batch, mut bytes) = (batch(), Vec::new());
    let mut writer =
        StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options(codec)).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn file(codec: Option<CompressionType>) -> Vec<u8> {
    let (batch, mut bytes) = (batch(), Vec::new());
    let mut writer =
        FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options(codec)).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn checked(bytes: &[u8], is_named: bool) -> Result<(), String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    check_file(&file, is_named, || MOST).map(drop).map_err(|error| error.to_string())
}

/// A decoder has no bound for a footer, nor for a first message.
#[test]
fn metadata_longer_than_any_are_refused_and_not_passed_over() {
    let longer = METADATA_BYTES_MAX as i32 + 1;
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(longer as u64 + 64).unwrap();
    file.write_all(&longer.to_le_bytes()).unwrap();
    let checked = |file: &File, is_named| {
        check_file(file, is_named, || MOST).map_err(|error| error.to_string())
    };
    assert_eq!(checked(&file, false), Ok(false), "it may be anybody's");
    assert!(checked(&file, true).unwrap_err().contains("message"));
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&longer.to_le_bytes()).unwrap();
    file.write_all(b"ARROW1").unwrap();
    for is_named in [true, false] {
        assert!(checked(&file, is_named).unwrap_err().contains("footer"));
    }
}

/// Without a line end, the bytes before its last word are taken for the length of a footer.
#[test]
fn a_text_may_end_as_files_do() {
    let text = b"id,format\n1,PARQUET\n2,ARROW1";
    checked(text, false).unwrap();
    assert!(checked(text, true).unwrap_err().contains("footer"));
}

/// A file does not begin with a length, however long it is.
#[test]
fn a_file_of_gigabytes_is_not_taken_for_a_stream() {
    let whole = file(None);
    let (rest, trailer) = whole.split_at(whole.len() - 10);
    let footer = u32::from_le_bytes(trailer[..4].try_into().unwrap()) as usize;
    let (blocks, footer) = rest.split_at(rest.len() - footer);
    let long = tempfile::tempfile().unwrap();
    long.write_all_at(blocks, 0).unwrap();
    // Nobody says what is between the last block and the footer.
    let end = [footer, trailer].concat();
    long.write_all_at(&end, 1 << 31).unwrap();
    assert!(check_file(&long, true, || MOST).unwrap());
    // Without its end it would be read by its beginning.
    long.set_len((1 << 31) + end.len() as u64 - 1).unwrap();
    assert!(check_file(&long, true, || MOST).is_err());
}

/// A reader of rows goes by the beginning, whatever the end says.
#[test]
fn a_file_that_begins_as_none_is_refused() {
    for codec in CODECS {
        let mut whole = file(codec);
        for beginning in [*b"ARROX1", [0xff, 0xff, 0xff, 0x7f, b'W', b'1']] {
            whole[..beginning.len()].copy_from_slice(&beginning);
            assert!(checked(&whole, true).unwrap_err().contains("neither a file nor a stream"));
            checked(&whole, false).unwrap();
        }
    }
}

/// Where numbers of eight bytes are that are alike.
fn places(bytes: &[u8], alike: impl Fn(u64) -> bool) -> Vec<usize> {
    let word = |at: &usize| u64::from_le_bytes(bytes[*at..at + 8].try_into().unwrap());
    (0..bytes.len() - 8).filter(|at| alike(word(at))).collect()
}

#[test]
fn what_is_whole_passes() {
    for codec in CODECS {
        for is_named in [true, false] {
            checked(&stream(codec), is_named).unwrap();
            checked(&file(codec), is_named).unwrap();
        }
    }
}

#[test]
fn a_stream_may_end_between_messages_only() {
    let whole = stream(None);
    // The mark of its end takes eight bytes, and may be missing.
    checked(&whole[..whole.len() - 8], true).unwrap();
    for end in (9..whole.len()).step_by(997).chain([whole.len() - 1, whole.len() - 9]) {
        let said = checked(&whole[..end], true).unwrap_err();
        assert!(said.contains("it ends within a message"), "{end}: {said}");
    }
    // As it was before 2019: the length comes first.
    let old = [&whole[4..], &[0; 4]].concat();
    let schema = u32::from_le_bytes(old[..4].try_into().unwrap()) as usize;
    let said = checked(&old[..schema + 5], false).unwrap_err();
    assert!(said.contains("it ends within a message"), "{said}");
}

#[test]
fn lengths_that_lie_are_refused() {
    for codec in CODECS {
        for whole in [stream(codec), file(codec)] {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&whole, 0).unwrap();
            // Bodies, and the lengths of numbers and keys before compression.
            let bodies = places(&whole, |word| (200_000..900_000).contains(&word) && word % 8 == 0);
            let numbers = places(&whole, |word| word == 160_000 || word == 80_000);
            let mut found = 0;
            for at in bodies.into_iter().chain(numbers) {
                for length in [8_u64 << 30, 1 << 40, u64::MAX >> 1, u64::MAX - 1] {
                    file.write_all_at(&length.to_le_bytes(), at as u64).unwrap();
                    found += usize::from(check_file(&file, true, || MOST).is_err());
                }
                file.write_all_at(&whole[at..at + 8], at as u64).unwrap();
            }
            assert!(found >= 12, "{codec:?}: {found}");
        }
    }
}

#[test]
fn a_batch_takes_no_more_than_it_may() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&stream(Some(CompressionType::ZSTD))).unwrap();
    let said = check_file(&file, true, || 200_000).unwrap_err().to_string();
    let expected = "a batch takes 1 MiB, more than the 0 MiB that may be used for it: raise the \
                    memory limit, or write the file in smaller batches";
    assert_eq!(said, expected);
}

#[test]
fn a_frame_holds_what_it_says() {
    let whole = stream(Some(CompressionType::LZ4_FRAME));
    let mut lie = whole.clone();
    let at = places(&whole, |word| word == 160_000)[0];
    lie[at..at + 8].copy_from_slice(&(1_u64 << 25).to_le_bytes());
    let said = checked(&lie, true).unwrap_err();
    assert_eq!(said, "a buffer can't decompress to what it says");
}

/// A stream of a batch whose buffers all are one frame, or the same zeros.
fn named(times: usize, codec: Option<CompressionType>) -> Vec<u8> {
    let mut frame = 1_u64.to_le_bytes().to_vec();
    frame.extend([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0]);
    // A byte, as it is, and the end.
    frame.extend([1, 0, 0, 0x80, b'a', 0, 0, 0, 0]);
    let body = if codec.is_some() { frame } else { vec![0; 64] };
    let mut to = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
    to.reset();
    let buffers = to.create_vector(&vec![Buffer::new(0, body.len() as i64); times]);
    let compression = codec.map(|codec| {
        let mut compression = BodyCompressionBuilder::new(&mut to);
        compression.add_codec(codec);
        compression.finish()
    });
    let mut batch = RecordBatchBuilder::new(&mut to);
    batch.add_buffers(buffers);
    if let Some(compression) = compression {
        batch.add_compression(compression);
    }
    let batch = batch.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut to);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_header(batch);
    message.add_bodyLength(body.len() as i64);
    let message = message.finish();
    to.finish(message, None);
    let mut metadata = to.finished_data().to_vec();
    // So that buffers lie where a decoder doesn't copy them.
    metadata.resize(metadata.len().next_multiple_of(8), 0);
    let length = (metadata.len() as u32).to_le_bytes();
    let mut schema = Vec::new();
    drop(StreamWriter::try_new(&mut schema, &Schema::empty()).unwrap());
    schema.extend([&MARKER[..], &length, &metadata, &body].concat());
    schema
}

#[test]
fn one_place_is_not_many() {
    for codec in [Some(CompressionType::LZ4_FRAME), None] {
        checked(&named(10, codec), true).unwrap();
        let said = checked(&named(100, codec), true).unwrap_err();
        assert_eq!(said, "too many of its buffers lie in the same place");
    }
}

#[test]
fn others_are_passed_over_but_by_name() {
    let text = "ARROW1,b\n1,2\n".repeat(100);
    let cut = file(None);
    for other in [text.as_bytes(), b"a", b"a,b\n1,2\n", b"PAR1 of a kind PAR1", &cut[..2_000]] {
        checked(other, false).unwrap();
        let said = checked(other, true).unwrap_err();
        assert_eq!(said, "it is neither a file nor a stream of Arrow, or it is cut short");
    }
    checked(b"", true).unwrap();
}
