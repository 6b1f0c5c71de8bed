//! The widest row of a column of lists, by its levels and the numbers of its dictionary's values.
//!
//! A row may be spread over many pages, and a run of a few bytes says a million times the same: the
//! headers don't tell how wide a row is. Its pages are decompressed for this, but their values are
//! not made.

use std::iter;
use std::sync::Arc;

use anyhow::{Context, ensure};
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::delta::{self, Lengths};
use super::row_group::{Pages, levels, parts};
use super::runs::Runs;
use super::source::Source;

/// Bytes of the widest row: `value_bytes` of each value, and of texts their lengths too. More rows
/// than those of the row group are refused. Pages are read at their places, where an index has
/// them, as they are later.
pub(super) fn widest(
    file: &Arc<Source>,
    chunk: &ColumnChunkMetaData,
    (group_rows, places): (i64, Option<&[PageLocation]>),
    value_bytes: usize,
) -> anyhow::Result<usize> {
    let description = chunk.column_descr();
    let levels = levels(description);
    let has_texts = description.physical_type() == Type::BYTE_ARRAY;
    let mut rows = Rows { levels, value_bytes, row: 0, widest: 0, begun: 0 };
    let mut dictionary: Vec<u32> = Vec::new();
    let mut pages = Pages::of(file, chunk, group_rows as usize, places.map(<[_]>::to_vec))?;
    while let Some(page) = pages.get_next_page()? {
        if let Page::DictionaryPage { buf, .. } = &page {
            dictionary = if has_texts { lengths(buf).collect() } else { Vec::new() };
        } else {
            let texts = has_texts.then_some(&dictionary[..]);
            rows.page(&page, texts).context("a page's levels or texts end early")?;
            ensure!(rows.begun <= group_rows as u64, "a column has more rows than its row group");
        }
    }
    Ok(rows.widest)
}

/// Lengths of texts that follow each other.
pub(super) fn lengths(mut texts: &[u8]) -> impl Iterator<Item = u32> + '_ {
    iter::from_fn(move || {
        let (length, rest) = texts.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        texts = rest.get(length as usize..).unwrap_or_default();
        Some(length)
    })
}

struct Rows {
    /// The highest repetition and definition levels.
    levels: [i16; 2],
    value_bytes: usize,
    /// The row so far.
    row: usize,
    widest: usize,
    /// Rows so far.
    begun: u64,
}

/// The lengths of a page's texts.
enum Texts<'a> {
    /// The values are none.
    Nowhere,
    Dictionary(Runs<'a>, &'a [u32]),
    Each(Box<dyn Iterator<Item = u32> + 'a>),
}

impl<'a> Texts<'a> {
    fn new(page: &'a Page, values: &'a [u8], dictionary: &'a [u32]) -> Option<Self> {
        let Some((width, numbers)) = values.split_first() else { return Some(Self::Nowhere) };
        Some(match page.encoding() {
            Encoding::PLAIN => Self::Each(Box::new(lengths(values))),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => Self::Each(Box::new(Lengths::new(values)?)),
            // The prefix that a text shares with the one before, and its own suffix.
            Encoding::DELTA_BYTE_ARRAY => {
                let run = delta::run_bytes(values, page.num_values() as usize)?;
                let (shared, own) = (Lengths::new(values)?, Lengths::new(values.get(run..)?)?);
                Self::Each(Box::new(
                    shared.zip(own).map(|(shared, own)| shared.saturating_add(own)),
                ))
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                Self::Dictionary(Runs::new(numbers, u32::from(*width)), dictionary)
            }
            _ => return None,
        })
    }
}

impl Rows {
    fn page(&mut self, page: &Page, dictionary: Option<&[u32]>) -> Option<()> {
        let ([repetition, definition], values) = parts(page, self.levels)?;
        let packed = match page {
            Page::DataPage { rep_level_encoding, def_level_encoding, .. } => {
                [rep_level_encoding, def_level_encoding].map(|of| *of != Encoding::RLE)
            }
            _ => [false; 2],
        };
        let runs = |at: usize, bytes| {
            let width = i16::BITS - self.levels[at].leading_zeros();
            if packed[at] { Runs::packed(bytes, width) } else { Runs::new(bytes, width) }
        };
        let (mut repetition, mut definition) = (runs(0, repetition), runs(1, definition));
        let mut texts = match dictionary {
            None => Texts::Nowhere,
            Some(dictionary) => Texts::new(page, values, dictionary)?,
        };
        let mut left = page.num_values() as usize;
        while left > 0 {
            let (level, count) = repetition.take(left)?;
            left -= count;
            // At the lowest level, each value begins a row.
            let begins = level == 0;
            self.begun += if begins { count as u64 } else { 0 };
            self.add(count, begins, &mut definition, &mut texts)?;
        }
        self.widest = self.row.max(self.widest);
        Some(())
    }

    /// Values that are all in the row so far, or each in a row of its own.
    fn add(
        &mut self,
        mut count: usize,
        begins: bool,
        definition: &mut Runs<'_>,
        texts: &mut Texts<'_>,
    ) -> Option<()> {
        if matches!(texts, Texts::Nowhere) {
            self.add_equal(count, begins, 0);
            return Some(());
        }
        while count > 0 {
            let (level, run) = definition.take(count)?;
            count -= run;
            if level != self.levels[1] as u32 {
                self.add_equal(run, begins, 0);
                continue;
            }
            let mut values = run;
            while values > 0 {
                let (length, times) = match texts {
                    Texts::Dictionary(numbers, lengths) => {
                        let (number, times) = numbers.take(values)?;
                        (*lengths.get(number as usize)?, times)
                    }
                    Texts::Each(lengths) => (lengths.next()?, 1),
                    Texts::Nowhere => return Some(()),
                };
                values -= times;
                self.add_equal(times, begins, length as usize);
            }
        }
        Some(())
    }

    /// Values with texts of the same length.
    fn add_equal(&mut self, count: usize, begins: bool, text_bytes: usize) {
        let value = self.value_bytes.saturating_add(text_bytes);
        if begins {
            self.widest = self.row.max(self.widest);
            self.row = value;
        } else {
            self.row = self.row.saturating_add(value.saturating_mul(count));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    static INTERRUPTED: AtomicBool = AtomicBool::new(false);

    /// Items of a row, a missing one among them or a missing list; most are short, some are not.
    fn row(number: usize) -> Option<Vec<Option<String>>> {
        let item = |at| {
            (!usize::is_multiple_of(at, 3)).then(|| "t".repeat(number * at % 11 * (number / 50)))
        };
        (!number.is_multiple_of(7)).then(|| (0..number % 19).map(item).collect())
    }

    #[test]
    fn the_widest_row_is_found() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        (0..400).for_each(|number| match row(number) {
            Some(items) => lists.append_value(items),
            None => lists.append_null(),
        });
        let batch = RecordBatch::try_from_iter([("a", Arc::new(lists.finish()) as ArrayRef)]);
        let batch = batch.unwrap();
        let bytes = |items: Vec<Option<String>>| {
            let texts = items.iter().flatten().map(String::len).sum::<usize>();
            texts + 8 * items.len().max(1)
        };
        let expected = (0..400).map(|number| row(number).map_or(8, bytes)).max().unwrap();
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for encoding in [
                None,
                Some(Encoding::PLAIN),
                Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
                Some(Encoding::DELTA_BYTE_ARRAY),
            ] {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_dictionary_enabled(encoding.is_none())
                    .set_data_page_size_limit(2_000)
                    .set_write_batch_size(5);
                let properties = match encoding {
                    Some(encoding) => properties.set_encoding(encoding),
                    None => properties,
                };
                let file = tempfile::tempfile().unwrap();
                let writer = file.try_clone().unwrap();
                let properties = Some(properties.build());
                let mut writer = ArrowWriter::try_new(writer, batch.schema(), properties).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
                let reader = SerializedFileReader::new(file.try_clone().unwrap()).unwrap();
                let chunk = reader.metadata().row_group(0).column(0);
                let source = Arc::new(Source::new(file, &INTERRUPTED).unwrap());
                let found = widest(&source, chunk, (400, None), 8).unwrap();
                assert_eq!(found, expected, "{encoding:?}");
            }
        }
    }
}
