//! The queries that are run, and what their answers have to be.
//!
//! Those of TPC-H are held against each other: DataFusion's are right, which its test shows. Those
//! of TPC-DS are held against DuckDB's, since many of their limits cut rows that are equal.

use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use workahead_workloads::tpch::{self, Part, Table, Tpch, Watch, write_parquet};

use crate::answer::{Answer, Order};
use crate::arguments::SuiteName;
use crate::data::{self, Data, without_limit};
use crate::shapes::{self, Shape};
use crate::{order, orders, rewrites};

/// Tables in Parquet files, and queries over them.
pub(crate) enum Suite {
    Tpch(tempfile::TempDir),
    Tpcds(Data),
    /// Of our own, in memory only.
    Shapes(Vec<Shape>),
}

struct NoProgress;

impl Watch for NoProgress {
    fn rows_done(&self, _: u64) {}
    fn stop(&self) -> bool {
        false
    }
}

impl Suite {
    /// Makes the tables of a scale.
    pub(crate) fn generate(name: SuiteName, scale: f64) -> Self {
        match name {
            SuiteName::Tpch => {}
            SuiteName::Tpcds => return Self::Tpcds(Data::of(scale)),
            SuiteName::Shapes | SuiteName::Orders => return Self::Shapes(name.shapes()),
        }
        let tpch = Tpch::new(scale).expect("a scale that can be made");
        let home = tempfile::tempdir().expect("a temporary directory");
        let threads = std::thread::available_parallelism().expect("this machine has threads");
        for table in Table::ALL {
            let path = home.path().join(format!("{table}.parquet"));
            write_parquet(tpch, table, &path, threads, &NoProgress).expect("room on the disk");
        }
        Self::Tpch(home)
    }

    /// Names and files of the tables.
    pub(crate) fn tables(&self) -> Vec<(&'static str, PathBuf)> {
        match self {
            Self::Tpch(home) => {
                let file = |table: Table| home.path().join(format!("{table}.parquet"));
                Table::ALL.into_iter().map(|table| (table.name(), file(table))).collect()
            }
            Self::Tpcds(data) => {
                data::TABLES.into_iter().map(|name| (name, data.table(name))).collect()
            }
            Self::Shapes(_) => Vec::new(),
        }
    }

    /// The text of a query for DuckDB.
    pub(crate) fn text_for_duckdb(&self, number: usize) -> String {
        match self {
            Self::Tpcds(data) => data.query(number),
            _ => self.text(number),
        }
    }

    /// The text of a query.
    pub(crate) fn text(&self, number: usize) -> String {
        match self {
            Self::Tpch(_) => tpch::query(number).expect("a query").to_owned(),
            Self::Tpcds(data) => rewrites::for_datafusion(number, &data.query(number)),
            Self::Shapes(shapes) => shapes[number - 1].1.clone(),
        }
    }

    /// Compares the rows of an arm with what they have to be, by those of stock's where only they
    /// say.
    pub(crate) fn check(
        &self,
        number: usize,
        stock: &[RecordBatch],
        rows: &[RecordBatch],
    ) -> Result<(), String> {
        match self {
            Self::Tpch(_) | Self::Shapes(_) if lines(stock) == lines(rows) => Ok(()),
            Self::Tpch(_) | Self::Shapes(_) => Err("other rows than stock's".to_owned()),
            Self::Tpcds(data) => check_answer(&data.answer(number), &self.text(number), rows),
        }
    }
}

/// Compares rows of a query with DuckDB's answer in a file.
pub(crate) fn check_answer(path: &Path, text: &str, rows: &[RecordBatch]) -> Result<(), String> {
    let answer = Answer::read(path);
    let columns = order::columns(text, &answer.names());
    answer.check(rows, &Order { columns, limit: without_limit(text).1 })
}

/// All batches of the tables.
pub(crate) fn in_memory(suite: SuiteName, scale: f64) -> Vec<(&'static str, Vec<RecordBatch>)> {
    const BATCH_ROWS: usize = 8192;
    match suite {
        SuiteName::Shapes => return shapes::tables(scale),
        SuiteName::Orders => return orders::tables(scale),
        SuiteName::Tpch | SuiteName::Tpcds => {}
    }
    let tpch = Tpch::new(scale).expect("a scale that can be made");
    let batches = |table: Table| tpch.batches(table, Part::WHOLE, BATCH_ROWS).collect();
    Table::ALL.into_iter().map(|table| (table.name(), batches(table))).collect()
}

/// Rows in any order: several queries leave some of it open.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).expect("plain types").to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
