//! `sql`: a user's own statements, from a file or from the study itself.
//!
//! They run on the tables of the workload that `data` names, with that workload's settings, changed
//! once by the statements of the file `set_up`; with neither, on an empty database.

use std::path::PathBuf;
use std::sync::Arc;

use workahead_machine::regular_file;
use workahead_study::engine::EngineError;
use workahead_workloads::client::{Order, Workload};
use workahead_workloads::session::Dialect;
use workahead_workloads::sql_file::{FILE_BYTES_MAX, OnData, SqlFile};

use super::{KINDS, Kind, Work, tpch};
use crate::configuration::CellConfiguration;
use crate::served::digest;

/// The most that clients run: each client has latencies of each, of 16 KiB at least.
const STATEMENTS_MAX: usize = 2_000;

/// Statements and their data.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::served) struct Options {
    statements: Source,
    pub(super) data: Option<Box<Work>>,
    pub(super) set_up: Option<PathBuf>,
    order: Order,
    seed: u64,
}

/// Where statements are.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    File(PathBuf),
    Text(String),
}

pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Options, EngineError> {
    let text = |key| config.text(key, String::new());
    let statements = match (config.has("file"), config.has("sql")) {
        (true, false) => Source::File(text("file")?.into()),
        (false, true) => Source::Text(text("sql")?),
        _ => {
            return Err(EngineError::failed(
                "the workload `sql` needs its statements: give `file`, a path, or `sql`, the \
                 statements themselves",
            ));
        }
    };
    let data = match config.has("data") {
        true => {
            let with_data = KINDS.iter().filter(|(_, kind)| !matches!(kind, Kind::Sql));
            let with_data: Vec<_> = with_data.copied().collect();
            let kind = config.choice("data", Kind::Tpch, &with_data)?;
            Some(Box::new(Work::of(kind, config)?))
        }
        false => None,
    };
    let set_up = config.has("set_up").then(|| text("set_up").map(PathBuf::from)).transpose()?;
    let order = config.choice("order", Order::AsWritten, &tpch::ORDERS)?;
    Ok(Options { statements, data, set_up, order, seed: config.seed() })
}

pub(super) fn open(options: &Options, dialect: Dialect) -> Result<Arc<dyn Workload>, EngineError> {
    let failed = |error: String| EngineError::failed(error);
    let (order, seed) = (options.order, options.seed);
    let of_file = |path: &PathBuf| {
        SqlFile::read(path, dialect, order, seed).map_err(|error| failed(error.to_string()))
    };
    let statements = match &options.statements {
        Source::File(path) => of_file(path)?,
        Source::Text(text) => SqlFile::of_text(text, dialect, order, seed)
            .map_err(|says| failed(format!("setting `sql`: {says}")))?,
    };
    let count = statements.statements().len();
    if count > STATEMENTS_MAX {
        return Err(failed(format!(
            "the workload `sql` has {count} statements, and each of at most {STATEMENTS_MAX} is \
             counted apart: divide them among several cells, by `file`"
        )));
    }
    let data = options.data.as_ref().map(|data| data.open(dialect)).transpose()?;
    let set_up = options.set_up.as_ref().map(of_file).transpose()?;
    Ok(Arc::new(OnData::new(statements, data, set_up.as_ref())))
}

/// The text of the set-up file is part of the name; `open` has checked that it can be read.
pub(super) fn data(options: &Options) -> String {
    let mut name = options.data.as_ref().map_or("nothing".to_owned(), |data| data.data());
    if let Some(path) = &options.set_up {
        let text = regular_file::read(path, FILE_BYTES_MAX).unwrap_or_default();
        name.push_str(&format!("_{}", digest::digits(&text)));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_runs_no_more_statements_than_are_counted_apart() {
        let home = tempfile::tempdir().unwrap();
        let set_up = home.path().join("set_up.sql");
        std::fs::write(&set_up, "insert into t values (1);\n".repeat(STATEMENTS_MAX + 1)).unwrap();
        let kinds = |count| {
            let statements = Source::Text("select 1;\n".repeat(count));
            let (set_up, order) = (Some(set_up.clone()), Order::AsWritten);
            let options = Options { statements, data: None, set_up, order, seed: 1 };
            open(&options, Dialect::Postgres).map(|workload| workload.kinds().len())
        };
        assert_eq!(kinds(STATEMENTS_MAX).ok(), Some(STATEMENTS_MAX));
        let says = kinds(STATEMENTS_MAX + 1).unwrap_err().to_string();
        assert!(says.contains("2001 statements") && says.contains("several cells"), "{says}");
        assert!(!says.contains('\n'), "{says}");
    }

    /// The author of another text of that name would have other studies run on it.
    #[test]
    fn data_is_named_by_the_text_that_set_it_up() {
        let home = tempfile::tempdir().unwrap();
        let set_up = home.path().join("set_up.sql");
        std::fs::write(&set_up, "abc").unwrap();
        let (statements, order) = (Source::Text("select 1".to_owned()), Order::AsWritten);
        let options = Options { statements, data: None, set_up: Some(set_up), order, seed: 1 };
        assert_eq!(data(&options), "nothing_ba7816bf8f01cfea414140de5dae2223");
    }
}
