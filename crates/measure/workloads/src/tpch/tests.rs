//! The tables against what TPC-H says of them.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type};
use arrow_schema::DataType;

use super::parquet::{Source, write_parts};
use super::*;

const SMALL: f64 = 0.001;

/// Known counts: TPC-H 3.0.1 table 3 for the fixed ones; lineitem at 0.01 as every generator has
/// it.
#[test]
fn the_tables_have_their_known_rows() {
    let tpch = Tpch::new(0.01).unwrap();
    let known = [5, 25, 100, 1500, 2000, 8000, 15_000, 60_175];
    for (table, rows) in Table::ALL.into_iter().zip(known) {
        let made: usize =
            tpch.batches(table, Part::WHOLE, 8192).map(|batch| batch.num_rows()).sum();
        assert_eq!(made as u64, rows, "{table}");
        if table != Table::LineItem {
            assert_eq!(tpch.rows(table), rows, "{table}");
        }
    }
    assert!(tpch.rows(Table::LineItem).abs_diff(60_175) < 300);
}

#[test]
fn parts_are_the_whole() {
    let tpch = Tpch::new(SMALL).unwrap();
    for table in Table::ALL {
        let whole: Vec<RecordBatch> = tpch.batches(table, Part::WHOLE, usize::MAX).collect();
        let parts: Vec<RecordBatch> =
            (0..7).flat_map(|index| tpch.batches(table, Part { index, of: 7 }, 64)).collect();
        let rows = |batches: &[RecordBatch]| {
            let lines = batches.iter().flat_map(|batch| {
                (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns()))
            });
            lines.collect::<Vec<_>>()
        };
        assert_eq!(rows(&whole), rows(&parts), "{table}");
    }
}

#[test]
fn the_first_line_is_dbgens() {
    let tpch = Tpch::new(1.0).unwrap();
    let batch = tpch.batches(Table::LineItem, Part::WHOLE, 1).next().unwrap();
    let int = |at: usize| batch.column(at).as_primitive::<Int64Type>().value(0);
    let cents = |at: usize| batch.column(at).as_primitive::<Decimal128Type>().value(0);
    let text = |at: usize| batch.column(at).as_string_view().value(0).to_owned();
    let day = |at: usize| batch.column(at).as_primitive::<Date32Type>().value(0);
    // 1|155190|7706|1|17|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|…
    assert_eq!([int(0), int(1), int(2)], [1, 155_190, 7706]);
    assert_eq!([cents(4), cents(5), cents(6), cents(7)], [1700, 2_116_823, 4, 2]);
    assert_eq!([text(8), text(9)], ["N", "O"]);
    assert_eq!([day(10), day(11), day(12)], [9568, 9538, 9577]);
    assert_eq!([text(13), text(14)], ["DELIVER IN PERSON", "TRUCK"]);
    assert_eq!(text(15), "egular courts above the");
    assert_eq!(batch.schema().field(5).data_type(), &DataType::Decimal128(15, 2));
}

#[test]
fn every_line_has_its_order() {
    let tpch = Tpch::new(SMALL).unwrap();
    let keys = |table| {
        let batches = tpch.batches(table, Part::WHOLE, 1000);
        let keys =
            batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        keys.collect::<HashSet<i64>>()
    };
    let orders = keys(Table::Orders);
    assert_eq!(orders.len() as u64, tpch.rows(Table::Orders));
    assert_eq!(keys(Table::LineItem), orders);
}

struct Count {
    rows: AtomicU64,
    limit: u64,
}

impl Watch for Count {
    fn rows_done(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
    fn stop(&self) -> bool {
        self.rows.load(Ordering::Relaxed) >= self.limit
    }
}

#[test]
fn a_file_reads_back_whole_and_the_same_for_every_thread_count() {
    let tpch = Tpch::new(0.02).unwrap();
    let source = Source { tpch, table: Table::Customer, parts: 9 };
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for threads in [1, 3] {
        let path = directory.path().join(format!("customer-{threads}.parquet"));
        let watch = Count { rows: AtomicU64::new(0), limit: u64::MAX };
        let threads = NonZero::new(threads).unwrap();
        let written = write_parts(source, &path, threads, &watch).unwrap();
        assert_eq!(written.rows, 3000);
        assert_eq!(watch.rows.into_inner(), 3000);
        assert_eq!(written.bytes, path.metadata().unwrap().len());
        files.push(std::fs::read(&path).unwrap());
        let file = std::fs::File::open(&path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let whole = tpch.batches(Table::Customer, Part::WHOLE, 1024).collect::<Vec<_>>();
        assert_eq!(read, whole);
    }
    assert!(files[0] == files[1]);
}

#[test]
fn a_stopped_table_leaves_nothing() {
    let tpch = Tpch::new(1.0).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lineitem.parquet");
    let watch = Count { rows: AtomicU64::new(0), limit: 20_000 };
    let threads = NonZero::new(2).unwrap();
    let stopped = write_parquet(tpch, Table::LineItem, &path, threads, &watch);
    assert!(matches!(stopped, Err(WorkloadError::Stopped)));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn names_and_scales_are_checked() {
    for table in Table::ALL {
        assert_eq!(table.name().parse::<Table>().unwrap(), table);
    }
    let error = "order".parse::<Table>().unwrap_err().to_string();
    assert!(error.contains("orders") && error.contains("\"order\""), "{error}");
    for scale in [0.0, -1.0, 0.0009, 1001.0, f64::NAN, f64::INFINITY] {
        assert!(Tpch::new(scale).is_err(), "{scale}");
    }
}
