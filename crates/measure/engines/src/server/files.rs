//! Copies of a server's data while no server uses it.

use std::fs;
use std::io;
use std::path::Path;

use super::{Error, Home};

impl Home {
    /// Copies a whole directory, for the server's user: under a temporary name first, then in place
    /// of what is there. Where the file system can, both copies share their blocks until one of
    /// them is written (`copy_file_range`, which `std::fs::copy` uses).
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let half = to.with_extension("workahead-tmp");
        remove(&half)?;
        self.make_private(&half)?;
        self.copy_into(from, &half).map_err(|source| Error::system("copy to", &half, source))?;
        remove(to)?;
        fs::rename(&half, to).map_err(|source| Error::system("rename", &half, source))
    }

    fn copy_into(&self, from: &Path, to: &Path) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (source, copy) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                fs::create_dir(&copy)?;
                fs::set_permissions(&copy, entry.metadata()?.permissions())?;
                self.copy_into(&source, &copy)?;
            } else if kind.is_file() {
                fs::copy(&source, &copy)?;
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&source)?, &copy)?;
            } else {
                // A socket or a pipe of a server that is gone.
                continue;
            }
            self.give(&copy)?;
        }
        Ok(())
    }
}

/// Removes a directory if it is there.
pub(crate) fn remove(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::system("remove", directory, error))
        }
        _ => Ok(()),
    }
}
