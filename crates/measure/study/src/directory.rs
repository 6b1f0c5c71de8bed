//! The directory of a result: checked for writing before anything is run, never replaced without
//! `--force`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use workahead_machine::atomic_file::{AtomicFile, SUFFIX};
use workahead_machine::links;

use crate::error::StudyError;
use crate::{findings, log, record, table};

/// Where results go by default, below the current directory.
pub const DEFAULT: &str = "workahead-results";

/// The page made from a result; `report` writes it.
pub const REPORT_FILE: &str = "report.html";

/// The observation of a server and its answer; `capacity` writes it, and its page.
pub const CAPACITY_FILE: &str = "capacity.json";

/// The work of a server and its machine over some minutes; `capture` writes it.
pub const CAPTURE_FILE: &str = "capture.json";

/// The page of a comparison, in the directory of the later one; `compare` writes it.
pub const COMPARISON_FILE: &str = "compare.html";

/// A directory with one of them holds a result.
const MARKS: [&str; 4] = [record::FILE, log::FILE, CAPACITY_FILE, CAPTURE_FILE];

/// Everything that commands write into a result, the marks of one first; beside these there may be
/// [pages of profiles](profile_file).
const FILES: [&str; 8] = [
    record::FILE,
    log::FILE,
    CAPACITY_FILE,
    CAPTURE_FILE,
    table::FILE,
    findings::FILE,
    REPORT_FILE,
    COMPARISON_FILE,
];

/// The page of a cell's profile, by the cell's number from 1; `study report --profiles` writes it.
#[must_use]
pub fn profile_file(number: usize) -> String {
    format!("profile-{number}.html")
}

fn is_profile_file(name: &str) -> bool {
    let number = name.strip_prefix("profile-").and_then(|rest| rest.strip_suffix(".html"));
    number.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// The most results of one study below `workahead-results`.
const NUMBER_MAX: u32 = 10_000;

/// The directory's name for a study: `zhou-hash_join` for `zhou/hash_join`.
pub fn name(study: &str) -> String {
    study.replace('/', "-")
}

/// A new directory for a study below `parent`: `quick`, or `quick-2` when that one is taken.
pub fn claim_new(parent: &Path, study: &str) -> Result<PathBuf, StudyError> {
    let name = name(study);
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| StudyError::Write { path, source }
    };
    links::make_directory(parent).map_err(write(parent))?;
    for number in 1..=NUMBER_MAX {
        let path = match number {
            1 => parent.join(&name),
            number => parent.join(format!("{name}-{number}")),
        };
        match fs::create_dir(&path) {
            Ok(()) => return probe(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(write(&path)(source)),
        }
    }
    let source = std::io::Error::other(format!("{NUMBER_MAX} results of {study} exist already"));
    Err(write(parent)(source))
}

/// The given directory; one that already holds a result is refused.
pub fn claim(path: &Path) -> Result<PathBuf, StudyError> {
    reserve(path)?;
    clear(path)
}

/// The given directory, replacing a result in it. Only files of a result are removed.
pub fn claim_replacing(path: &Path) -> Result<PathBuf, StudyError> {
    reserve_replacing(path)?;
    clear(path)
}

/// As [`claim`], of a result that is written later: nothing is removed yet.
pub fn reserve(path: &Path) -> Result<(), StudyError> {
    links::check(path).map_err(|source| StudyError::Write { path: path.to_owned(), source })?;
    if MARKS.iter().any(|name| path.join(name).exists()) {
        return Err(StudyError::Exists { path: path.to_owned() });
    }
    reserve_replacing(path)
}

/// As [`claim_replacing`], of a result that is written later: nothing is removed yet.
pub fn reserve_replacing(path: &Path) -> Result<(), StudyError> {
    let write = |source| StudyError::Write { path: path.to_owned(), source };
    links::check(path).map_err(write)?;
    if log::is_busy(path) {
        return Err(StudyError::Busy { path: path.to_owned() });
    }
    links::make_directory(path).map_err(write)?;
    probe(path.to_owned()).map(drop)
}

/// Removes what a result has beside these files: for one that was written in its place.
pub fn remove_others(path: &Path, kept: &[&str]) -> Result<(), StudyError> {
    let profiles = names(path).filter(|name| is_profile_file(name));
    let ours = FILES.into_iter().map(str::to_owned).chain(profiles);
    for name in ours.filter(|name| !kept.contains(&name.as_str())) {
        match fs::remove_file(path.join(&name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StudyError::Write { path: path.join(name), source: error });
            }
            _ => {}
        }
    }
    Ok(())
}

fn clear(path: &Path) -> Result<PathBuf, StudyError> {
    remove_others(path, &[]).map(|()| path.to_owned())
}

/// The names in a directory, if it is there.
fn names(path: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Refuses a directory that is there and has other files than a result's: for runs of databases
/// whose statements may write all over it.
pub fn check_own(path: &Path) -> Result<(), StudyError> {
    let is_ours = |name: &str| {
        let left = name.starts_with('.') && name.ends_with(SUFFIX);
        left || FILES.contains(&name) || is_profile_file(name)
    };
    match names(path).find(|name| !is_ours(name)) {
        Some(name) => Err(StudyError::NotOwn { path: path.to_owned(), name }),
        None => Ok(()),
    }
}

/// Checks that files can be made there, by making one.
fn probe(path: PathBuf) -> Result<PathBuf, StudyError> {
    match AtomicFile::create_in(&path, "probe") {
        Ok(_) => Ok(path),
        Err(source) => Err(StudyError::Write { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn new_directories_are_numbered() {
        let parent = tempfile::tempdir().unwrap();
        let claimed = || claim_new(parent.path(), "zhou/hash_join").unwrap();
        assert_eq!(claimed(), parent.path().join("zhou-hash_join"));
        assert_eq!(claimed(), parent.path().join("zhou-hash_join-2"));
        assert_eq!(claimed(), parent.path().join("zhou-hash_join-3"));
    }

    #[test]
    fn a_result_is_replaced_only_on_request_and_nothing_else_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("deep/er");
        assert_eq!(claim(&out).unwrap(), out);
        for name in FILES {
            fs::write(out.join(name), "{}").unwrap();
        }
        fs::write(out.join("notes.txt"), "mine").unwrap();
        let refused = claim(&out).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        claim_replacing(&out).unwrap();
        assert!(FILES.iter().all(|name| !out.join(name).exists()));
        assert!(out.join("notes.txt").exists());
    }

    #[test]
    fn pages_of_profiles_are_a_results_own() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(dir.path().join(name), "a page").unwrap();
        let left = || {
            let mut left: Vec<_> = names(dir.path()).collect();
            left.sort();
            left
        };
        let pages = [profile_file(1), profile_file(12)];
        pages.iter().for_each(|name| write(name));
        check_own(dir.path()).unwrap();
        remove_others(dir.path(), &[&pages[1]]).unwrap();
        assert_eq!(left(), pages[1..]);
        let mine = ["profile-.html", "profile-1.html.txt", "profile-1a.html", "profile.html"];
        mine.iter().for_each(|name| write(name));
        claim_replacing(dir.path()).unwrap();
        assert_eq!(left(), mine);
        for name in mine {
            assert!(!is_profile_file(name), "{name}");
        }
        assert!(matches!(check_own(dir.path()), Err(StudyError::NotOwn { .. })));
    }

    #[test]
    fn every_kind_of_result_is_refused() {
        for mark in MARKS {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(mark), "precious").unwrap();
            fs::write(dir.path().join(REPORT_FILE), "precious").unwrap();
            for refused in [claim(dir.path()).map(drop), reserve(dir.path())] {
                let says = refused.unwrap_err().to_string();
                assert!(says.contains("already holds a result"), "{mark}: {says}");
            }
            reserve_replacing(dir.path()).unwrap();
            for name in [mark, REPORT_FILE] {
                assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "precious");
            }
        }
    }

    #[test]
    fn nothing_is_removed_before_there_is_something_to_write() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(REPORT_FILE), "a page").unwrap();
        reserve(dir.path()).unwrap();
        assert!(dir.path().join(REPORT_FILE).exists());
        claim(dir.path()).unwrap();
        assert!(!dir.path().join(REPORT_FILE).exists());
    }

    /// A directory of results, claimed by another user with a link of its name in `/tmp`.
    #[test]
    fn nothing_is_made_or_removed_through_a_link_of_another_user() {
        let dir = tempfile::tempdir().unwrap();
        let (open, victim) = (dir.path().join("open"), dir.path().join("victim"));
        for path in [&open, &victim] {
            fs::create_dir(path).unwrap();
        }
        fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
        let (report, link) = (victim.join(REPORT_FILE), open.join("out"));
        fs::write(&report, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        // Only root can give it away.
        if lchown(&link, Some(65_534), None).is_err() {
            return;
        }
        let sub = link.join("sub");
        for refused in [
            claim(&link),
            claim_replacing(&link),
            claim(&sub),
            claim_replacing(&sub),
            claim_new(&link, "quick"),
            claim_new(&sub, "quick"),
            reserve(&link).map(|()| sub.clone()),
            reserve_replacing(&sub).map(|()| sub.clone()),
        ] {
            let says = refused.unwrap_err().to_string();
            assert!(says.contains("out` is another user's link"), "{says}");
            assert!(says.contains("choose another directory with --out"), "{says}");
        }
        assert_eq!(fs::read_to_string(report).unwrap(), "precious");
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = claim(&file.join("below")).unwrap_err().to_string();
        assert!(error.contains("file") && error.contains("--out"), "{error}");
    }
}
