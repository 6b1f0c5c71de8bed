//! Parquet files of pages that no writer makes, header by header.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData, RowGroupMetaDataBuilder,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

const MAGIC: &[u8] = b"PAR1";
/// Kinds of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const STRUCT: u8 = 12;

/// A page: its type, the structs that describe it, and what is in it.
pub(crate) struct Page {
    page_type: u32,
    described: Vec<(u32, u32, Encoding)>,
    body: Vec<u8>,
    /// With what is behind the values, if it is compressed.
    decompressed_bytes: Option<usize>,
    codec: Compression,
    /// The kind that its encoding is said to be.
    encoding_kind: u8,
    /// Fields that no version of the format has.
    unknown: Vec<u8>,
}

impl Page {
    fn new(page_type: u32, described: (u32, u32, Encoding), body: Vec<u8>) -> Self {
        Self {
            page_type,
            described: vec![described],
            body,
            decompressed_bytes: None,
            codec: Compression::UNCOMPRESSED,
            encoding_kind: I32,
            unknown: Vec::new(),
        }
    }

    /// A page of data in version 1.
    pub(crate) fn data(values: u32, encoding: Encoding, body: Vec<u8>) -> Self {
        Self::new(0, (5, values, encoding), body)
    }

    pub(crate) fn dictionary(values: u32, body: Vec<u8>) -> Self {
        Self::new(2, (7, values, Encoding::PLAIN), body)
    }

    /// Describes it a second time, as a page of data.
    pub(crate) fn and_as_data(mut self, values: u32) -> Self {
        self.described.push((5, values, Encoding::PLAIN));
        self
    }

    /// Says that its encoding is a number of 64 bits, which decoders don't look at.
    pub(crate) fn and_long_encoding(mut self) -> Self {
        self.encoding_kind = I64;
        self
    }

    /// Compresses it with zeros behind its values.
    pub(crate) fn and_zeros(mut self, bytes: usize) -> Self {
        self.body.resize(self.body.len() + bytes, 0);
        self.decompressed_bytes = Some(self.body.len());
        self.body = zstd::bulk::compress(&self.body, 1).unwrap();
        self.codec = Compression::ZSTD(Default::default());
        self
    }

    /// Says that its bytes are these ones compressed.
    pub(crate) fn and_compressed(mut self, codec: Compression, body: Vec<u8>) -> Self {
        self.decompressed_bytes = Some(self.body.len());
        (self.codec, self.body) = (codec, body);
        self
    }

    /// Adds a text, a list, a struct and a truth value, numbered from 20 on.
    pub(crate) fn and_unknown_fields(mut self) -> Self {
        let fields: [&[u8]; 4] =
            [&[8, 40, 2, b'a', b'b'], &[9, 42, 0x25, 2, 4], &[12, 44, 0x15, 2, 0], &[1, 46]];
        self.unknown = fields.concat();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = Vec::new();
        field(&mut header, 1, self.page_type);
        field(&mut header, 2, self.decompressed_bytes.unwrap_or(self.body.len()) as u32);
        field(&mut header, 3, self.body.len() as u32);
        for (number, values, encoding) in &self.described {
            header.extend([STRUCT, zigzag(*number)]);
            field(&mut header, 1, *values);
            let at = header.len();
            field(&mut header, 2, *encoding as u32);
            header[at] = self.encoding_kind;
            if *number == 5 {
                // Definition and repetition levels.
                field(&mut header, 3, Encoding::RLE as u32);
                field(&mut header, 4, Encoding::RLE as u32);
            }
            header.push(0);
        }
        header.extend(&self.unknown);
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

/// A file of one row group with a column `id`, counted from 0, and others that share these pages.
pub(crate) fn parquet(path: &Path, rows: u32, columns: &str, values: u64, pages: &[Page]) {
    let message = format!("message file {{ required int64 id; {columns} }}");
    let schema = parse_message_type(&message).unwrap();
    let schema: SchemaDescPtr = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
    let ids = (0..u64::from(rows)).flat_map(u64::to_le_bytes).collect();
    let ids = Page::data(rows, Encoding::PLAIN, ids).bytes();
    let others: Vec<u8> = pages.iter().flat_map(Page::bytes).collect();
    let mut codecs = pages.iter().map(|page| page.codec);
    let codec = codecs.find(|codec| *codec != Compression::UNCOMPRESSED);
    let codec = codec.unwrap_or(Compression::UNCOMPRESSED);
    let mut chunks = Vec::new();
    for (leaf, column) in schema.columns().iter().enumerate() {
        let (at, bytes, values, codec) = match leaf {
            0 => (MAGIC.len(), &ids, u64::from(rows), Compression::UNCOMPRESSED),
            _ => (MAGIC.len() + ids.len(), &others, values, codec),
        };
        let chunk = ColumnChunkMetaData::builder(column.clone())
            .set_compression(codec)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(values as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(bytes.len() as i64)
            .set_data_page_offset(at as i64);
        chunks.push(chunk.build().unwrap());
    }
    let group = RowGroupMetaData::builder(schema).set_num_rows(i64::from(rows));
    finish(path, [MAGIC, &ids, &others].concat(), group.set_column_metadata(chunks));
}

/// The only row group of a file, and what is in front of its footer.
fn without_footer(path: &Path) -> (Vec<u8>, RowGroupMetaData) {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap());
    let group = metadata.unwrap().row_group(0).clone();
    let mut file = fs::read(path).unwrap();
    let end = file.len() - 8;
    let footer = u32::from_le_bytes(file[end..end + 4].try_into().unwrap());
    file.truncate(end - footer as usize);
    (file, group)
}

/// Adds an index to each column of a file of one row group: where a page begins, its length, and
/// its first row.
pub(crate) fn add_places(path: &Path, columns: &[Vec<[usize; 3]>]) {
    let (mut file, group) = without_footer(path);
    let mut chunks = Vec::new();
    for (chunk, places) in group.columns().iter().zip(columns) {
        let at = file.len();
        file.extend([0x19, 0xfc]);
        varint(&mut file, places.len() as u64);
        for place in places {
            for (number, kind) in place.iter().zip([0x10 | I64, 0x10 | I32, 0x10 | I64]) {
                file.push(kind);
                varint(&mut file, 2 * *number as u64);
            }
            file.push(0);
        }
        file.push(0);
        let chunk = chunk.clone().into_builder().set_offset_index_offset(Some(at as i64));
        let chunk = chunk.set_offset_index_length(Some((file.len() - at) as i32));
        chunks.push(chunk.build().unwrap());
    }
    finish(path, file, group.into_builder().set_column_metadata(chunks));
}

/// Adds an index of that many pages to a file of one row group, and names it in all its columns.
pub(crate) fn add_page_index(path: &Path, pages: usize) {
    let (mut file, group) = without_footer(path);
    let at = file.len();
    // A place, a length and a row of each.
    file.extend([0x19, 0xfc]);
    varint(&mut file, pages as u64);
    file.extend([0x16, 8, 0x15, 0, 0x16, 0, 0].repeat(pages));
    file.push(0);
    let chunks = group.columns().iter().map(|chunk| {
        let chunk = chunk.clone().into_builder().set_offset_index_offset(Some(at as i64));
        chunk.set_offset_index_length(Some((file.len() - at) as i32)).build().unwrap()
    });
    let chunks = chunks.collect();
    finish(path, file, group.into_builder().set_column_metadata(chunks));
}

/// Writes a file of one row group, by its columns.
fn finish(path: &Path, mut file: Vec<u8>, group: RowGroupMetaDataBuilder) {
    let group = group.set_total_byte_size(file.len() as i64).build().unwrap();
    let (rows, schema) = (group.num_rows(), group.schema_descr_ptr());
    let metadata =
        ParquetMetaData::new(FileMetaData::new(1, rows, None, None, schema, None), vec![group]);
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().unwrap();
    fs::write(path, file).unwrap();
}
