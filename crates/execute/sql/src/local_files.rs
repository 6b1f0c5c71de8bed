//! Local files: the metadata of Parquet's and the messages of Arrow's are looked through before
//! they are decoded, and bytes that are in the page cache are read by the thread that decodes them.
//!
//! DataFusion recurses through the schema of a footer, which may be deeper than any stack, and
//! makes room for the pages that an index, or for the bytes that a page or a message of Arrow says
//! there are: a file of a kilobyte ends the process. Whatever reads the end of a file passes here,
//! before it knows where an index is, and so does what reads all of it, or pages.
//!
//! `object_store` reads files on threads of its own, which Tokio has for calls that wait: it fills
//! a buffer with zeros there, copies the file over them, and wakes the thread that asked. From the
//! page cache nothing waits, so that a copy into fresh memory is all there is to do. What the cache
//! hasn't is read as before.
//!
//! `object_store` writes `orders.parquet` as `orders.parquet#1` first, readable by everybody, which
//! a killed process leaves behind. Ours have other names, which are not listed either: a table of a
//! directory has the rows of whole files only.

mod file_checks;
pub(crate) mod upload;

use std::fmt;
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use file_checks::FileChecks;
pub(crate) use file_checks::{bytes_max, is_named_as_arrow};
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result,
};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::{ReadWriteFlags, pread, preadv2};
use upload::Upload;
use workahead_machine::atomic_file::is_unfinished;

/// Which thread reads what is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachedReads {
    /// The one that decodes it.
    Here,
    /// Another, as of all files.
    Elsewhere,
}

/// Takes the place of DataFusion's own store of local files, and of no other.
pub(crate) fn install(environment: &RuntimeEnv, cached: CachedReads) {
    let url = ObjectStoreUrl::local_filesystem();
    let ours = LocalFiles::new(cached, Arc::clone(&environment.memory_pool));
    let there = environment.object_store(&url);
    if there.is_ok_and(|there| there.to_string() == ours.to_string()) {
        environment.register_object_store(url.as_ref(), Arc::new(ours));
    }
}

/// The local file system.
#[derive(Debug)]
struct LocalFiles {
    files: LocalFileSystem,
    cached: CachedReads,
    checks: FileChecks,
}

impl LocalFiles {
    fn new(cached: CachedReads, pool: Arc<dyn MemoryPool>) -> Self {
        Self { files: LocalFileSystem::new(), cached, checks: FileChecks::new(pool) }
    }
}

/// A file to read; none if it can't be.
fn opened(path: &std::path::Path) -> Option<File> {
    // A pipe without a writer would hold this thread up.
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty()).ok().map(File::from)
}

/// Whether all of a file is there, by its name.
fn is_whole(file: &ObjectMeta) -> bool {
    !file.location.filename().is_some_and(|name| is_unfinished(name.as_bytes()))
}

/// Of files, those that are whole.
fn whole(files: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
    files.try_filter(|file| ready(is_whole(file))).boxed()
}

/// An error of this store.
fn failed(path: &std::path::Path, why: &dyn fmt::Display) -> object_store::Error {
    let source = format!("{}: {why}", path.display()).into();
    object_store::Error::Generic { store: "LocalFileSystem", source }
}

/// The bytes, if the file has them and the first and the last are in the cache.
fn read(file: &File, range: &Range<u64>) -> Option<Bytes> {
    let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    let is_there = length > 0 && is_cached(file, range.start) && is_cached(file, range.end - 1);
    let mut bytes = Vec::new();
    if !is_there || bytes.try_reserve_exact(length).is_err() {
        return None;
    }
    while bytes.len() < length {
        let at = range.start + bytes.len() as u64;
        if pread(file, spare_capacity(&mut bytes), at).ok()? == 0 {
            return None;
        }
    }
    bytes.truncate(length);
    Some(bytes.into())
}

/// Whether a byte can be read without waiting for a device.
fn is_cached(file: &File, at: u64) -> bool {
    let byte = &mut [0];
    preadv2(file, &mut [IoSliceMut::new(byte)], at, ReadWriteFlags::NOWAIT) == Ok(1)
}

impl fmt::Display for LocalFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for LocalFiles {
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.files.path_to_filesystem(location)?;
        let Some(file) = opened(&path) else {
            // It says why.
            return self.files.get_ranges(location, ranges).await;
        };
        let pages = self.checks.check(&file, &path).await?;
        self.checks.check_ranges(&path, &file, ranges)?;
        let read = match self.cached {
            CachedReads::Here => ranges.iter().map(|range| read(&file, range)).collect(),
            CachedReads::Elsewhere => None,
        };
        let read: Vec<Bytes> = match read {
            Some(read) => read,
            None => self.files.get_ranges(location, ranges).await?,
        };
        for (range, bytes) in ranges.iter().zip(&read) {
            self.checks.check_pages(&path, &pages, (range, bytes))?;
        }
        Ok(read)
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match options.mode {
            PutMode::Overwrite => {
                upload::put(self.files.path_to_filesystem(location)?, payload).await
            }
            _ => self.files.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload::start(self.files.path_to_filesystem(location)?).await?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        // A look at whether it is there reads nothing of it.
        let reads = !options.head;
        let found = self.files.get_opts(location, options).await?;
        if let GetResultPayload::File(file, path) = &found.payload
            && reads
            && found.range.end == found.meta.size
        {
            self.checks.check(file, path).await?;
        }
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        whole(self.files.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        whole(self.files.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.files.list_with_delimiter(prefix).await?;
        listed.objects.retain(is_whole);
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.files.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::prelude::SessionContext;
    use object_store::memory::InMemory;
    use rustix::fs::FileType;

    use super::*;

    fn pool() -> Arc<dyn MemoryPool> {
        Arc::new(UnboundedMemoryPool::default())
    }

    #[tokio::test]
    async fn ranges_are_those_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let location = Path::from_absolute_path(file.path()).unwrap();
        let ranges = [0..1, 5..70_000, 99_999..100_000];
        let pipe = file.path().with_extension("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for cached in [CachedReads::Here, CachedReads::Elsewhere] {
            let files = LocalFiles::new(cached, pool());
            let found = files.get_ranges(&location, &ranges).await.unwrap();
            assert_eq!(found, files.files.get_ranges(&location, &ranges).await.unwrap());
            assert_eq!(found[1], bytes[5..70_000]);
            // Nothing is allocated for a range that isn't there, or for one as often as it is said.
            for lie in [99_999..100_001, 0..u64::MAX, 1 << 40..(1 << 40) + 1, 0..99_000] {
                let ranges = [lie, 0..99_000];
                let said = files.get_ranges(&location, &ranges).await.unwrap_err().to_string();
                assert!(said.contains("beyond its end, or in the same place"), "{said}");
            }
            let pipe = Path::from_absolute_path(&pipe).unwrap();
            files.get_ranges(&pipe, &ranges).await.unwrap_err();
        }
        std::fs::remove_file(pipe).unwrap();
        let files = LocalFiles::new(CachedReads::Here, pool());
        let gone = Path::from_absolute_path(file.path().with_extension("gone")).unwrap();
        let ours = files.get_ranges(&gone, &ranges).await.unwrap_err().to_string();
        assert_eq!(ours, files.files.get_ranges(&gone, &ranges).await.unwrap_err().to_string());
    }

    #[tokio::test]
    async fn what_looks_like_a_footer_is_data_within_a_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // A footer of no bytes.
        file.write_all(b"PAR1\0\0\0\0PAR1\0").unwrap();
        let location = Path::from_absolute_path(file.path()).unwrap();
        for cached in [CachedReads::Here, CachedReads::Elsewhere] {
            file.as_file().set_len(13).unwrap();
            let files = LocalFiles::new(cached, pool());
            let ranges = [0..4, 4..12];
            let found = files.get_ranges(&location, &ranges).await.unwrap();
            assert_eq!(found[1], b"\0\0\0\0PAR1"[..]);
            file.as_file().set_len(12).unwrap();
            let said = files.get_ranges(&location, &ranges).await.unwrap_err().to_string();
            assert!(said.contains("its metadata is cut short"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_being_written_is_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        // What a killed process left of a file whose name nobody takes again.
        std::fs::write(path(".gone.csv.1-0.workahead-tmp"), "1\n").unwrap();
        std::fs::write(path("whole.csv"), "1\n").unwrap();
        let mut upload = Upload::start(path("half.csv")).await.unwrap();
        upload.put_part("1\n".into()).await.unwrap();
        let prefix = Path::from_absolute_path(directory.path()).unwrap();
        let files = LocalFiles::new(CachedReads::Here, pool());
        let names = async || {
            let listed: Vec<_> = files.list(Some(&prefix)).try_collect().await.unwrap();
            let delimited = files.list_with_delimiter(Some(&prefix)).await.unwrap().objects;
            assert_eq!(listed.len(), delimited.len());
            let name = |file: &ObjectMeta| file.location.filename().unwrap().to_owned();
            let mut names: Vec<_> = listed.iter().map(name).collect();
            names.sort();
            names
        };
        assert_eq!(names().await, ["whole.csv"]);
        upload.complete().await.unwrap();
        assert_eq!(names().await, ["half.csv", "whole.csv"]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_store_of_somebody_else_stays() {
        let url = ObjectStoreUrl::local_filesystem();
        let context = SessionContext::new();
        let environment = context.runtime_env();
        install(&environment, CachedReads::Here);
        let debugged = format!("{:?}", environment.object_store(&url).unwrap());
        assert!(debugged.starts_with("LocalFiles"), "{debugged}");
        environment.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
        install(&environment, CachedReads::Here);
        assert_eq!(environment.object_store(&url).unwrap().to_string(), "InMemory");
    }
}
