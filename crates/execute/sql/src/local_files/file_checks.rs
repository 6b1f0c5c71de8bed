//! Files that a decoder may be given, looked through once as long as nobody changes them: each
//! stream of a scan opens its file anew.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use datafusion::arrow::ipc::reader::FileReader;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use object_store::Result;
use tokio::task::spawn_blocking;
use workahead_footer::pages::{PageRange, check_bodies, largest_page};
use workahead_machine::guarded::guarded;
use workahead_machine::memory::Memory;
use workahead_messages::{At, BYTES_MIN, MessageError, check_encoded_schema};

use super::failed;

/// Files that are remembered: a session's tables.
const KNOWN_MAX: usize = 4096;
/// Places of pages that are remembered: 24 MiB of them, or those of one file.
const PAGES_MAX: usize = 1 << 20;
/// A file that was changed before less than this may be changed again, and bear the same time.
const SETTLED: Duration = Duration::from_secs(1);
/// Names of files that are Arrow's, or damaged.
const ARROW: [&str; 4] = ["arrow", "arrows", "ipc", "feather"];

/// Whether a file has to be Arrow's by its name.
pub(crate) fn is_named_as_arrow(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ARROW.contains(&ending.as_str()))
}

/// The files that were looked through.
#[derive(Debug)]
pub(super) struct FileChecks {
    /// Says how much memory may be used.
    pool: Arc<dyn MemoryPool>,
    known: Mutex<HashMap<State, PageRanges>>,
}

/// Where the pages of a Parquet file are, by their beginnings; of other files none.
pub(super) type PageRanges = Arc<[PageRange]>;

/// A file as it is: device, number, size, times of the last change; and whether the name by which
/// it was opened, one of several perhaps, says that it is Arrow's.
type State = (u64, u64, u64, [(i64, i64); 2], bool);

impl FileChecks {
    pub(super) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self { pool, known: Mutex::default() }
    }

    /// Refuses a file that a decoder should not be given.
    pub(super) async fn check(&self, file: &File, path: &Path) -> Result<PageRanges> {
        let about = file.metadata().map_err(|why| failed(path, &why))?;
        let is_named = is_named_as_arrow(path);
        let before = state(&about, is_named, SystemTime::now());
        let known = before.and_then(|state| self.known().get(&state).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let file = file.try_clone().map_err(|why| failed(path, &why))?;
        let pool = Arc::clone(&self.pool);
        // It may wait for a device.
        let looked = spawn_blocking(move || {
            guarded(|| {
                let most = || bytes_max(pool.as_ref());
                let metadata = workahead_footer::check_file(&file);
                let metadata = metadata.map_err(|why| why.to_string())?;
                let or = ", or write fewer columns and row groups to a file";
                fits(("its metadata", or), metadata.bytes, most)?;
                for text in &metadata.arrow_schemas {
                    check_encoded_schema(text, most()).map_err(|why| why.to_string())?;
                }
                let is_file = workahead_messages::check_file(&file, is_named, most);
                if is_file.map_err(|why| why.to_string())? && is_named {
                    // Where this fails DataFusion reads a stream, and `ARRO` as its first length.
                    let file = At::new(Arc::new(file), 0);
                    FileReader::try_new(file, None).map_err(|why| why.to_string())?;
                }
                Ok::<_, String>(metadata.pages)
            })
        });
        let looked = looked.await.map_err(|why| failed(path, &why))?;
        let looked = looked.map_err(|why| failed(path, &why))?;
        let pages = PageRanges::from(looked.map_err(|why| failed(path, &why))?);
        if let Some(state) = before {
            let mut known = self.known();
            let pages_known: usize = known.values().map(|pages| pages.len()).sum();
            if known.len() >= KNOWN_MAX || pages_known + pages.len() > PAGES_MAX {
                known.clear();
            }
            known.insert(state, Arc::clone(&pages));
        }
        Ok(pages)
    }

    /// Refuses ranges that are not in the file, or that it has once only, and such as take more
    /// than they may: a reader makes room for all of them first.
    pub(super) fn check_ranges(
        &self,
        path: &Path,
        file: &File,
        ranges: &[Range<u64>],
    ) -> Result<()> {
        let size = file.metadata().map_err(|why| failed(path, &why))?.len();
        let bytes = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let all = ranges.iter().map(bytes).fold(0, u64::saturating_add);
        if all > size || ranges.iter().any(|range| range.end > size) {
            let why = "parts of it are said to lie beyond its end, or in the same place";
            return Err(failed(path, &why));
        }
        let largest = ranges.iter().map(bytes).max().unwrap_or_default();
        let or = ", or write the file in smaller row groups";
        let fits_one = fits(("a column", or), largest as usize, || bytes_max(self.pool.as_ref()));
        // A file may have holes, and be longer than what there is room for.
        let fits_all = fits(("a row group", or), all as usize, allowed);
        fits_one.and(fits_all).map_err(|why| failed(path, &why))
    }

    /// Refuses bytes of a file whose pages take more than they may once they are decoded, or than
    /// they say.
    pub(super) fn check_pages(
        &self,
        path: &Path,
        pages: &PageRanges,
        (range, bytes): (&Range<u64>, &[u8]),
    ) -> Result<()> {
        let or = ", or write the file in smaller pages";
        let most = || bytes_max(self.pool.as_ref());
        let largest = largest_page(bytes, range.start, pages).map_err(|why| why.to_string());
        let checked = largest.and_then(|largest| {
            fits(("a page", or), largest, most)?;
            check_bodies(bytes, range.start, pages).map_err(|why| why.to_string())
        });
        checked.map_err(|why| failed(path, &why))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<State, PageRanges>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells a file from what becomes of it later; none if it was changed just now.
fn state(about: &Metadata, is_named: bool, now: SystemTime) -> Option<State> {
    let seconds = u64::try_from(about.ctime()).ok()?;
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds + 1);
    let age = now.duration_since(changed).ok()?;
    let times = [(about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec())];
    (age > SETTLED).then(|| (about.dev(), about.ino(), about.len(), times, is_named))
}

/// Refuses what would take more than it may once it is decoded.
fn fits(
    (what, or): (&str, &'static str),
    bytes: usize,
    bytes_max: impl Fn() -> usize,
) -> std::result::Result<(), String> {
    let bytes_max = if bytes <= BYTES_MIN { BYTES_MIN } else { bytes_max() };
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(MessageError::TooMuch { what: what.to_owned(), bytes, bytes_max, or }.to_string())
}

/// What a part of a file may take: the pool's limit, or what the machine has left.
pub(crate) fn bytes_max(pool: &dyn MemoryPool) -> usize {
    let most = match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes,
        _ => allowed(),
    };
    most.max(BYTES_MIN)
}

/// The memory that the machine has left.
fn allowed() -> usize {
    let allowed = Memory::here().allowed_bytes;
    allowed.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
