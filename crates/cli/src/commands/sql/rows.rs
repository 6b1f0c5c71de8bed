//! The destination of a statement's rows: standard output, a file, or none.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use arrow_array::RecordBatch;
use workahead_machine::atomic_file::AtomicFile;
use workahead_sql::output::{Format, RowWriter};
use workahead_sql::session::Answer;

use super::tasks::Tasks;
use crate::errors::WrongUse;
use crate::output;

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatName {
    Table,
    Csv,
    Json,
    Parquet,
}

impl FormatName {
    fn format(self) -> Format {
        match self {
            Self::Table => Format::Table,
            Self::Csv => Format::Csv,
            Self::Json => Format::Json,
            Self::Parquet => Format::Parquet,
        }
    }
}

/// The position of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// A query of a benchmark.
    OfSuite,
    Earlier,
    Last,
}

/// The destination of rows.
pub(crate) enum Destination {
    Count,
    Stdout(Format),
    File(PathBuf, Format),
}

impl Destination {
    /// The destination that the arguments name.
    pub(crate) fn of(
        format: Option<FormatName>,
        out: Option<PathBuf>,
        json: bool,
    ) -> anyhow::Result<Self> {
        match (out, format) {
            (Some(out), Some(format)) => Ok(Self::File(out, format.format())),
            (Some(out), None) => {
                let format = by_name(&out)?;
                Ok(Self::File(out, format))
            }
            (None, Some(FormatName::Parquet)) => {
                Err(WrongUse::error("Parquet is written to a file: name it with --out"))
            }
            (None, Some(_)) if json => Err(WrongUse::error(
                "--json prints no rows: name a file for them with --out, or leave out --format",
            )),
            (None, _) if json => Ok(Self::Count),
            (None, format) => Ok(Self::Stdout(format.unwrap_or(FormatName::Table).format())),
        }
    }

    /// Checks that the statements' rows can go there.
    pub(crate) fn check(&self, tasks: &Tasks) -> anyhow::Result<()> {
        match self {
            Self::File(..) if tasks.is_suite() => {
                Err(WrongUse::error("--out takes the rows of one query: choose one by its number"))
            }
            _ => Ok(()),
        }
    }

    /// A sink for the rows of one statement; the file gets only those of the last.
    pub(crate) fn sink(&self, answer: &Answer, position: Position) -> anyhow::Result<Sink> {
        let has_columns = !answer.schema().fields().is_empty();
        Ok(match self {
            Self::Stdout(format) if has_columns && position != Position::OfSuite => {
                let buffer = StdoutBuffer::of(*format);
                let writer = RowWriter::new(*format, answer.schema(), buffer.clone())?;
                Sink::Stdout(writer, buffer)
            }
            Self::File(path, format) if position == Position::Last => {
                Sink::file(path, *format, answer)?
            }
            _ => Sink::Count(0),
        })
    }
}

fn by_name(path: &Path) -> anyhow::Result<Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "csv" => Ok(Format::Csv),
        "json" | "ndjson" | "jsonl" => Ok(Format::Json),
        "parquet" => Ok(Format::Parquet),
        "txt" => Ok(Format::Table),
        _ => Err(WrongUse::error(format!(
            "unknown output format of {}: use .csv, .json, .parquet or .txt, or add --format",
            path.display()
        ))),
    }
}

/// Bytes for standard output, which detects that its reader has gone.
#[derive(Clone)]
pub(crate) struct StdoutBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
    has_printed: bool,
    /// Whether people read it: then a value must not steer their terminal.
    is_escaped: bool,
}

impl StdoutBuffer {
    fn of(format: Format) -> Self {
        let is_escaped = format == Format::Table || io::stdout().is_terminal();
        Self { bytes: Arc::default(), has_printed: false, is_escaped }
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        let bytes = mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        if bytes.is_empty() {
            return Ok(());
        }
        self.has_printed = true;
        match str::from_utf8(&bytes) {
            Ok(text) if self.is_escaped => output::bytes(output::escaped(text).as_bytes()),
            _ => output::bytes(&bytes),
        }
    }
}

impl Write for StdoutBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output file, shared with the [`Sink`] that publishes it.
pub(crate) struct SharedFile(Arc<AtomicFile>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

/// A sink of rows.
pub(crate) enum Sink {
    Count(u64),
    Stdout(RowWriter<StdoutBuffer>, StdoutBuffer),
    File { writer: RowWriter<BufWriter<SharedFile>>, file: Arc<AtomicFile>, path: PathBuf },
}

impl Sink {
    fn file(path: &Path, format: Format, answer: &Answer) -> anyhow::Result<Self> {
        let failed = || format!("can't write {}", path.display());
        let file = Arc::new(AtomicFile::create(path).with_context(failed)?);
        let to = BufWriter::new(SharedFile(Arc::clone(&file)));
        let writer = RowWriter::new(format, answer.schema(), to).with_context(failed)?;
        Ok(Self::File { writer, file, path: path.to_owned() })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        match self {
            Self::Count(rows) => *rows += batch.num_rows() as u64,
            Self::Stdout(writer, buffer) => {
                writer.write(batch)?;
                buffer.drain()?;
            }
            Self::File { writer, path, .. } => {
                writer.write(batch).with_context(|| format!("can't write {}", path.display()))?
            }
        }
        Ok(())
    }

    /// Whether some of the rows were printed, so that the statement can't be restarted.
    pub(crate) fn has_printed(&self) -> bool {
        matches!(self, Self::Stdout(_, buffer) if buffer.has_printed)
    }

    /// Completes the output; returns the number of rows, and the file and its bytes.
    pub(crate) fn finish(self) -> anyhow::Result<(u64, Option<(PathBuf, u64)>)> {
        match self {
            Self::Count(rows) => Ok((rows, None)),
            Self::Stdout(writer, mut buffer) => {
                let rows = writer.rows();
                writer.finish()?;
                buffer.drain()?;
                Ok((rows, None))
            }
            Self::File { writer, file, path } => {
                let rows = writer.rows();
                writer.finish().with_context(|| format!("can't write {}", path.display()))?;
                let file = Arc::into_inner(file).context("the file is still in use")?;
                file.publish().with_context(|| format!("can't write {}", path.display()))?;
                let bytes = fs::metadata(&path).map_or(0, |found| found.len());
                Ok((rows, Some((path, bytes))))
            }
        }
    }
}
