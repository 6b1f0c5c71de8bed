//! Local files whose bytes are in the page cache, read by the thread that decodes them.
//!
//! `object_store` reads files on threads of its own, which Tokio has for calls that wait: it fills
//! a buffer with zeros there, copies the file over them, and wakes the thread that asked. From the
//! page cache nothing waits, so that a copy into fresh memory is all there is to do. What the cache
//! hasn't is read as before.

use std::fmt;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::{ReadWriteFlags, pread, preadv2};

/// The local file system, but for what is in the page cache.
#[derive(Debug, Default)]
pub(crate) struct CachedFiles(LocalFileSystem);

impl CachedFiles {
    /// Takes the place of DataFusion's own store of local files, and of no other.
    pub(crate) fn install(environment: &RuntimeEnv) {
        let url = ObjectStoreUrl::local_filesystem();
        let ours = Self::default();
        let there = environment.object_store(&url);
        if there.is_ok_and(|there| there.to_string() == ours.0.to_string()) {
            environment.register_object_store(url.as_ref(), Arc::new(ours));
        }
    }

    fn cached(&self, location: &Path, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let path = self.0.path_to_filesystem(location).ok()?;
        // A pipe without a writer would hold this thread up.
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty()).ok()?;
        ranges.iter().map(|range| read(&file, range)).collect()
    }
}

/// The bytes, if the file has them and the first and the last are in the cache.
fn read(file: &OwnedFd, range: &Range<u64>) -> Option<Bytes> {
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
fn is_cached(file: &OwnedFd, at: u64) -> bool {
    let byte = &mut [0];
    preadv2(file, &mut [IoSliceMut::new(byte)], at, ReadWriteFlags::NOWAIT) == Ok(1)
}

impl fmt::Display for CachedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for CachedFiles {
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.cached(location, ranges) {
            Some(read) => Ok(read),
            None => self.0.get_ranges(location, ranges).await,
        }
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use datafusion::prelude::SessionContext;
    use object_store::memory::InMemory;
    use rustix::fs::FileType;

    use super::*;

    #[tokio::test]
    async fn ranges_are_those_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let location = Path::from_absolute_path(file.path()).unwrap();
        let files = CachedFiles::default();
        let ranges = [0..1, 5..70_000, 99_999..100_000];
        let found = files.cached(&location, &ranges).unwrap();
        assert_eq!(found, files.0.get_ranges(&location, &ranges).await.unwrap());
        assert_eq!(found[1], bytes[5..70_000]);
        // What isn't there is refused by the file system's own words, before it is allocated.
        for range in [99_999..100_001, 0..u64::MAX, 1 << 40..(1 << 40) + 1] {
            assert!(files.cached(&location, std::slice::from_ref(&range)).is_none());
        }
        let pipe = file.path().with_extension("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let location = Path::from_absolute_path(&pipe).unwrap();
        assert!(files.cached(&location, &ranges).is_none());
        std::fs::remove_file(pipe).unwrap();
        let gone = Path::from_absolute_path(file.path().with_extension("gone")).unwrap();
        let ours = files.get_ranges(&gone, &ranges).await.unwrap_err().to_string();
        assert_eq!(ours, files.0.get_ranges(&gone, &ranges).await.unwrap_err().to_string());
    }

    #[test]
    fn a_store_of_somebody_else_stays() {
        let url = ObjectStoreUrl::local_filesystem();
        let context = SessionContext::new();
        let environment = context.runtime_env();
        CachedFiles::install(&environment);
        let debugged = format!("{:?}", environment.object_store(&url).unwrap());
        assert!(debugged.starts_with("CachedFiles"), "{debugged}");
        environment.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
        CachedFiles::install(&environment);
        assert_eq!(environment.object_store(&url).unwrap().to_string(), "InMemory");
    }
}
