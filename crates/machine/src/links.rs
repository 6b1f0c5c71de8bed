//! Symbolic links on the way to a place that is written to, and whose of them are followed.
//!
//! The rule is the system's own, which it applies where it follows a link itself (proc(5),
//! `protected_symlinks`): in a directory that all may write to, only one's own and the directory's
//! owner's. The system has it for the last name of a path alone, and not on every machine. Root
//! follows no other user's anywhere: it would overwrite what they can't.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::atomic_file::own_user;

const ROOT: u32 = 0;

/// As many links as the system follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Refuses a path with a link, of any of its names or in what it leads to, that is not to be
/// trusted. Names that are not there yet are not links.
///
/// # Errors
/// For such a link, for a circle of links, or when the path can't be walked.
pub fn check(path: &Path) -> io::Result<()> {
    walk(path, &mut trusted_link).map(drop)
}

/// Makes a directory and those above it, where they are not there yet, once all links on the way
/// are known to be trusted. Nothing is made through a link that somebody put there meanwhile.
///
/// # Errors
/// As [`check`], when it can't be made, or is not a directory.
pub fn make_directory(path: &Path) -> io::Result<()> {
    check(path)?;
    let place = walk(path, &mut |name| {
        for _ in 0..LINKS_MAX {
            if fs::symlink_metadata(name).is_ok() {
                break;
            }
            // Follows no link, and fails for one (mkdir(2)).
            match fs::create_dir(name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| false),
            }
        }
        trusted_link(name)
    })?;
    match fs::symlink_metadata(place)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::NotADirectory, "not a directory")),
    }
}

/// Whether a name is a link; one that is not to be trusted is refused by its name.
fn trusted_link(name: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(name) {
        Ok(about) if about.is_symlink() => match whose(name)? {
            None => Ok(true),
            Some(whose) => Err(refusal(format!("`{}` is {whose}", name.display()))),
        },
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(false),
    }
}

/// Where a path leads. `see` is shown each name on the way, with no links before its last one, and
/// says whether that is a link to follow.
pub(crate) fn walk(
    path: &Path,
    see: &mut dyn FnMut(&Path) -> io::Result<bool>,
) -> io::Result<PathBuf> {
    let beginning = |path: &Path| PathBuf::from(if path.is_absolute() { "/" } else { "" });
    let mut place = beginning(path);
    let mut left = names_backwards(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." && place != Path::new("") && !place.ends_with("..") {
            place.pop();
            continue;
        }
        let next = place.join(&name);
        if name == ".." || !see(&next)? {
            place = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(refusal(format!("too many links on the way to `{}`", path.display())));
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            place = beginning(&target);
        }
        left.extend(names_backwards(&target));
    }
    Ok(if place == Path::new("") { PathBuf::from(".") } else { place })
}

/// The names in a path, the last one first.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    });
    names.rev().collect()
}

/// Where a path leads, through links of its last name. A link to a pipe without a name, as
/// `/dev/fd` has them, is that pipe.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&path) else { return Ok(path) };
        trust(&path)?;
        let next = path.parent().unwrap_or(Path::new("")).join(to);
        let is_special = |about: fs::Metadata| !about.is_file() && !about.is_dir();
        if fs::symlink_metadata(&next).is_err() && fs::metadata(&path).is_ok_and(is_special) {
            return Ok(path);
        }
        path = next;
    }
    Err(io::Error::other("its links lead nowhere"))
}

/// Refuses a link or a pipe that is not to be trusted.
pub(crate) fn trust(link: &Path) -> io::Result<()> {
    whose(link)?.map_or(Ok(()), |whose| Err(refusal(format!("it is {whose}"))))
}

/// Whose a link or a pipe is that is not to be trusted, in words.
fn whose(link: &Path) -> io::Result<Option<&'static str>> {
    const STICKY_AND_OPEN: u32 = 0o1002;
    let directory = match link.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let (directory, link) = (fs::metadata(directory)?, fs::symlink_metadata(link)?);
    let open = directory.mode() & STICKY_AND_OPEN == STICKY_AND_OPEN;
    let theirs = open && ![own_user(), directory.uid()].contains(&link.uid());
    Ok(match (theirs, own_user() == ROOT && link.uid() != ROOT) {
        (false, false) => None,
        (true, _) => Some("another user's link or pipe in a directory that all may write to"),
        (false, true) => Some("another user's link or pipe, which root does not write through"),
    })
}

fn refusal(says: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, says)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    const SOMEBODY: u32 = 65_534;

    /// A directory with an open one like `/tmp` in it, and one that links may lead to.
    fn place() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let at = move |name: &str| root.join(name);
        for name in ["open", "victim"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::set_permissions(at("open"), PermissionsExt::from_mode(0o1777)).unwrap();
        (directory, at)
    }

    /// A link of another user, where this process can make one: as root.
    fn link_of_somebody(to: &Path, link: &Path) -> bool {
        symlink(to, link).unwrap();
        lchown(link, Some(SOMEBODY), None).is_ok()
    }

    #[test]
    fn directories_are_made_through_links_of_ours() {
        let (_directory, at) = place();
        symlink("victim", at("link")).unwrap();
        symlink(at("link"), at("open/link")).unwrap();
        for name in ["a/b/c", "open/link/sub/er", "link/../d", "gone/../link/e", "a/b/c", "."] {
            make_directory(&at(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(at(name).is_dir(), "{name}");
        }
        assert!(at("victim/sub/er").is_dir() && at("victim/e").is_dir() && at("d").is_dir());
        for name in [".", "..", "../..", "src/..", "src/../.."] {
            make_directory(Path::new(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn files_and_dangling_links_are_errors() {
        let (_directory, at) = place();
        fs::write(at("file"), "").unwrap();
        symlink("round", at("round")).unwrap();
        for name in ["file", "file/below", "round", "round/below"] {
            assert!(make_directory(&at(name)).is_err(), "{name}");
        }
        assert!(check(&at("round")).unwrap_err().to_string().contains("too many links"));
    }

    #[test]
    fn no_link_of_another_user_is_followed_from_any_name() {
        let (_directory, at) = place();
        if !link_of_somebody(&at("victim"), &at("open/theirs")) {
            return;
        }
        // Ours to theirs, and theirs in a directory of theirs, which root does not follow either.
        symlink("theirs/below", at("open/ours")).unwrap();
        fs::create_dir(at("their_own")).unwrap();
        link_of_somebody(&at("victim"), &at("their_own/theirs"));
        chown(at("their_own"), Some(SOMEBODY), None).unwrap();
        for name in ["open/theirs", "open/theirs/a/b", "open/ours", "their_own/theirs/a"] {
            for refused in [check(&at(name)), make_directory(&at(name))] {
                let says = refused.unwrap_err().to_string();
                assert!(says.contains("theirs` is another user's link"), "{name}: {says}");
            }
        }
        // Nothing is made before all of a path is known.
        assert!(make_directory(&at("new/../open/theirs")).is_err());
        assert!(!at("new").exists());
        assert_eq!(fs::read_dir(at("victim")).unwrap().count(), 0);
        // The owner of the open directory may link in it, and root anywhere.
        lchown(at("open/theirs"), Some(0), None).unwrap();
        make_directory(&at("open/ours/a")).unwrap();
    }
}
