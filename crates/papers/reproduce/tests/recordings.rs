//! Recordings of machines that nobody here has, damaged: the paper's tables are finite figures.

use proptest::prelude::*;
use workahead_counters::metrics::Metrics;
use workahead_counters::stream::Stream;
use workahead_reproduce::published;
use workahead_reproduce::tables::{StreamFigures, fill};

const RECORDINGS: [&str; 3] = ["amd-zen4", "intel-sapphire-rapids", "intel-skylake-sp"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tables_of_damaged_recordings_are_finite(
        recording in 0..RECORDINGS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let path = manifest_folder().join(format!("recordings/{}.jsonl", RECORDINGS[recording]));
        let whole = std::fs::read(path).expect("it is kept");
        let lines = whole.split_inclusive(|byte| *byte == b'\n').take(40);
        let mut text: Vec<u8> = lines.flatten().copied().collect();
        // Digits for digits keep it a recording, of other counts.
        let places: Vec<usize> =
            (0..text.len()).filter(|place| text[*place].is_ascii_digit()).collect();
        for (index, byte) in damage {
            text[places[index.index(places.len())]] = b'0' + byte % 10;
        }
        let Ok(stream) = Stream::read(&mut text.as_slice()) else { return Ok(()) };
        let metrics = Metrics::of(&stream);
        for table in fill(published::keeton(), &StreamFigures::of(&stream, &metrics)) {
            for cell in table.rows.iter().flat_map(|row| &row.cells) {
                prop_assert!(cell.ours.is_none_or(f64::is_finite), "{}: {cell:?}", table.id);
            }
        }
    }
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
