//! Files as tables.

use std::path::Path;

use datafusion::common::TableReference;
use datafusion::datasource::file_format::options::ArrowReadOptions;
use datafusion::error::Result;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions, SessionContext};

use super::SessionError;

/// Registers a file, or a directory of Parquet files, as a table.
pub(super) async fn register(
    context: &SessionContext,
    name: &str,
    path: &Path,
) -> std::result::Result<(), SessionError> {
    let failed =
        |source| SessionError::Open { name: name.to_owned(), path: path.to_owned(), source };
    // DataFusion treats a missing file as an empty table.
    let found = std::fs::metadata(path).map_err(failed)?;
    if found.is_file() {
        std::fs::File::open(path).map_err(failed)?;
    }
    let absolute = path.canonicalize().map_err(failed)?;
    let kind = absolute.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let kind = if found.is_dir() { "parquet" } else { kind.as_str() };
    let text = absolute.to_string_lossy();
    let registered = match kind {
        "parquet" | "csv" | "json" | "ndjson" | "jsonl" | "arrow" | "ipc" | "feather" => {
            of_kind(context, name, &text, kind).await
        }
        _ => return Err(SessionError::Kind { path: path.to_owned() }),
    };
    registered.map_err(|source| SessionError::Table {
        name: name.to_owned(),
        path: path.to_owned(),
        source,
    })
}

async fn of_kind(context: &SessionContext, name: &str, path: &str, kind: &str) -> Result<()> {
    // The name as it is written: unquoted names in SQL are lower-cased.
    let table = TableReference::bare(name);
    let ending = format!(".{}", path.rsplit('.').next().unwrap_or_default());
    match kind {
        "csv" => {
            let options = CsvReadOptions::new().file_extension(&ending);
            context.register_csv(table, path, options).await
        }
        "json" | "ndjson" | "jsonl" => {
            let options = JsonReadOptions::default().file_extension(&ending);
            context.register_json(table, path, options).await
        }
        "arrow" | "ipc" | "feather" => {
            let options = ArrowReadOptions { file_extension: &ending, ..Default::default() };
            context.register_arrow(name, path, options).await
        }
        _ => context.register_parquet(table, path, ParquetReadOptions::default()).await,
    }
}
