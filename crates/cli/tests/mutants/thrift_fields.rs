//! The numbers of a Parquet file's footer, page indexes and page headers.

use std::fs::File;
use std::io::Write;

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::fields::{Field, Form};

pub(crate) fn of_parquet(whole: &[u8]) -> Vec<Field> {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(whole).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut fields = Walk { whole, at: 0, fields: Vec::new() };
    let end = whole.len() - 8;
    let length = u32::from_le_bytes(whole[end..end + 4].try_into().unwrap()) as usize;
    fields.structure_at(end - length);
    for chunk in reader.metadata().row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = chunk.byte_range();
        fields.at = start as usize;
        while fields.at < (start + length) as usize {
            // `compressed_page_size` is the third number.
            let first = fields.fields.len();
            fields.structure_at(fields.at);
            let size = fields.fields[first + 2].bytes.clone();
            fields.at += (fields.number(size) >> 1) as usize;
        }
        if let Some(offset) = chunk.offset_index_offset() {
            fields.structure_at(offset as usize);
        }
    }
    fields.fields
}

/// Thrift's compact protocol, of a file that is whole.
struct Walk<'a> {
    whole: &'a [u8],
    at: usize,
    fields: Vec<Field>,
}

impl Walk<'_> {
    fn structure_at(&mut self, at: usize) {
        self.at = at;
        self.value(12);
    }

    fn value(&mut self, kind: u8) {
        match kind {
            1 | 2 => {}
            3 => self.at += 1,
            7 => self.at += 8,
            4..=6 => drop(self.varint()),
            8 => self.at += self.varint() as usize,
            9 | 10 => {
                let byte = self.byte();
                let elements = if byte >> 4 == 15 { self.varint() } else { u64::from(byte >> 4) };
                for _ in 0..elements {
                    match byte & 15 {
                        1 | 2 => self.at += 1,
                        kind => self.value(kind),
                    }
                }
            }
            12 => loop {
                let byte = self.byte();
                if byte == 0 {
                    return;
                }
                assert!(byte >> 4 > 0, "fields are near each other");
                self.value(byte & 15);
            },
            other => panic!("Parquet has no kind {other}"),
        }
    }

    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.whole[self.at - 1]
    }

    fn varint(&mut self) -> u64 {
        let start = self.at;
        while self.byte() > 127 {}
        let bytes = start..self.at;
        self.fields.push(Field { form: Form::Varint, bytes: bytes.clone() });
        self.number(bytes)
    }

    fn number(&self, bytes: std::ops::Range<usize>) -> u64 {
        self.whole[bytes].iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 127))
    }
}
