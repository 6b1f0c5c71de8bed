//! Where a statement's rows go: to standard output, into a file, or nowhere.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use arrow_array::RecordBatch;
use workahead_sql::output::{Format, RowWriter};
use workahead_sql::session::Answer;
use workahead_workloads::atomic_file::AtomicFile;

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

/// Which statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// One of a benchmark.
    OfSuite,
    Earlier,
    Last,
}

/// What is to become of rows.
pub(crate) enum Goal {
    Counted,
    Shown(Format),
    File(PathBuf, Format),
}

impl Goal {
    /// As the command line has it.
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
                Err(WrongUse::error("Parquet goes into a file: name it with --out"))
            }
            (None, Some(_)) if json => Err(WrongUse::error(
                "--json prints facts: name a file for the rows with --out, or leave --format out",
            )),
            (None, _) if json => Ok(Self::Counted),
            (None, format) => Ok(Self::Shown(format.unwrap_or(FormatName::Table).format())),
        }
    }

    /// Whether the statements can end there.
    pub(crate) fn check(&self, tasks: &Tasks) -> anyhow::Result<()> {
        match self {
            Self::File(..) if tasks.is_suite() => {
                Err(WrongUse::error("one file does not take all queries: choose one by its number"))
            }
            _ => Ok(()),
        }
    }

    /// Takes the rows of one statement; the file only those of the last.
    pub(crate) fn sink(&self, answer: &Answer, turn: Turn) -> anyhow::Result<Sink> {
        let has_columns = !answer.schema().fields().is_empty();
        Ok(match self {
            Self::Shown(format) if has_columns && turn != Turn::OfSuite => {
                let pipe = Pipe::default();
                let writer = RowWriter::new(*format, answer.schema(), pipe.clone())?;
                Sink::Shown(writer, pipe)
            }
            Self::File(path, format) if turn == Turn::Last => Sink::file(path, *format, answer)?,
            _ => Sink::Counted(0),
        })
    }
}

fn by_name(path: &Path) -> anyhow::Result<Format> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match ending.as_str() {
        "csv" => Ok(Format::Csv),
        "json" | "ndjson" | "jsonl" => Ok(Format::Json),
        "parquet" => Ok(Format::Parquet),
        "txt" => Ok(Format::Table),
        _ => Err(WrongUse::error(format!(
            "{} says not what it should hold: call it .csv, .json, .parquet or .txt, or add --format",
            path.display()
        ))),
    }
}

/// Bytes on their way to standard output, which tells when its reader has gone.
#[derive(Clone, Default)]
pub(crate) struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Pipe {
    fn drain(&self) -> anyhow::Result<()> {
        let bytes = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if bytes.is_empty() { Ok(()) } else { output::bytes(&bytes) }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file that rows are written to; it gets its name from whoever holds it too.
pub(crate) struct Shared(Arc<AtomicFile>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

/// Takes rows.
pub(crate) enum Sink {
    Counted(u64),
    Shown(RowWriter<Pipe>, Pipe),
    File { writer: RowWriter<BufWriter<Shared>>, draft: Arc<AtomicFile>, path: PathBuf },
}

impl Sink {
    fn file(path: &Path, format: Format, answer: &Answer) -> anyhow::Result<Self> {
        let draft = Arc::new(AtomicFile::create(path)?);
        let to = BufWriter::new(Shared(Arc::clone(&draft)));
        let writer = RowWriter::new(format, answer.schema(), to)
            .with_context(|| format!("can't write {}", path.display()))?;
        Ok(Self::File { writer, draft, path: path.to_owned() })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        match self {
            Self::Counted(rows) => *rows += batch.num_rows() as u64,
            Self::Shown(writer, pipe) => {
                writer.write(batch)?;
                pipe.drain()?;
            }
            Self::File { writer, path, .. } => {
                writer.write(batch).with_context(|| format!("can't write {}", path.display()))?
            }
        }
        Ok(())
    }

    /// Whether somebody has seen some of the rows, which can't be taken back.
    pub(crate) fn is_seen(&self) -> bool {
        matches!(self, Self::Shown(writer, _) if writer.rows() > 0)
    }

    /// Rows taken, and the file they are in.
    pub(crate) fn finish(self) -> anyhow::Result<(u64, Option<(PathBuf, u64)>)> {
        match self {
            Self::Counted(rows) => Ok((rows, None)),
            Self::Shown(writer, pipe) => {
                let rows = writer.rows();
                writer.finish()?;
                pipe.drain()?;
                Ok((rows, None))
            }
            Self::File { writer, draft, path } => {
                let rows = writer.rows();
                writer.finish().with_context(|| format!("can't write {}", path.display()))?;
                let draft = Arc::into_inner(draft).context("the file is still written to")?;
                draft.publish()?;
                let bytes = fs::metadata(&path).map_or(0, |found| found.len());
                Ok((rows, Some((path, bytes))))
            }
        }
    }
}
