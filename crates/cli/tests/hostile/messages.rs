//! Arrow messages that no writer makes, and batches with dictionaries.

use std::fs::{self, File};
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{
    CompressionType, FieldBuilder, IntBuilder, Message, MessageBuilder, MessageHeader,
    MetadataVersion, RecordBatch as BatchMessage, SchemaBuilder, Type, root_as_message,
};
use arrow_schema::Schema;

use super::hostile::arrow_stream;

/// Before each message: a marker and the length of its metadata.
const PREFIX_BYTES: usize = 8;
/// A megabyte of each column.
const ROWS: usize = 1 << 17;

/// A stream of one batch whose columns, all of them zeros, are one buffer: it begins at an odd
/// place, and a decoder copies it for each column.
pub(crate) fn sharing(path: &Path, columns: usize) {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let name = |at| if at == 0 { "id".to_owned() } else { format!("column {at}") };
    let batch = RecordBatch::try_from_iter((0..columns).map(|at| (name(at), one.clone())));
    arrow_stream(path, &batch.unwrap(), None);
    let mut stream = fs::read(path).unwrap();
    let batch = metadata_after(&stream, metadata_after(&stream, 0).end);
    let body = vec![0; 8 * ROWS + 8];
    stream.truncate(batch.end);
    for (at, number) in numbers(&stream[batch.clone()], body.len()) {
        set(&mut stream[batch.start + at..], number);
    }
    fs::write(path, [stream, body].concat()).unwrap();
}

/// A stream of batches of one row, behind each of which are 40 MB of zeros.
pub(crate) fn padded(path: &Path, batches: usize) {
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 5_000_000]));
    let batch = RecordBatch::try_from_iter([("id", zeros)]).unwrap();
    arrow_stream(path, &batch, Some(CompressionType::ZSTD));
    let mut stream = fs::read(path).unwrap();
    let schema = metadata_after(&stream, 0);
    let batch = metadata_after(&stream, schema.end);
    for (at, number) in numbers(&stream[batch.clone()], 0) {
        if number == ROWS {
            set(&mut stream[batch.start + at..], 1);
        }
    }
    // The end of a stream is a message without bytes.
    let message = &stream[schema.end..stream.len() - PREFIX_BYTES];
    fs::write(path, [&stream[..schema.end], &message.repeat(batches)].concat()).unwrap();
}

/// Where the metadata lie of the message at a place.
fn metadata_after(stream: &[u8], at: usize) -> Range<usize> {
    let begin = at + PREFIX_BYTES;
    let bytes = stream[begin - PREFIX_BYTES / 2..begin].try_into().unwrap();
    begin..begin + u32::from_le_bytes(bytes) as usize
}

fn set(at: &mut [u8], number: usize) {
    at[..8].copy_from_slice(&(number as u64).to_le_bytes());
}

/// Positions in a batch's metadata, and the number to write at each.
fn numbers(metadata: &[u8], body_bytes: usize) -> Vec<(usize, usize)> {
    let message = root_as_message(metadata).unwrap();
    let batch = message.header_as_record_batch().unwrap();
    let place = |bytes: &[u8]| bytes.as_ptr() as usize - metadata.as_ptr() as usize;
    let nodes = place(batch.nodes().unwrap().bytes());
    let buffers = place(batch.buffers().unwrap().bytes());
    let (of_message, of_batch) = (message._tab, batch._tab);
    let length = usize::from(of_batch.vtable().get(BatchMessage::VT_LENGTH));
    let body = usize::from(of_message.vtable().get(Message::VT_BODYLENGTH));
    let mut numbers = vec![(of_batch.loc() + length, ROWS), (of_message.loc() + body, body_bytes)];
    for column in 0..batch.nodes().unwrap().len() {
        // Rows and nulls; where the validity begins, and the values.
        numbers.extend(
            [ROWS, 0].into_iter().enumerate().map(|(at, n)| (nodes + 16 * column + 8 * at, n)),
        );
        let places = [0, 0, 1, 8 * ROWS].into_iter().enumerate();
        numbers.extend(places.map(|(at, number)| (buffers + 32 * column + 8 * at, number)));
    }
    numbers
}

/// Columns of one row, each with a dictionary of texts of 20 MB.
pub(crate) fn with_dictionaries(columns: usize, texts: &str) -> RecordBatch {
    let text = |letter: char| letter.to_string().repeat(20_000_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts.chars().map(text)));
    let column = DictionaryArray::<Int32Type>::try_new(Int32Array::from(vec![0]), texts).unwrap();
    let column: ArrayRef = Arc::new(column);
    let id: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let columns = (0..columns).map(|at| (format!("column {at}"), column.clone()));
    RecordBatch::try_from_iter([("id".to_owned(), id)].into_iter().chain(columns)).unwrap()
}

/// A stream of batches of one row, each with a dictionary of its own in the column `t`, of the
/// row's text and one of 20 MB; before it lies one in `z` whose buffers claim to be so long.
pub(crate) fn claiming(path: &Path, batches: i64, claimed_bytes: i64) {
    const TEXTS: usize = 1_000;
    let column = |texts: StringArray| -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0]), Arc::new(texts)))
    };
    let batch = |row: i64| {
        let id: ArrayRef = Arc::new(Int64Array::from(vec![row]));
        let z = column(StringArray::from(vec!["zzz"; TEXTS]));
        let t = column(StringArray::from(vec![row.to_string(), "t".repeat(20_000_000)]));
        RecordBatch::try_from_iter([("id", id), ("z", z), ("t", t)]).unwrap()
    };
    write(path, DictionaryHandling::Resend, &(0..batches).map(batch).collect::<Vec<_>>());
    let mut stream = fs::read(path).unwrap();
    // Compressed buffers begin with their length: offsets, then texts.
    for length in [4 * (TEXTS as i64 + 1), 3 * TEXTS as i64] {
        let length = length.to_le_bytes();
        let at = stream.windows(8).position(|bytes| bytes == length).unwrap();
        stream[at..at + 8].copy_from_slice(&claimed_bytes.to_le_bytes());
    }
    fs::write(path, stream).unwrap();
}

/// A file or a stream, compressed.
pub(crate) fn write(path: &Path, handling: DictionaryHandling, batches: &[RecordBatch]) {
    let options = IpcWriteOptions::default().with_dictionary_handling(handling);
    let options = options.try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let (to, schema) = (BufWriter::new(File::create(path).unwrap()), batches[0].schema());
    if path.extension().is_some_and(|extension| extension == "arrow") {
        let mut writer = FileWriter::try_new_with_options(to, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new_with_options(to, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

/// The message of a schema whose fields are one and the same there, with a name of `name_bytes`.
pub(crate) fn one_field(fields: usize, name_bytes: usize) -> Vec<u8> {
    let mut to = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
    to.reset();
    let name = to.create_string(&"n".repeat(name_bytes));
    let mut number = IntBuilder::new(&mut to);
    number.add_bitWidth(64);
    number.add_is_signed(true);
    let number = number.finish().as_union_value();
    let mut field = FieldBuilder::new(&mut to);
    field.add_name(name);
    field.add_type_type(Type::Int);
    field.add_type_(number);
    let field = field.finish();
    let fields = to.create_vector(&vec![field; fields]);
    let mut schema = SchemaBuilder::new(&mut to);
    schema.add_fields(fields);
    let schema = schema.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut to);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema);
    let message = message.finish();
    to.finish(message, None);
    let metadata = to.finished_data();
    let length = (metadata.len() as u32).to_le_bytes();
    [&[0xff; 4], &length, metadata].concat()
}
