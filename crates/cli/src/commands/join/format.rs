//! File formats, by extension or by option.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Apache Parquet (.parquet, and any extension not listed here)
    Parquet,
    /// Comma-separated values with a header line (.csv)
    Csv,
    /// Tab-separated values with a header line (.tsv)
    Tsv,
    /// An Arrow IPC file, or Feather 2 (.arrow, .feather, .ipc)
    Arrow,
    /// An Arrow IPC stream (.arrows)
    ArrowStream,
}

/// The first bytes of an Arrow IPC file. A stream has none.
const ARROW_FILE: [u8; 6] = *b"ARROW1";

impl Format {
    /// Of a file to be written.
    pub(crate) fn of(path: &Path, option: Option<Self>) -> Self {
        if let Some(format) = option {
            return format;
        }
        let extension = path.extension().and_then(|name| name.to_str()).unwrap_or_default();
        match &extension.to_ascii_lowercase()[..] {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "arrows" => Self::ArrowStream,
            _ => Self::Parquet,
        }
    }

    /// Of an open file: many streams are called `.arrow`.
    pub(crate) fn of_input(path: &Path, file: &File, option: Option<Self>) -> Self {
        let format = Self::of(path, option);
        let mut start = [0; ARROW_FILE.len()];
        let mut read = || file.read_exact_at(&mut start, 0);
        if format == Self::Arrow && option.is_none() && read().is_ok() && start != ARROW_FILE {
            return Self::ArrowStream;
        }
        format
    }

    /// Its name with an article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parquet => "a Parquet file",
            Self::Csv => "a CSV file",
            Self::Tsv => "a file of tab-separated values",
            Self::Arrow => "an Arrow file",
            Self::ArrowStream => "an Arrow stream",
        }
    }

    /// The separator of values.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Self::Tsv { b'\t' } else { b',' }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_decide_unless_the_option_is_given() {
        for (name, format) in [
            ("a.parquet", Format::Parquet),
            ("a.CSV", Format::Csv),
            ("a.csv.tsv", Format::Tsv),
            ("a.feather", Format::Arrow),
            ("a.arrows", Format::ArrowStream),
            ("a", Format::Parquet),
            ("part-0001", Format::Parquet),
        ] {
            assert_eq!(Format::of(Path::new(name), None), format, "{name}");
            assert_eq!(Format::of(Path::new(name), Some(Format::Csv)), Format::Csv);
        }
    }
}
