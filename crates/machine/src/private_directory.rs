//! Directories that only their owner writes to.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::atomic_file::own_user;
use crate::links;

/// Mode of a file that only its owner opens.
const OWNER_ONLY: u32 = 0o600;
/// Others may write.
const WRITABLE: u32 = 0o022;
/// Others may not remove or rename what is not theirs.
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// Makes a directory, and those above it, for its owner alone. One that is there must be the
/// process's own, and nobody else may write to it, nor put another one in its place.
///
/// # Errors
/// When it can't be made, is not a directory, is another user's, or others may write to it.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    // Nothing is made in a place that is not to be trusted.
    let there = path.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok());
    check_up_from(there.unwrap_or(&path))?;
    DirBuilder::new().recursive(true).mode(mode).create(&path)?;
    let own = own_user();
    let ours = |path: &Path| -> io::Result<bool> {
        // A link is its maker's, wherever it leads.
        let users = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
        Ok(users.iter().all(|user| *user == own))
    };
    if !ours(&path)? {
        return refused("it belongs to another user: name another one");
    }
    if fs::metadata(&path)?.mode() & WRITABLE != 0 {
        return refused("others can write to it: `chmod go-w` it, or name another one");
    }
    check_up_from(&path)
}

/// Opens a file of such a directory that others may enter, a new one if there is none, for its
/// owner alone: who may read a file may also lock it.
///
/// # Errors
/// When it can't be opened, or its mode can't be set.
pub fn file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create(true).mode(OWNER_ONLY).open(path)?;
    if file.metadata()?.mode() & 0o777 != OWNER_ONLY {
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    }
    Ok(file)
}

/// The owner of a directory, of one above it, or of a link on the way to it can put another one in
/// its place; so can all who may write there.
fn check_up_from(directory: &Path) -> io::Result<()> {
    check(Path::new("/"))?;
    links::walk(directory, &mut check).map(drop)
}

/// Whether a path without links before its last name is one; refuses what others may replace.
fn check(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    if ![own_user(), ROOT].contains(&metadata.uid()) {
        return Err(refusal(format!(
            "`{}` above it belongs to another user: name another one",
            path.display()
        )));
    }
    if metadata.is_symlink() {
        return Ok(true);
    }
    if metadata.mode() & WRITABLE != 0 && metadata.mode() & STICKY == 0 {
        return Err(refusal(format!(
            "others can write to `{0}` above it: `chmod go-w {0}`, or name another one",
            path.display()
        )));
    }
    Ok(false)
}

fn refusal(says: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, says.into())
}

fn refused(says: impl Into<String>) -> io::Result<()> {
    Err(refusal(says))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_its_owners_alone_from_now_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        for path in [path, directory.path().join("new")] {
            let opened = file(&path, OpenOptions::new().append(true)).unwrap();
            assert_eq!(opened.metadata().unwrap().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read(directory.path().join("log")).unwrap(), b"before");
    }

    #[test]
    fn only_what_is_ours_alone_passes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        make(&path, 0o700).unwrap();
        make(&path, 0o700).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        for mode in [0o770, 0o707, 0o777] {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let says = make(&path, 0o700).unwrap_err().to_string();
            assert!(says.contains("chmod go-w"), "{says}");
        }
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(make(&directory.path().join("file"), 0o700).is_err());
    }

    #[test]
    fn links_of_ours_are_followed_but_not_in_circles() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        for (link, target) in [("up", "a/b/.."), ("to", "up/b"), ("round", "round")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        make(&at("to/ours"), 0o700).unwrap();
        assert!(at("a/b/ours").is_dir());
        assert!(make(&at("round/ours"), 0o700).is_err());
    }

    #[test]
    fn another_users_directory_is_refused() {
        // Only root can make one.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("theirs");
        fs::create_dir(&path).unwrap();
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            let says = make(&path, 0o700).unwrap_err().to_string();
            assert!(says.contains("another user"), "{says}");
            for below in ["ours", "far/below/ours"] {
                let says = make(&path.join(below), 0o700).unwrap_err().to_string();
                assert!(says.contains("theirs` above it belongs to another user"), "{says}");
            }
            let link = directory.path().join("link");
            std::os::unix::fs::symlink(directory.path(), &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
            assert!(make(&link.join("ours"), 0o700).is_err());
            // A link of ours to one of theirs to a place of ours.
            let way = directory.path().join("way");
            std::os::unix::fs::symlink("link/there", &way).unwrap();
            fs::create_dir(directory.path().join("there")).unwrap();
            let says = make(&way.join("ours"), 0o700).unwrap_err().to_string();
            assert!(says.contains("link` above it belongs to another user"), "{says}");
            assert!(make(&way, 0o700).is_err());
        }
    }
}
