//! An input file of the join: its schema and size, before any row is read.

mod aside;
mod csv;
mod guarded;
mod interruptible;
mod ipc;
mod parquet;
mod permits;
mod plain;
mod records;
mod refusal;
mod stream;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use arrow_schema::{DataType, SchemaRef};
use workahead_machine::pipe;

pub(crate) use self::guarded::guarded;
use self::parquet::ParquetInput;
pub(crate) use self::parquet::Part;
pub(crate) use self::permits::Permit;
use self::records::Records;
use self::stream::StreamedInput;
pub(crate) use self::stream::{Batches, Piece};
use super::format::Format;
use super::units::Unit;
use crate::errors::WrongUse;
use crate::memory::Memory;

/// Read at a time of what can be read only once.
const PIECE_BYTES: usize = 1 << 20;

/// The memory that a part of a file may take while it is decoded, whatever the file says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// A batch of an Arrow file or stream.
    pub(crate) batch_bytes: usize,
    /// A record of CSV.
    pub(crate) record_bytes: usize,
}

/// The size of the batches that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    pub(crate) rows: usize,
    /// About, if rows are so wide that these are fewer; of Arrow with what rows share in each.
    pub(crate) bytes: usize,
}

/// How files are opened.
pub(crate) struct Opening<'a> {
    pub(crate) bounds: Bounds,
    /// Where a copy of what can be read only once is put.
    pub(crate) memory: &'a Memory,
    pub(crate) interrupted: &'static AtomicBool,
}

/// An open file, and the columns to read.
pub(crate) struct Input {
    path: PathBuf,
    format: Format,
    bytes: u64,
    kind: Kind,
    /// The copy of a pipe; it has no name.
    copy: Option<File>,
}

enum Kind {
    /// Any thread may read any part.
    Parquet(ParquetInput),
    /// Read from start to end.
    Streamed(StreamedInput),
}

impl Input {
    pub(crate) fn open(
        path: &Path,
        option: Option<Format>,
        opening: &Opening<'_>,
    ) -> anyhow::Result<Self> {
        let opened = open(path, Format::of(path, option))?;
        let (file, copy) = if is_regular(path, &opened)? {
            (opened, None)
        } else {
            let copy = opening.copy(path, opened, Format::of(path, option))?;
            (again(&copy)?, Some(copy))
        };
        let format = Format::of_input(path, &file, option);
        let bytes = file.metadata().map_or(0, |file| file.len());
        let kind = guarded(|| match format {
            Format::Parquet => {
                let bytes_max = opening.bounds.batch_bytes;
                ParquetInput::open(file, bytes_max, opening.interrupted).map(Kind::Parquet)
            }
            _ => StreamedInput::open(file, format, opening).map(Kind::Streamed),
        });
        let kind = kind.map_err(|error| damaged(path, format, error))?;
        Ok(Self { path: path.to_owned(), format, bytes, kind, copy })
    }

    /// The type of a column that is there.
    pub(crate) fn key_type(&self, column: &str) -> DataType {
        let schema = self.schema();
        schema.field_with_name(column).map_or(DataType::Null, |field| field.data_type().clone())
    }

    /// Gives a column without any value a type.
    pub(crate) fn assume(&mut self, column: &str, data_type: &DataType) {
        if let Kind::Streamed(input) = &mut self.kind {
            input.assume(column, data_type);
        }
    }

    /// The file, at its beginning, for one reader.
    fn reopen(&self) -> anyhow::Result<File> {
        match &self.copy {
            Some(copy) => again(copy),
            None => open(&self.path, self.format),
        }
    }

    /// Refuses a key that is not a column, or several.
    pub(crate) fn require(&self, column: &str, side: &str) -> anyhow::Result<()> {
        let schema = self.schema();
        let fields = schema.fields();
        match fields.iter().filter(|field| field.name() == column).count() {
            1 => Ok(()),
            0 => {
                let known: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
                Err(WrongUse::error(format!(
                    "the {side} file {} has no column {column:?}: choose from {}",
                    self.path.display(),
                    known.join(", ")
                )))
            }
            _ => Err(self.ambiguous(column, side)),
        }
    }

    /// Refuses columns of the same name, of which all would be written.
    pub(crate) fn require_names(&self, side: &str) -> anyhow::Result<()> {
        let schema = self.schema();
        let mut seen = HashSet::new();
        match schema.fields().iter().find(|field| !seen.insert(field.name())) {
            Some(twice) => Err(self.ambiguous(twice.name(), side)),
            None => Ok(()),
        }
    }

    fn ambiguous(&self, column: &str, side: &str) -> anyhow::Error {
        WrongUse::error(format!(
            "the {side} file {} has several columns called {column:?}: rename all but one",
            self.path.display()
        ))
    }

    /// Reads only these columns: in the file's order, each once.
    pub(crate) fn keep_only<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        let schema = self.schema();
        let mut kept: Vec<_> = columns.filter_map(|name| schema.index_of(name).ok()).collect();
        kept.sort_unstable();
        kept.dedup();
        match &mut self.kind {
            Kind::Parquet(input) => input.keep_only(kept),
            Kind::Streamed(input) => input.keep_only(kept),
        }
    }

    /// The columns that are read.
    pub(crate) fn schema(&self) -> SchemaRef {
        match &self.kind {
            Kind::Parquet(input) => input.schema(),
            Kind::Streamed(input) => input.schema(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.bytes
    }

    /// Estimated bytes of all rows in memory.
    pub(crate) fn row_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Parquet(input) => input.row_bytes(),
            Kind::Streamed(_) => self.bytes,
        }
    }

    /// Rows, if the metadata has their number.
    pub(crate) fn rows(&self) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(input) => Some(input.rows()),
            Kind::Streamed(_) => None,
        }
    }

    /// The highest value of an integer column minus the lowest, if the metadata has them.
    pub(crate) fn span(&self, column: &str) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(input) => input.span(column),
            Kind::Streamed(_) => None,
        }
    }

    /// Rows of each row group, if there are any.
    pub(crate) fn row_groups(&self) -> Option<Vec<usize>> {
        match &self.kind {
            Kind::Parquet(input) => Some(input.row_groups()),
            Kind::Streamed(_) => None,
        }
    }

    /// Estimated memory of reading, for each thread.
    pub(crate) fn reading_bytes(&self) -> usize {
        match &self.kind {
            Kind::Parquet(input) => input.reading_bytes(),
            Kind::Streamed(input) => input.reading_bytes(),
        }
    }

    /// Memory of a message of Arrow while it is read, at most, whatever the number of threads.
    pub(crate) fn message_bytes(&self) -> usize {
        match &self.kind {
            Kind::Parquet(_) => 0,
            Kind::Streamed(input) => input.message_bytes(),
        }
    }

    /// Reads a part of a file with row groups.
    pub(crate) fn read(&self, unit: Unit, size: BatchSize) -> anyhow::Result<Option<Part>> {
        let Kind::Parquet(input) = &self.kind else { return Ok(None) };
        let part = guarded(|| input.read(unit, size));
        part.map(Some).map_err(|error| self.damaged(error))
    }

    /// Reads a file without row groups from start to end, with at most `messages` of Arrow in
    /// memory at once.
    pub(crate) fn read_all(
        &self,
        size: BatchSize,
        messages: usize,
    ) -> anyhow::Result<Option<Batches>> {
        let Kind::Streamed(input) = &self.kind else { return Ok(None) };
        let file = self.reopen()?;
        let batches = guarded(|| Ok(input.read(file, size, messages)?));
        batches.map(Some).map_err(|error| self.damaged(error))
    }

    /// The error for a file that can't be decoded.
    pub(crate) fn damaged(&self, error: anyhow::Error) -> anyhow::Error {
        damaged(&self.path, self.format, error)
    }
}

impl Opening<'_> {
    /// Copies what can be read only once into a file without a name.
    fn copy(&self, path: &Path, from: File, format: Format) -> anyhow::Result<File> {
        let shown = path.display();
        let unread = || format!("can't read {shown}");
        let from = pipe::Reader::new(from).with_context(unread)?;
        let mut from: Box<dyn Read> = match format {
            Format::Csv | Format::Tsv => {
                Box::new(Records::new(from, format.delimiter(), self.bounds.record_bytes))
            }
            _ => Box::new(from),
        };
        let at = self.memory.directory()?;
        let directory = at.display();
        let mut to = tempfile::tempfile_in(&at)
            .with_context(|| format!("can't write to {directory}, where {shown} is copied to"))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let bytes = match from.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.with_context(unread)?,
            };
            if bytes == 0 {
                return Ok(to);
            }
            let copied = to.write_all(&piece[..bytes]);
            copied.with_context(|| format!("can't copy {shown} to {directory}"))?;
        }
    }
}

/// An open file once more, with a position of its own.
fn again(file: &File) -> anyhow::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::open(&path).with_context(|| format!("can't open {path}"))
}

fn open(path: &Path, format: Format) -> anyhow::Result<File> {
    let shown = path.display();
    if path.is_dir() {
        anyhow::bail!("{shown} is a directory: name {}", format.name());
    }
    pipe::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("no such file {shown}: check the path"),
        _ => anyhow::Error::new(error).context(format!("can't open {shown}")),
    })
}

/// Whether it is a regular file; else it is a pipe. Of a device the end may never come.
fn is_regular(path: &Path, file: &File) -> anyhow::Result<bool> {
    let shown = path.display();
    let about = file.metadata().with_context(|| format!("can't read {shown}"))?;
    let kind = about.file_type();
    if kind.is_file() || kind.is_fifo() || kind.is_socket() {
        return Ok(kind.is_file());
    }
    let what = match (kind.is_block_device(), kind.is_char_device()) {
        (true, _) => "a block device",
        (_, true) => "a character device",
        _ => "neither a file nor a pipe",
    };
    Err(anyhow::anyhow!("{shown} is {what}: name a file or a pipe"))
}

/// A file that can't be decoded; or what the system, or the memory, has against reading it.
fn damaged(path: &Path, format: Format, error: anyhow::Error) -> anyhow::Error {
    let path = path.display();
    let not_its_fault = error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| {
            error.raw_os_error().is_some() || error.kind() == ErrorKind::OutOfMemory
        })
    });
    error.context(match not_its_fault {
        true => format!("can't read {path}"),
        false => format!("{path} is not {}, or it is damaged", format.name()),
    })
}
