//! Files that a statement writes: each has its name only when all of it is on disk.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use tokio::task::spawn_blocking;
use workahead_machine::atomic_file::{AtomicFile, sweep_directory};

use super::failed;

/// A file that is written in parts; gone when dropped before it is complete.
#[derive(Debug)]
pub(super) struct Upload {
    path: PathBuf,
    /// None once it is complete or was given up.
    file: Arc<Mutex<Option<AtomicFile>>>,
    length: u64,
}

impl Upload {
    /// Starts one, in folders that are made where they are missing.
    pub(super) async fn start(path: PathBuf) -> Result<Self> {
        let target = path.clone();
        let file = blocking(&path, move || {
            if let Some(directory) = target.parent() {
                std::fs::create_dir_all(directory)?;
                // Names of an INSERT are taken once.
                sweep_directory(directory);
            }
            match target.symlink_metadata() {
                // A URL has many spellings, not all of which were looked at before.
                Ok(found) if !found.is_file() => Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    "it is not a regular file, and would be replaced by one",
                )),
                _ => AtomicFile::create(&target),
            }
        });
        Ok(Self { file: Arc::new(Mutex::new(Some(file.await?))), path, length: 0 })
    }

    fn take(&self) -> Result<AtomicFile> {
        let taken = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| failed(&self.path, &"it is written no longer"))
    }
}

/// Writes a file whole.
pub(super) async fn put(path: PathBuf, bytes: PutPayload) -> Result<PutResult> {
    let mut upload = Upload::start(path).await?;
    upload.put_part(bytes).await?;
    upload.complete().await
}

/// What could not be written last, and why. DataFusion's writers of rows as text drop the error of
/// a file that they finish, and tell a store nothing of the statement that writes.
static LAST_FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// What could not be written last, of all that this process writes.
pub(crate) fn last_failure() -> Option<String> {
    LAST_FAILURE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs what may wait for a device.
async fn blocking<T: Send + 'static>(
    path: &Path,
    call: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    let called = spawn_blocking(call).await.map_err(|why| failed(path, &why))?;
    called.map_err(|why| {
        let last = format!("{}: {why}", path.display());
        *LAST_FAILURE.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        failed(path, &why)
    })
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        let mut at = self.length;
        self.length += bytes.content_length() as u64;
        let (path, file) = (self.path.clone(), Arc::clone(&self.file));
        Box::pin(async move {
            let write = move || {
                let file = file.lock().unwrap_or_else(PoisonError::into_inner);
                // Parts that are on their way when it is given up have nowhere to go.
                let Some(file) = &*file else { return Ok(()) };
                for piece in bytes {
                    file.file().write_all_at(&piece, at)?;
                    at += piece.len() as u64;
                }
                Ok(())
            };
            blocking(&path, write).await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let file = self.take()?;
        blocking(&self.path, || file.publish()).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        self.take().map(drop)
    }
}
