//! The fields of whole files, and the files.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::hostile::table;
use super::process;

/// How a field is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Seven bits a byte.
    Varint,
    /// Little endian.
    Fixed,
    /// Between delimiters.
    Text,
}

/// A part of a file that means something by itself.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) form: Form,
    pub(crate) bytes: Range<usize>,
}

pub(crate) fn write_parquet(path: &Path) {
    process::write(path, &table(300), 100);
}

/// Differences, lists, fixed widths, pages of the second version, compression, a page index.
pub(crate) fn write_other_parquet(path: &Path) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300));
    let texts: ArrayRef =
        Arc::new((0..300).map(|row| Some(format!("text {}", row / 3))).collect::<StringArray>());
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..300 {
        lists.append_value((0..row % 4).map(|item| (item > 0).then(|| format!("item {item}"))));
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let wide = (0..300).map(|row| (row % 5 > 0).then_some([row as u8; 5]));
    let wide: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(wide, 5).unwrap());
    let columns = [("id", ids), ("text", texts), ("list", lists), ("wide", wide)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::SNAPPY)
        .set_column_dictionary_enabled("text".into(), false)
        .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_dictionary_enabled("id".into(), false)
        .set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED)
        .set_data_page_row_count_limit(64)
        .set_write_batch_size(32)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Numbers of the messages' metadata, and of the footer: each is at a place that its width divides.
pub(crate) fn of_arrow(whole: &[u8]) -> Vec<Field> {
    const MARKER: [u8; 4] = [0xff; 4];
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
    let mut regions: Vec<Range<usize>> = Vec::new();
    for at in (0..whole.len().saturating_sub(8)).step_by(4) {
        let length = number(at + 4);
        if whole[at..at + 4] == MARKER && length > 0 && at + 8 + length <= whole.len() {
            regions.push(at + 8..at + 8 + length);
        }
    }
    if whole.ends_with(b"ARROW1") {
        let end = whole.len() - 10;
        regions.push(end - number(end)..end);
    }
    let mut fields = Vec::new();
    for region in regions {
        for width in [2, 4, 8] {
            let places = region.clone().filter(|at| at % width == 0 && at + width <= region.end);
            fields.extend(places.map(|at| Field { form: Form::Fixed, bytes: at..at + width }));
        }
    }
    fields
}

/// Values between delimiters, and names before `=`.
pub(crate) fn of_text(whole: &[u8]) -> Vec<Field> {
    let ends = |byte: &u8| b",=:[]{}\n".contains(byte);
    let mut fields = Vec::new();
    let mut start = 0;
    for (at, _) in whole.iter().enumerate().filter(|(_, byte)| ends(byte)) {
        if whole[start..at].iter().any(|byte| !byte.is_ascii_whitespace()) {
            fields.push(Field { form: Form::Text, bytes: start..at });
        }
        start = at + 1;
    }
    fields
}
