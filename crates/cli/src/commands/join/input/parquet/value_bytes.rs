//! Bytes of a page that its values have. Nobody reads what is behind them, but it is decompressed:
//! a kilobyte may stand for megabytes of zeros.

use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::delta::{self, Lengths};
use super::row_group::{levels, parts};
use super::rows::lengths;

/// A value without its text, or a level, in any encoding: at most.
const VALUE_BYTES_MAX: usize = 16;
/// Before a text, and before levels of version 1.
const LENGTH_BYTES: usize = 4;

/// Bytes that are used of a page, or a few more.
pub(super) fn bytes(page: &Page, column: &ColumnDescriptor) -> usize {
    let values = page.num_values() as usize;
    let Some((of_levels, rest)) = parts(page, levels(column)) else { return 0 };
    let most = |bytes: usize| values.saturating_add(1).saturating_mul(bytes);
    let level_bytes: usize =
        of_levels.map(|of| of.len().min(most(VALUE_BYTES_MAX)) + LENGTH_BYTES).iter().sum();
    let used = match column.physical_type() {
        Type::BYTE_ARRAY => most(VALUE_BYTES_MAX).saturating_add(texts(page, rest)),
        Type::FIXED_LEN_BYTE_ARRAY => {
            most(VALUE_BYTES_MAX.saturating_add(column.type_length().max(0) as usize))
        }
        _ => most(VALUE_BYTES_MAX),
    };
    (level_bytes + used.min(rest.len())).min(page.buffer().len())
}

/// Bytes of a page's texts.
fn texts(page: &Page, encoded: &[u8]) -> usize {
    let values = page.num_values() as usize;
    let sum = |lengths: &mut dyn Iterator<Item = u32>| {
        let bytes = lengths.take(values).map(|length| length as usize + LENGTH_BYTES);
        bytes.fold(0, usize::saturating_add)
    };
    let of_run = |run: Option<Lengths<'_>>| run.map_or(0, |mut lengths| sum(&mut lengths));
    match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => of_run(Lengths::new(encoded)),
        Encoding::DELTA_BYTE_ARRAY => {
            let own = delta::run_bytes(encoded, values).and_then(|run| encoded.get(run..));
            of_run(own.and_then(Lengths::new))
        }
        Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if !page.is_dictionary_page() => 0,
        _ => sum(&mut lengths(encoded)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::column::page::PageReader;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::super::row_group::Pages;
    use super::super::source::Source;
    use super::*;

    static INTERRUPTED: AtomicBool = AtomicBool::new(false);

    fn columns() -> [ArrayRef; 3] {
        let rows = || 0..5_000_i64;
        let text = |row: i64| (row % 3 > 0).then(|| "t".repeat(row as usize % 40));
        [
            Arc::new(
                rows().map(|row| (row % 7 > 0).then_some(row * 1_000)).collect::<Int64Array>(),
            ),
            Arc::new(rows().map(text).collect::<StringArray>()),
            Arc::new(rows().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>()),
        ]
    }

    #[test]
    fn padding_is_not_used() {
        let names = ["numbers", "texts", "bits"];
        let batch = RecordBatch::try_from_iter(names.into_iter().zip(columns())).unwrap();
        for encoding in [
            None,
            Some(Encoding::PLAIN),
            Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
            Some(Encoding::DELTA_BYTE_ARRAY),
        ] {
            let properties = WriterProperties::builder().set_dictionary_enabled(encoding.is_none());
            let properties = match encoding {
                Some(encoding) => properties.set_column_encoding("texts".into(), encoding),
                None => properties,
            };
            let file = tempfile::tempfile().unwrap();
            let to = file.try_clone().unwrap();
            let mut writer =
                ArrowWriter::try_new(to, batch.schema(), Some(properties.build())).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let reader = SerializedFileReader::new(file.try_clone().unwrap()).unwrap();
            let source = Arc::new(Source::new(file, &INTERRUPTED).unwrap());
            for chunk in reader.metadata().row_group(0).columns() {
                let column = chunk.column_descr();
                let mut pages = Pages::of(&source, chunk, 0, None).unwrap();
                while let Some(page) = pages.get_next_page().unwrap() {
                    let all = page.buffer().len();
                    assert_eq!(bytes(&page, column), all, "{encoding:?} {column:?}");
                    let most = all + 2 * (page.num_values() as usize + 1) * VALUE_BYTES_MAX;
                    let used = bytes(&padded(page, 2 * most), column);
                    assert!(used <= most, "{encoding:?} {column:?}: {used} of {most}");
                }
            }
        }
    }

    fn padded(page: Page, bytes: usize) -> Page {
        let pad = |buf: &Bytes| Bytes::from([&buf[..], &vec![0; bytes]].concat());
        let mut page = page;
        match &mut page {
            Page::DataPage { buf, .. }
            | Page::DataPageV2 { buf, .. }
            | Page::DictionaryPage { buf, .. } => *buf = pad(buf),
        }
        page
    }
}
