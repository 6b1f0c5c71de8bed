//! DuckDB beside the sessions: the same files, or its own tables of the same rows.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use serde_json::Value;
use workahead_duckdb::{Cell, Connection, Database, Error, Library};
use workahead_machine::clock::process_cpu_s;

use crate::data::{self, without_limit};
use crate::operator_time::Kind;
use crate::pairs::{Run, Times};
use crate::sessions::{Storage, Tables};
use crate::suite::check_answer;

pub(crate) struct Duckdb {
    connection: RefCell<Connection>,
    home: tempfile::TempDir,
}

impl Duckdb {
    /// One with views over the Parquet files, or with tables that it read from them.
    pub(crate) fn open(tables: &Tables, storage: Storage, threads: usize) -> Result<Self, Error> {
        let threads = threads.to_string();
        let settings = [("threads", threads.as_str())];
        let database = Database::open(Library::find(None)?, ":memory:".as_ref(), &settings)?;
        let mut connection = database.connect()?;
        connection.run("set parquet_metadata_cache = true")?;
        let kind = match storage {
            Storage::Memory => "table",
            Storage::Parquet => "view",
        };
        for (name, path) in tables.suite.tables() {
            let path = path.display();
            connection.run(&format!("create {kind} {name} as from read_parquet('{path}')"))?;
        }
        let home = tempfile::tempdir().expect("a temporary directory");
        Ok(Self { connection: RefCell::new(connection), home })
    }

    /// Runs a query from its text to its last row: DuckDB's plan is part of it.
    pub(crate) fn run(&self, text: &str) -> Result<Run, String> {
        let (wall, cpu_s) = (Instant::now(), process_cpu_s());
        let mut connection = self.connection.borrow_mut();
        let mut answer = connection.ask(text).map_err(|error| error.to_string())?;
        while answer.next_chunk().is_some() {}
        drop(answer);
        let (cpu_s, wall_s) = (process_cpu_s() - cpu_s, wall.elapsed().as_secs_f64());
        Ok(Run { plan_s: 0.0, cpu_s, wall_s })
    }

    /// Seconds of each kind of operator, by its own profiler.
    pub(crate) fn times(&self, text: &str) -> Result<Times, String> {
        let mut connection = self.connection.borrow_mut();
        let text = format!("explain (analyze, format json) {text}");
        let mut answer = connection.ask(&text).map_err(|error| error.to_string())?;
        let chunk = answer.next_chunk().ok_or("DuckDB explains nothing")?;
        let Ok(Cell::Text(profile)) = chunk.cell(chunk.columns() - 1, 0) else {
            return Err("DuckDB's profile is not a text".to_owned());
        };
        let profile: Value = serde_json::from_str(profile).map_err(|error| error.to_string())?;
        let mut times = Times::default();
        add_times(&profile, &mut times);
        Ok(times)
    }

    /// Compares rows of DataFusion's with DuckDB's answer.
    pub(crate) fn check(&self, text: &str, rows: &[RecordBatch]) -> Result<(), String> {
        let path: PathBuf = self.home.path().join("answer");
        data::answer(&mut self.connection.borrow_mut(), without_limit(text).0, &path)
            .map_err(|error| error.to_string())?;
        check_answer(&path, text, rows)
    }
}

fn add_times(node: &Value, times: &mut Times) {
    if let (Some(name), Some(seconds)) =
        (node["operator_type"].as_str(), node["operator_timing"].as_f64())
    {
        times[Kind::of(name) as usize] += seconds;
    }
    node["children"].as_array().into_iter().flatten().for_each(|child| add_times(child, times));
}
