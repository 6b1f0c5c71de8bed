//! The directory of a private server: made, locked while it is used, kept afterwards.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use workahead_machine::process::running_below;
use workahead_machine::{Sysroot, atomic_file, private_directory};

use super::program::Product;
use super::socket;
use super::user::User;
use super::{Error, process};

/// A directory that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    directory: PathBuf,
    run: PathBuf,
    user: Option<User>,
    _lock: File,
}

/// Only its owner enters.
const OWNER_ONLY: u32 = 0o700;

impl Home {
    /// Makes the directory, or reuses one of the same product; a server of a killed run in it is
    /// stopped.
    pub(crate) fn open(directory: &Path, product: &Product) -> Result<Home, Error> {
        let user = User::other_than_root(product.users)?;
        // A server that runs as another user passes through what root owns.
        let mode = if user.is_some() { 0o711 } else { OWNER_ONLY };
        private_directory::make(directory, mode)
            .map_err(|source| Error::system("use", directory, source))?;
        // Servers change their directory and need absolute paths.
        let directory = fs::canonicalize(directory)
            .map_err(|source| Error::system("find", directory, source))?;
        let lock = lock(&directory, product)?;
        let run = socket::directory(&directory, product.socket);
        let home = Home { directory, run, user, _lock: lock };
        home.check_way()?;
        if let Some(pid) = home.left_running() {
            process::stop_stranger(pid, product.fast, || home.left_running() == Some(pid));
        }
        home.forget_process();
        Ok(home)
    }

    /// The directory itself.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The server's data.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Its settings file, ours to write.
    pub(crate) fn settings(&self) -> PathBuf {
        self.directory.join("settings")
    }

    /// Its temporary files. In a directory that servers share, MariaDB deletes the temporary tables
    /// of all others when it starts.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.directory.join("tmp")
    }

    /// Its log.
    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The directory of its socket.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// The user it runs as, when not this process's.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Makes an empty directory that only the server's user may enter.
    pub(crate) fn make_private(&self, path: &Path) -> Result<(), Error> {
        let make = || -> io::Result<()> {
            fs::create_dir(path)?;
            fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))?;
            self.give(path)
        };
        make().map_err(|source| Error::system("create", path, source))
    }

    /// Makes the server's user the owner.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match &self.user {
            Some(user) => std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        }
    }

    /// An empty directory for temporary files.
    pub(crate) fn make_temporary(&self) -> Result<(), Error> {
        let path = self.temporary();
        super::remove(&path)?;
        self.make_private(&path)
    }

    /// An empty directory for the socket; one of another user is refused.
    pub(crate) fn make_run(&self) -> Result<(), Error> {
        if let Ok(found) = fs::symlink_metadata(&self.run) {
            let owner = self.user.as_ref().map_or(rustix::process::geteuid().as_raw(), |u| u.uid);
            let private = found.mode() & 0o777 == OWNER_ONLY && found.uid() == owner;
            if !(found.is_dir() && private) {
                let refusal = io::Error::other("it belongs to another user; remove it");
                return Err(Error::system("use", &self.run, refusal));
            }
            self.remove_run();
        }
        self.make_private(&self.run)
    }

    /// Removes the socket and its directory.
    pub(crate) fn remove_run(&self) {
        // Best effort: an empty directory does no harm.
        let _ = fs::remove_dir_all(&self.run);
    }

    /// Writes a small file atomically.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), Error> {
        atomic_file::write_whole(path, text.as_bytes())
            .map_err(|source| Error::system("write", path, source))
    }

    /// The file that remembers the process for the run that may have to stop it: empty, and the
    /// process writes its number to it.
    pub(crate) fn process_file(&self) -> Result<File, Error> {
        let path = self.pid_file();
        let open = || {
            let _ = fs::remove_file(&path);
            File::options().write(true).create_new(true).mode(0o600).open(&path)
        };
        open().map_err(|source| Error::system("write", &path, source))
    }

    /// Removes the process's number.
    pub(crate) fn forget_process(&self) {
        // It may not exist; `left_running` recognises a stale one.
        let _ = fs::remove_file(self.pid_file());
        self.remove_run();
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join("pid")
    }

    /// The server that the last run left here. Its number may belong to another process by now, so
    /// its command must name this directory.
    fn left_running(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let directory = self.directory.as_os_str().as_encoded_bytes();
        let ours = command.split(|byte| *byte == 0).any(|word| names(word, directory));
        (ours && !running_below(&Sysroot::live(), pid).is_empty()).then_some(pid)
    }

    /// Every directory on the path must be open to the server's user; only root has to check.
    fn check_way(&self) -> Result<(), Error> {
        let Some(user) = &self.user else { return Ok(()) };
        let mut test = Command::new("test");
        user.run_as(test.arg("-x").arg(&self.directory));
        test.stdin(Stdio::null()).stderr(Stdio::null());
        if test.status().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let closed = |path: &&Path| {
            fs::metadata(path).is_ok_and(|found| match found.uid() == user.uid {
                true => found.mode() & 0o100 == 0,
                false => found.mode() & 0o001 == 0,
            })
        };
        let way: Vec<&Path> = self.directory.ancestors().collect();
        let first = way.iter().rev().copied().find(|path| closed(path));
        let closed = first.unwrap_or(&self.directory).to_owned();
        Err(Error::Closed { user: user.name.clone(), closed })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The server has been stopped before.
        self.forget_process();
    }
}

/// Whether an argument of a command names a path inside `directory`: `--datadir=DIRECTORY/data`.
fn names(word: &[u8], directory: &[u8]) -> bool {
    let inside = [directory, b"/"].concat();
    word.windows(inside.len()).any(|window| window == inside)
}

/// Locks a new directory, or one of this product.
fn lock(directory: &Path, product: &Product) -> Result<File, Error> {
    let path = directory.join("lock");
    let not_ours = || Error::NotOurs { product: product.name, directory: directory.to_owned() };
    let listed = fs::read_dir(directory);
    let mut entries = listed.map_err(|source| Error::system("list", directory, source))?;
    if !path.exists() && entries.next().is_some() {
        return Err(not_ours());
    }
    // Who may read it may lock it, and so keep a server from being started.
    let mut file = private_directory::file(&path, File::options().read(true).write(true))
        .map_err(|source| Error::system("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::InUse { directory: directory.to_owned() });
        }
        Err(TryLockError::Error(source)) => return Err(Error::system("lock", &path, source)),
    }
    let mut says = String::new();
    file.read_to_string(&mut says).map_err(|source| Error::system("read", &path, source))?;
    match says.trim_end() {
        "" => writeln!(file, "{}", product.name)
            .map_err(|source| Error::system("write", &path, source))?,
        name if name == product.name => {}
        _ => return Err(not_ours()),
    }
    Ok(file)
}
