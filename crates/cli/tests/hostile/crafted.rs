//! Parquet files of pages that no writer makes, header by header.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

/// Kinds of the compact protocol.
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// A page: its type, the structs that describe it, and what is in it.
pub(crate) struct Page {
    page_type: u32,
    described: Vec<(u32, u32, Encoding)>,
    body: Vec<u8>,
}

impl Page {
    /// A page of data in version 1.
    pub(crate) fn data(values: u32, encoding: Encoding, body: Vec<u8>) -> Self {
        Self { page_type: 0, described: vec![(5, values, encoding)], body }
    }

    pub(crate) fn dictionary(values: u32, body: Vec<u8>) -> Self {
        Self { page_type: 2, described: vec![(7, values, Encoding::PLAIN)], body }
    }

    /// Describes it a second time, as a page of data.
    pub(crate) fn and_as_data(mut self, values: u32) -> Self {
        self.described.push((5, values, Encoding::PLAIN));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut header = Vec::new();
        field(&mut header, 1, self.page_type);
        field(&mut header, 2, self.body.len() as u32);
        field(&mut header, 3, self.body.len() as u32);
        for (number, values, encoding) in &self.described {
            header.extend([STRUCT, zigzag(*number)]);
            field(&mut header, 1, *values);
            field(&mut header, 2, *encoding as u32);
            if *number == 5 {
                // Definition and repetition levels.
                field(&mut header, 3, Encoding::RLE as u32);
                field(&mut header, 4, Encoding::RLE as u32);
            }
            header.push(0);
        }
        header.push(0);
        [header, self.body.clone()].concat()
    }
}

/// A field of 32 bits, with its number in full so that fields may come in any order.
fn field(to: &mut Vec<u8>, number: u32, value: u32) {
    to.extend([I32, zigzag(number)]);
    varint(to, u64::from(value) << 1);
}

fn zigzag(field: u32) -> u8 {
    (field << 1) as u8
}

pub(crate) fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        to.push(value as u8 | 128);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Runs of a number each, of at most eight bits.
pub(crate) fn runs(runs: &[(u32, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (times, value) in runs {
        varint(&mut bytes, u64::from(*times) << 1);
        bytes.push(*value);
    }
    bytes
}

/// Levels of version 1: runs behind their length.
pub(crate) fn levels(of: &[(u32, u8)]) -> Vec<u8> {
    let runs = runs(of);
    [&(runs.len() as u32).to_le_bytes()[..], &runs].concat()
}

/// Numbers of one bit in a dictionary, behind their width.
pub(crate) fn indices(of: &[(u32, u8)]) -> Vec<u8> {
    [vec![1], runs(of)].concat()
}

/// A text as it lies in a plain page.
pub(crate) fn plain(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A file of one row group with a column `id`, counted from 0, and one of these pages.
pub(crate) fn parquet(path: &Path, rows: u32, column: &str, values: u64, pages: &[Page]) {
    let message = format!("message file {{ required int64 id; {column} }}");
    let schema = parse_message_type(&message).unwrap();
    let schema: SchemaDescPtr = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    let ids = (0..u64::from(rows)).flat_map(u64::to_le_bytes).collect();
    let ids = Page::data(rows, Encoding::PLAIN, ids).bytes();
    let others: Vec<u8> = pages.iter().flat_map(Page::bytes).collect();
    let mut file = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for (leaf, (bytes, values)) in [(ids, u64::from(rows)), (others, values)].iter().enumerate() {
        let chunk = ColumnChunkMetaData::builder(schema.column(leaf))
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(*values as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(bytes.len() as i64)
            .set_data_page_offset(file.len() as i64);
        chunks.push(chunk.build().unwrap());
        file.extend(bytes);
    }
    let group = RowGroupMetaData::builder(schema.clone())
        .set_num_rows(i64::from(rows))
        .set_total_byte_size(file.len() as i64)
        .set_column_metadata(chunks);
    let about = FileMetaData::new(1, i64::from(rows), None, None, schema, None);
    let metadata = ParquetMetaData::new(about, vec![group.build().unwrap()]);
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().unwrap();
    fs::write(path, file).unwrap();
}
