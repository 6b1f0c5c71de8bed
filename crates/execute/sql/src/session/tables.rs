//! Files as tables.

use std::path::Path;

use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::file_format::options::ArrowReadOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::error::Result;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions, SessionContext};
use object_store::{GetOptions, GetRange};
use url::Url;
use workahead_footer::COLUMNS_MAX;
use workahead_machine::regular_file;

use super::SessionError;
use crate::local_files::bytes_max;

/// Two numbers of a value of CSV: where it ends, in the reader's own form and in the column. One of
/// JSON takes about as much, also in rows that don't have it.
const VALUE_BYTES: usize = 16;
/// How files of Arrow begin, and streams don't.
const FILE_BEGINS: [u8; 6] = *b"ARROW1";

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
    if !found.is_dir() {
        regular_file::open(path).map_err(failed)?;
    }
    let absolute = path.canonicalize().map_err(failed)?;
    let ending = absolute.extension().unwrap_or_default().to_string_lossy();
    let kind = ending.to_ascii_lowercase();
    let kind = if found.is_dir() { "parquet" } else { kind.as_str() };
    // A path would be taken for a pattern: `a[1].csv` for `a1.csv`.
    let url = match found.is_dir() {
        true => Url::from_directory_path(&absolute),
        false => Url::from_file_path(&absolute),
    };
    let url = url.expect("an absolute path");
    let registered = match kind {
        "parquet" | "csv" | "json" | "ndjson" | "jsonl" | "arrow" | "ipc" | "feather" => {
            of_kind(context, name, &url, kind, &format!(".{ending}")).await
        }
        _ => return Err(SessionError::Kind { path: path.to_owned() }),
    };
    registered.map_err(|source| SessionError::Table {
        name: name.to_owned(),
        path: path.to_owned(),
        source,
    })
}

/// Takes a table away again whose files of this kind can't be read within bounds.
pub(super) async fn check(
    context: &SessionContext,
    name: TableReference,
    kind: &str,
) -> Result<()> {
    match kind {
        "csv" | "json" => check_width(context, name).await,
        "arrow" => check_alike(context, name).await,
        _ => Ok(()),
    }
}

/// Of Arrow DataFusion reads all files as what the first one is, so that the first bytes of a file
/// would be the length of a stream's metadata: more than a GiB.
async fn check_alike(context: &SessionContext, name: TableReference) -> Result<()> {
    let table = context.table_provider(name.clone()).await?;
    let scan = table.scan(&context.state(), None, &[], None).await?;
    let Some(scan) = scan.downcast_ref::<DataSourceExec>() else { return Ok(()) };
    let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>() else { return Ok(()) };
    let store = context.runtime_env().object_store(&files.object_store_url)?;
    let all = files.file_groups.iter().flat_map(FileGroup::iter);
    let all: Vec<_> = all.map(|file| file.object_meta.location.clone()).collect();
    let mut first = None;
    for location in &all {
        let magic = GetRange::Bounded(0..FILE_BEGINS.len() as u64);
        let options = GetOptions { range: Some(magic), ..GetOptions::default() };
        let found = store.get_opts(location, options).await?.bytes().await?;
        let is_file = *found == FILE_BEGINS[..];
        if *first.get_or_insert(is_file) != is_file {
            context.deregister_table(name)?;
            return plan_err!("it has both files and streams of Arrow: make a table of each");
        }
    }
    Ok(())
}

/// Too many columns, those within others counted: a reader of text makes room for all values of a
/// batch, whatever they are.
async fn check_width(context: &SessionContext, name: TableReference) -> Result<()> {
    let schema = context.table_provider(name.clone()).await?.schema();
    let columns = schema.flattened_fields().len();
    // One thread reads a file.
    let rows = context.state().config().batch_size();
    let bytes = columns.saturating_mul(rows).saturating_mul(VALUE_BYTES);
    let bytes_max = bytes_max(context.runtime_env().memory_pool.as_ref());
    if columns <= COLUMNS_MAX && bytes <= bytes_max {
        return Ok(());
    }
    context.deregister_table(name)?;
    plan_err!(
        "it has {columns} columns, at most {COLUMNS_MAX}, for which a reader of text takes {} MiB, \
         more than the {} MiB that may be used: raise the memory limit, or set \
         datafusion.execution.batch_size to less",
        bytes >> 20,
        bytes_max >> 20
    )
}

async fn of_kind(
    context: &SessionContext,
    name: &str,
    url: &Url,
    kind: &str,
    ending: &str,
) -> Result<()> {
    // The name as it is written: unquoted names in SQL are lower-cased.
    let table = TableReference::bare(name);
    match kind {
        "csv" => {
            let options = CsvReadOptions::new().file_extension(ending).newlines_in_values(true);
            context.register_csv(table.clone(), url, options).await?;
            check(context, table, "csv").await
        }
        "json" | "ndjson" | "jsonl" => {
            let options = JsonReadOptions::default().file_extension(ending);
            context.register_json(table.clone(), url, options).await?;
            check(context, table, "json").await
        }
        "arrow" | "ipc" | "feather" => {
            let options = ArrowReadOptions { file_extension: ending, ..Default::default() };
            context.register_arrow(name, url.as_str(), options).await
        }
        _ => context.register_parquet(table, url, ParquetReadOptions::default()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_no_pattern() {
        let context = SessionContext::new();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("d[1]")).unwrap();
        for (number, name) in
            ["a[1].csv", "a1.csv", "b?.CSV", "bc.CSV", "c %41#ü*.csv", "d[1]/x.csv"]
                .iter()
                .enumerate()
        {
            std::fs::write(path(name), format!("x\n{number}\n")).unwrap();
            register(&context, &format!("t{number}"), &path(name)).await.unwrap();
        }
        for number in 0..6 {
            let rows = context.sql(&format!("select x from t{number}")).await.unwrap();
            let rows = rows.to_string().await.unwrap();
            assert!(rows.contains(&format!("| {number} |")), "{number}: {rows}");
        }
        for (table, rows) in [("d[2]", 2), ("d2", 1)] {
            std::fs::create_dir(path(table)).unwrap();
            let query = format!(
                "copy (select * from range({rows})) to '{}' stored as parquet",
                path("one.parquet").display()
            );
            context.sql(&query).await.unwrap().collect().await.unwrap();
            std::fs::rename(path("one.parquet"), path(table).join("one.parquet")).unwrap();
        }
        for (table, rows) in [("d[2]", 2), ("d2", 1)] {
            register(&context, table, &path(table)).await.unwrap();
            assert_eq!(
                context.table(TableReference::bare(table)).await.unwrap().count().await.unwrap(),
                rows
            );
        }
    }
}
