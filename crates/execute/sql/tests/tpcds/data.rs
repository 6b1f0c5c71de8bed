//! TPC-DS's tables, queries and answers, all made by DuckDB and its extension `tpcds`.
//!
//! ```text
//! call dsdgen(sf = SCALE) ─► TABLE.parquet                24 of them
//! from tpcds_queries()    ─► qNN.sql, qNN.txt             the text, and its answer without LIMIT
//! ```
//!
//! They are made once for a scale, in a folder below Cargo's own for tests; a run that is broken
//! off leaves nothing that looks complete.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use workahead_duckdb::{Cell, Connection, Database, Error, Library, VERSION, extension};

/// How many queries there are.
pub(crate) const QUERIES: usize = 99;

/// TPC-DS (version 3) has them all.
pub(crate) const TABLES: [&str; 24] = [
    "call_center",
    "catalog_page",
    "catalog_returns",
    "catalog_sales",
    "customer",
    "customer_address",
    "customer_demographics",
    "date_dim",
    "household_demographics",
    "income_band",
    "inventory",
    "item",
    "promotion",
    "reason",
    "ship_mode",
    "store",
    "store_returns",
    "store_sales",
    "time_dim",
    "warehouse",
    "web_page",
    "web_returns",
    "web_sales",
    "web_site",
];

/// The folder of one scale.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    folder: PathBuf,
}

impl Data {
    /// Those of a scale, made unless they are there.
    pub(crate) fn of(scale: f64) -> Self {
        // Once for all tests: the generator has global variables, in each database the same.
        static MAKING: Mutex<()> = Mutex::new(());
        let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = kept.join(format!("tpcds-{VERSION}-{scale}"));
        if !folder.is_dir() {
            let half = kept.join(format!("tpcds-{scale}-{}", std::process::id()));
            std::fs::create_dir_all(&half).expect("room on the disk");
            if let Err(why) = make(scale, &half) {
                let _ = std::fs::remove_dir_all(&half);
                panic!("TPC-DS at scale {scale}: {why}");
            }
            // Another process may have been faster; what it made is the same.
            if std::fs::rename(&half, &folder).is_err() {
                let _ = std::fs::remove_dir_all(&half);
            }
        }
        Self { folder }
    }

    /// The file of a table.
    pub(crate) fn table(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.parquet"))
    }

    /// The text of a query, as DuckDB has it.
    pub(crate) fn query(&self, number: usize) -> String {
        std::fs::read_to_string(text(&self.folder, number)).expect("written with the tables")
    }

    /// The answer to it, in the form of TPC-H's.
    pub(crate) fn answer(&self, number: usize) -> PathBuf {
        self.folder.join(format!("q{number:02}.txt"))
    }
}

fn text(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("q{number:02}.sql"))
}

/// A text without its last LIMIT, and the limit.
pub(crate) fn without_limit(text: &str) -> (&str, Option<usize>) {
    let text = text.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let word = text.to_ascii_lowercase().rfind("limit ");
    let cut = word.and_then(|at| Some((&text[..at], text[at + 6..].parse().ok()?)));
    cut.map_or((text, None), |(before, limit)| (before.trim_end(), Some(limit)))
}

fn make(scale: f64, folder: &Path) -> Result<(), Error> {
    let Some(extension) = extension("tpcds") else {
        panic!("DuckDB's extension `tpcds` is not beside its library: cargo xtask setup");
    };
    let database = Database::open(Library::find(None)?, ":memory:".as_ref(), &[("threads", "2")])?;
    let mut duckdb = database.connect()?;
    duckdb.run(&format!("load '{}'; call dsdgen(sf = {scale})", extension.display()))?;
    for table in TABLES {
        let path = folder.join(format!("{table}.parquet"));
        duckdb.run(&format!("copy {table} to '{}' (format parquet)", path.display()))?;
    }
    for number in 1..=QUERIES {
        let its_text = format!("select query from tpcds_queries() where query_nr = {number}");
        let query = rows(&mut duckdb, &its_text)?.remove(0).remove(0);
        answer(&mut duckdb, without_limit(&query).0, &folder.join(format!("q{number:02}.txt")))?;
        std::fs::write(text(folder, number), query).expect("room on the disk");
    }
    Ok(())
}

/// Writes an answer in the form that TPC-H's has.
pub(crate) fn answer(duckdb: &mut Connection, query: &str, path: &Path) -> Result<(), Error> {
    let mut head = String::new();
    for column in rows(duckdb, &format!("describe {query}"))? {
        // DECIMAL(7,2) is a DECIMAL.
        let kind = column[1].split('(').next().unwrap_or_default();
        let _ = write!(head, "{}{}:{kind}", if head.is_empty() { "" } else { "|" }, column[0]);
    }
    let form = "format csv, delimiter '|', header false, nullstr 'NULL', quote '', escape ''";
    duckdb.run(&format!("copy ({query}) to '{}' ({form})", path.display()))?;
    let lines = std::fs::read_to_string(path).expect("just written");
    std::fs::write(path, head + "\n" + &lines).expect("room on the disk");
    Ok(())
}

/// Texts, by row and column.
fn rows(duckdb: &mut Connection, query: &str) -> Result<Vec<Vec<String>>, Error> {
    let mut answer = duckdb.ask(query)?;
    let mut rows = Vec::new();
    while let Some(chunk) = answer.next_chunk() {
        for row in 0..chunk.rows() {
            let text = |column| match chunk.cell(column, row)? {
                Cell::Text(text) => Ok(text.to_owned()),
                other => Ok(other.to_string()),
            };
            rows.push((0..chunk.columns()).map(text).collect::<Result<_, Error>>()?);
        }
    }
    Ok(rows)
}

#[test]
fn only_the_last_limit_is_taken_off() {
    assert_eq!(without_limit("a LIMIT 5) b\nLIMIT 100 ;\n\n"), ("a LIMIT 5) b", Some(100)));
    assert_eq!(without_limit("(a LIMIT 5) b;"), ("(a LIMIT 5) b", None));
    assert_eq!(without_limit("a\nlimit 20"), ("a", Some(20)));
}
