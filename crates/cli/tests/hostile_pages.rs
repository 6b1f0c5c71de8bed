//! Files whose parts contradict each other: pages of Parquet, frames of LZ4, quotes of CSV.

#[path = "hostile/crafted.rs"]
mod crafted;
mod hostile;
mod process;

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use crafted::{Page, add_places, indices, levels, parquet, plain, varint};
use flate2::write::GzEncoder;
use hostile::{arrow_file, arrow_stream, ends_well, join, place};
use parquet::basic::{Compression, Encoding};
use process::{Place, Random, read, text};

const TEXT: &str = "required binary text (UTF8);";
const LIST: &str = "required group items (LIST) { repeated group list { required int64 item; } }";
const TEXTS: &str =
    "required group items (LIST) { repeated group list { required binary item (UTF8); } }";
/// All columns are read, and each row is written once.
const WRITTEN: [&str; 4] = ["--type", "left-semi", "--out", "out.parquet"];

/// Runs a join that has to be refused as damaged.
fn is_refused(place: &Place, name: &str, what: &str) {
    assert!(place.path(name).metadata().unwrap().len() < 5 << 20, "{what}");
    assert_eq!(ends_well(place, &join(name, &WRITTEN), what), Some(1), "{what}");
    let said = place.fails(&join(name, &WRITTEN), 1);
    assert!(said.contains(what), "{said}");
}

/// As many texts of a megabyte, all of them the first of the dictionary.
fn repeated(rows: u32) -> Page {
    Page::data(rows, Encoding::RLE_DICTIONARY, indices(&[(rows, 0)]))
}

fn megabyte() -> Vec<u8> {
    plain(&"x".repeat(1 << 20))
}

#[test]
fn crafted_pages_are_read() {
    let place = place();
    let lists = [list_page(&[(1, 0), (59, 1)]), list_page(&[(2, 0)])];
    let texts = [Page::dictionary(1, plain("text")), repeated(30)];
    for (rows, column, values, pages) in [(30, TEXT, 30, &texts), (3, LIST, 62, &lists)] {
        parquet(&place.path("sound.parquet"), rows, column, values, pages);
        let all = ["--type", "left", "--out", "out.parquet"];
        assert_eq!(ends_well(&place, &join("sound.parquet", &all), column), Some(0));
        let out = read(&place.path("out.parquet"));
        assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), rows as usize);
    }
}

#[test]
fn a_dictionary_after_a_page_of_data_is_refused() {
    let place = place();
    let first = Page::data(1, Encoding::PLAIN, plain("first"));
    // One text is wide, though all of them are not on average.
    let dictionary = [megabyte(), plain("").repeat(100_000)].concat();
    let pages = [first, Page::dictionary(100_001, dictionary), repeated(2_999)];
    parquet(&place.path("late.parquet"), 3_000, TEXT, 3_000, &pages);
    is_refused(&place, "late.parquet", "a dictionary is not the first page of its column");
}

#[test]
fn a_page_that_is_described_twice_is_refused() {
    let place = place();
    // A dictionary by its type; by what comes last, a page of many values.
    let pages = [Page::dictionary(1, megabyte()).and_as_data(1 << 20), repeated(3_000)];
    parquet(&place.path("twice.parquet"), 3_000, TEXT, 3_000, &pages);
    is_refused(&place, "twice.parquet", "a page has no header");
}

#[test]
fn a_field_of_another_kind_is_refused() {
    let place = place();
    // Differences, unless the encoding is passed over: each text would be a megabyte.
    let (wide, blocks) = ("x".repeat(1 << 20).into_bytes(), 24);
    let (rows, shared) = (1 + 128 * blocks as u32, differences(0, 1 << 20, blocks));
    let texts = [&shared[..], &differences(1 << 20, -1 << 20, blocks), &wide].concat();
    let page = Page::data(rows, Encoding::DELTA_BYTE_ARRAY, texts).and_long_encoding();
    parquet(&place.path("kind.parquet"), rows, TEXT, u64::from(rows), &[page]);
    is_refused(&place, "kind.parquet", "a page has no header");
}

#[test]
fn fields_that_nobody_knows_are_passed_over() {
    let place = place();
    let page = Page::data(1, Encoding::PLAIN, plain("text")).and_unknown_fields();
    parquet(&place.path("unknown.parquet"), 1, TEXT, 1, &[page]);
    assert_eq!(ends_well(&place, &join("unknown.parquet", &WRITTEN), "unknown"), Some(0));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_page_that_holds_more_than_it_says_is_refused() {
    let place = place();
    let path = place.path("more.parquet");
    let text = plain("text");
    let page = |codec, body| {
        let page = Page::data(1, Encoding::PLAIN, text.clone()).and_compressed(codec, body);
        parquet(&path, 1, TEXT, 1, &[page]);
    };
    let (members, lz4) = (Compression::GZIP(Default::default()), Compression::LZ4);
    let literal = (text.len() as u32 | 1 << 31).to_le_bytes();
    let whole = [&FRAME[..], &literal, &text, &[0; 4]].concat();
    for (codec, body) in [(members, gzip(&text)), (lz4, whole)] {
        page(codec, body);
        assert_eq!(ends_well(&place, &join("more.parquet", &WRITTEN), "whole"), Some(0));
    }
    // 64 MiB of zeros.
    let zeros = gzip(&vec![0; 1 << 20]).repeat(64);
    for (codec, body) in [(members, zeros), (lz4, frame(16, 1 << 20))] {
        page(codec, body);
        is_refused(&place, "more.parquet", "a page holds more than it says");
    }
}

#[test]
fn pages_that_only_an_index_names_are_looked_at() {
    let place = place();
    let path = place.path("named.parquet");
    // One after the other, pages of two short rows; in the second one, pages of a long row.
    let [dictionary, first] = [Page::dictionary(1, vec![0; 8]), list_page(&[(1, 0)])];
    let mut long = vec![short_list_page(&[(1, 0), (999_999, 1)])];
    long.extend((1..1_000).map(|_| short_list_page(&[(1_000_000, 1)])));
    let long: Vec<Vec<u8>> = long.iter().map(Page::bytes).collect();
    let short = [levels(&[(1, 0)]), levels(&[(1, 1)]), vec![0; 8]].concat();
    let second = Page::data(1, Encoding::PLAIN, [short, long.concat()].concat());
    let ids = Page::data(2, Encoding::PLAIN, vec![0; 16]).bytes().len();
    let [in_front, first_bytes, all] =
        [&dictionary, &first, &second].map(|page| page.bytes().len());
    parquet(&path, 2, LIST, 2, &[dictionary, first, second]);
    assert_eq!(ends_well(&place, &join("named.parquet", &WRITTEN), "without"), Some(0));
    let begin = 4 + ids + in_front;
    let mut at = begin + first_bytes + all - long.concat().len();
    let mut places = vec![[begin, first_bytes, 0]];
    for page in &long {
        places.push([at, page.len(), 1]);
        at += page.len();
    }
    add_places(&path, &[vec![[4, ids, 0]], places]);
    is_refused(&place, "named.parquet", "a row of \"items.list.item\" takes");
}

#[test]
fn a_place_that_is_longer_than_its_page_is_refused() {
    let place = place();
    let path = place.path("place.parquet");
    let pages = ["first", "second"].map(|text| Page::data(1, Encoding::PLAIN, plain(text)));
    let ids = Page::data(2, Encoding::PLAIN, vec![0; 16]).bytes().len();
    let [first, second] = [&pages[0], &pages[1]].map(|page| page.bytes().len());
    let write = |places: &[[usize; 3]]| {
        parquet(&path, 2, TEXT, 2, &pages);
        add_places(&path, &[vec![[4, ids, 0]], places.to_vec()]);
    };
    let (begin, end) = (4 + ids, 4 + ids + first + second);
    write(&[[begin, first, 0], [begin + first, second, 1]]);
    assert_eq!(ends_well(&place, &join("place.parquet", &WRITTEN), "both"), Some(0));
    // Both as one page, and as a dictionary in front of none.
    for place_of_both in [[begin, first + second, 0], [end, 0, 0]] {
        write(&[place_of_both]);
        is_refused(&place, "place.parquet", "a page is not as long as its page index says");
    }
}

/// A plain page of a list's items, all of them zero, by the runs of its repetition levels.
fn list_page(repeated: &[(u32, u8)]) -> Page {
    let values = repeated.iter().map(|run| run.0).sum();
    let body = [levels(repeated), levels(&[(values, 1)]), vec![0; 8 * values as usize]].concat();
    Page::data(values, Encoding::PLAIN, body)
}

/// The same by a dictionary: some dozens of bytes, however many items.
fn short_list_page(repeated: &[(u32, u8)]) -> Page {
    let values = repeated.iter().map(|run| run.0).sum();
    let body = [levels(repeated), levels(&[(values, 1)]), indices(&[(values, 0)])].concat();
    Page::data(values, Encoding::RLE_DICTIONARY, body)
}

#[test]
fn a_row_of_a_thousand_pages_is_refused() {
    let place = place();
    let mut pages = vec![Page::dictionary(1, vec![0; 8]), short_list_page(&[(1, 0), (999_999, 1)])];
    pages.extend((1..1_000).map(|_| short_list_page(&[(1_000_000, 1)])));
    parquet(&place.path("long.parquet"), 1, LIST, 1_000_000_000, &pages);
    is_refused(&place, "long.parquet", "raise --memory-limit");
}

#[test]
fn a_long_row_among_many_short_ones_is_refused() {
    let place = place();
    // A row of 999 pages, and a page of rows enough that the usual row is short.
    let mut pages = vec![Page::dictionary(1, vec![0; 8]), short_list_page(&[(1, 0), (999_999, 1)])];
    pages.extend((1..999).map(|_| short_list_page(&[(1_000_000, 1)])));
    pages.push(short_list_page(&[(10_000, 0)]));
    parquet(&place.path("among.parquet"), 10_001, LIST, 999_010_000, &pages);
    is_refused(&place, "among.parquet", "a row of \"items.list.item\" takes");
}

#[test]
fn wide_texts_of_one_row_are_counted() {
    let place = place();
    let page = |repeated: &[(u32, u8)], numbers: &[(u32, u8)]| {
        let values: u32 = repeated.iter().map(|run| run.0).sum();
        let body = [levels(repeated), levels(&[(values, 1)]), indices(numbers)].concat();
        Page::data(values, Encoding::RLE_DICTIONARY, body)
    };
    let dictionary = || Page::dictionary(2, [megabyte(), plain("short")].concat());
    // The wide text in each of 20,000 items of a row; and once in each of 300 rows, beside many
    // short ones, so that a batch of all of them would take 300 MB.
    let one = [dictionary(), page(&[(1, 0), (19_999, 1), (9, 0)], &[(20_000, 0), (9, 1)])];
    parquet(&place.path("one.parquet"), 10, TEXTS, 20_009, &one);
    is_refused(&place, "one.parquet", "a row of \"items.list.item\" takes");
    let rows: Vec<_> = (0..300).flat_map(|_| [(1, 0), (99, 1)]).collect();
    let numbers: Vec<_> = (0..300).flat_map(|_| [(99, 1), (1, 0)]).collect();
    parquet(
        &place.path("each.parquet"),
        300,
        TEXTS,
        30_000,
        &[dictionary(), page(&rows, &numbers)],
    );
    assert_eq!(ends_well(&place, &join("each.parquet", &WRITTEN), "each"), Some(0));
}

/// Whether a row has all items, or one.
enum Rows {
    One,
    Each,
}

#[test]
fn texts_that_share_their_beginning_are_counted() {
    let place = place();
    // A megabyte, and many times the same beginning with nothing of its own.
    let wide = "x".repeat(1 << 20).into_bytes();
    let page = |blocks: usize, rows: Rows| {
        let items = 1 + 128 * blocks as u32;
        let shared = differences(0, 1 << 20, blocks);
        let texts = [&shared[..], &differences(1 << 20, -1 << 20, blocks), &wide].concat();
        let rows = match rows {
            Rows::One => vec![(1, 0), (items - 1, 1)],
            Rows::Each => vec![(items, 0)],
        };
        let body = [levels(&rows), levels(&[(items, 1)]), texts].concat();
        (items, [Page::data(items, Encoding::DELTA_BYTE_ARRAY, body)])
    };
    let path = place.path("shared.parquet");
    let (items, pages) = page(156, Rows::One);
    parquet(&path, 1, TEXTS, u64::from(items), &pages);
    is_refused(&place, "shared.parquet", "a row of \"items.list.item\" takes");
    // In rows of their own they fit.
    let (items, pages) = page(4, Rows::Each);
    parquet(&path, items, TEXTS, u64::from(items), &pages);
    assert_eq!(ends_well(&place, &join("shared.parquet", &WRITTEN), "in rows"), Some(0));
}

/// A number, and 128 a block that are the sum of it and a difference: `DELTA_BINARY_PACKED`.
fn differences(first: i64, difference: i64, blocks: usize) -> Vec<u8> {
    const BITS: usize = 21;
    let least = difference.min(0);
    let mut run = Vec::new();
    for number in [128, 1, 1 + 128 * blocks as u64, zigzag(first), zigzag(least)] {
        varint(&mut run, number);
    }
    let mut packed = vec![0; 128 * BITS / 8];
    for (at, bit) in (0..128).flat_map(|at| (0..BITS).map(move |bit| (at, bit))) {
        let more = if at == 0 { difference - least } else { -least };
        let place = at * BITS + bit;
        packed[place / 8] |= ((more >> bit & 1) as u8) << (place % 8);
    }
    run.push(BITS as u8);
    run.extend(packed);
    // Blocks of no differences, in no bits.
    run.extend(vec![0; 2 * (blocks - 1)]);
    run
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// LZ4's frame of blocks of at most 4 MiB that stand alone, and the checksum of that.
const FRAME: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73];
const BLOCK_BYTES: usize = 4 << 20;

/// A frame of blocks of zeros, and one that fills it to `bytes`.
fn frame(blocks: usize, bytes: usize) -> Vec<u8> {
    // A literal, a match at offset 1 of all but the last five bytes, and these.
    let matched = BLOCK_BYTES - 1 - 5;
    let mut block = vec![0x1f, 0, 1, 0];
    block.extend(vec![255; (matched - 19) / 255]);
    block.push(((matched - 19) % 255) as u8);
    block.extend([0x50, 0, 0, 0, 0, 0]);
    let mut frame = FRAME.to_vec();
    for _ in 0..blocks {
        frame.extend((block.len() as u32).to_le_bytes());
        frame.extend(&block);
    }
    let rest = bytes - frame.len() - 8;
    assert!(rest <= BLOCK_BYTES);
    frame.extend((rest as u32 | 1 << 31).to_le_bytes());
    frame.extend(vec![0; rest]);
    frame.extend([0; 4]);
    frame
}

/// Numbers that can't be compressed, and where their buffer begins in a file of them.
fn incompressible() -> (RecordBatch, [u8; 16]) {
    let mut random = Random::new("frames");
    let ids = (0..200_000).map(|_| random.below(usize::MAX) as i64);
    let ids = Int64Array::from_iter_values(ids);
    let mut begin = [0xff; 16];
    begin[8..].copy_from_slice(&ids.value(0).to_le_bytes());
    let columns = [("id", Arc::new(ids) as ArrayRef)];
    (RecordBatch::try_from_iter(columns).unwrap(), begin)
}

#[test]
fn a_frame_that_holds_other_than_it_says_is_refused() {
    let place = place();
    let (batch, begin) = incompressible();
    let buffer_bytes = 8 * batch.num_rows();
    let codec = Some(CompressionType::LZ4_FRAME);
    arrow_file(&place.path("whole.arrow"), &batch, codec);
    arrow_stream(&place.path("whole.arrows"), &batch, codec);
    // 400 MB that are said to be those of the column, or a thousandth; and less than is said.
    let lies = [(95, buffer_bytes), (95, 8), (0, 20 << 20), (0, buffer_bytes)];
    for name in ["arrow", "arrows"] {
        let whole = fs::read(place.path(&format!("whole.{name}"))).unwrap();
        let at = whole.windows(16).position(|window| window == begin).unwrap();
        for (blocks, says) in lies {
            let mut lie = whole.clone();
            lie[at..at + 8].copy_from_slice(&(says as u64).to_le_bytes());
            lie[at + 8..at + 8 + buffer_bytes].copy_from_slice(&frame(blocks, buffer_bytes));
            let name = format!("lie.{name}");
            fs::write(place.path(&name), lie).unwrap();
            let what = format!("{name}: {blocks} blocks, {says} bytes said");
            assert_eq!(ends_well(&place, &join(&name, &[]), &what), Some(1), "{what}");
        }
    }
}

#[test]
fn a_length_that_is_a_little_wrong_is_refused() {
    let place = place();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9_000));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    arrow_file(&place.path("whole.arrow"), &batch, Some(CompressionType::LZ4_FRAME));
    assert_eq!(ends_well(&place, &join("whole.arrow", &[]), "whole"), Some(0));
    let whole = fs::read(place.path("whole.arrow")).unwrap();
    let at = whole.windows(8).position(|word| word == 72_000_u64.to_le_bytes()).unwrap();
    for says in [1, 8, 71_992, 71_999, 72_001, 72_008, 100_000] {
        let mut lie = whole.clone();
        lie[at..at + 8].copy_from_slice(&u64::to_le_bytes(says));
        fs::write(place.path("lie.arrow"), lie).unwrap();
        let code = ends_well(&place, &join("lie.arrow", &[]), &format!("{says} bytes said"));
        assert_eq!(code, Some(1), "{says}");
    }
}

/// The texts of a file of joined rows.
fn texts(place: &Place, name: &str, more: &[&str]) -> Vec<String> {
    let usual = ["join", "--left", name, "--right", "right.parquet", "--on", "id"];
    let output = ["--max-record", "64KiB", "--threads", "1", "--out", "out.csv"];
    let run = place.run(&[&usual[..], &output, more].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let out = fs::read_to_string(place.path("out.csv")).unwrap();
    let mut lines: Vec<_> = out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn inch_marks_are_part_of_their_fields() {
    let place = place();
    let marked = |row: i64| format!("3.5\" disk {row},{}\n", row % 400);
    let usual = |row: i64| format!("disk {row},{}\n", row % 400);
    // One mark, never followed by another, and a mark in every record: 400 KB of records, of which
    // none may be longer than 64 KiB.
    let once = (0..20_000).map(|row| if row == 0 { marked(row) } else { usual(row) });
    let always = (0..20_000).map(marked);
    for (what, lines) in [("once", once.collect::<String>()), ("always", always.collect())] {
        fs::write(place.path("left.csv"), format!("part,id\n{lines}")).unwrap();
        let wanted = texts(&place, "left.csv", &[]);
        let limited = texts(&place, "left.csv", &["--memory-limit", "30MB"]);
        // Each of the right side's 500 keys below 1,000 is there once.
        let keys: HashSet<i64> = (0..500).map(|row| row * 7 % 1_000).collect();
        let matches = (0..20_000).filter(|row| keys.contains(&(row % 400))).count();
        assert_eq!(wanted.len(), 1 + matches, "{what}");
        assert!(wanted == limited, "{what}");
        let first = wanted.iter().find(|line| line.contains("disk 0")).unwrap();
        assert!(first.contains("3.5\""), "{first}");
    }
}
