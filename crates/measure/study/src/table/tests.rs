//! Observations read back from Parquet.

use std::fs::File;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::testing::{self, Mock, Trouble};

const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
    [[cases]]\nname = 'a'\n[[cases]]\nname = 'b'\nspeed = 2.5\n[[cases]]\nname = 'c'\nspeed = 'x'\n\
    [method]\nrepetitions = 2\nwarmup = 0\n";

#[test]
fn every_observation_becomes_a_row() {
    let dir = tempfile::tempdir().unwrap();
    // The second run, of cell b, fails; b has no sample at all.
    let results = testing::results(dir.path(), STUDY, &mut Mock::with(Trouble::Fail(1)));
    let path = write(dir.path(), &results).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let batch = &batches[0];
    assert_eq!((batches.len(), batch.num_rows()), (1, 5));
    let column = |name: &str| batch.column_by_name(name).unwrap_or_else(|| panic!("{name}"));
    let walls = column("wall_s").as_primitive::<Float64Type>();
    let failures = column("failure").as_string::<i32>();
    let speeds = column("setting.speed").as_string::<i32>();
    let checksums = column("answer_checksum").as_primitive::<UInt64Type>();
    for (row, seen) in results.observations.iter().enumerate() {
        match &seen.outcome {
            Outcome::Sample(sample) => {
                assert_eq!(walls.value(row).to_bits(), sample.wall_s.to_bits());
                assert_eq!(checksums.value(row), sample.answer.checksum);
                assert!(failures.is_null(row));
            }
            Outcome::Failed { failure } => {
                assert!(walls.is_null(row) && checksums.is_null(row));
                assert_eq!(failures.value(row), failure);
            }
        }
        let speed = seen.settings.get("speed").map(ToString::to_string);
        assert_eq!(speeds.is_valid(row).then(|| speeds.value(row).to_owned()), speed);
    }
    assert!(batch.column_by_name("measure.table_bytes").is_some());
}

#[test]
fn rows_of_several_batches_are_written_and_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = testing::results(dir.path(), STUDY, &mut Mock::new());
    let one = results.observations[0].clone();
    let moments = 0..2 * BATCH_ROWS as u64 + 3;
    let row = |unix_ms| Observation { unix_ms, ..one.clone() };
    results.observations = moments.clone().map(row).collect();
    let written = |results: &Results| -> Vec<u64> {
        let path = write(dir.path(), results).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let batches = builder.build().unwrap().map(Result::unwrap);
        let column = |batch: RecordBatch| {
            let column = batch.column_by_name("unix_ms").unwrap();
            column.as_primitive::<UInt64Type>().values().to_vec()
        };
        batches.flat_map(column).collect()
    };
    assert_eq!(written(&results), moments.collect::<Vec<_>>());
    results.observations = Vec::new().into();
    assert!(written(&results).is_empty());
}
