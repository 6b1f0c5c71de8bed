//! Where the library lies.
//!
//! ```text
//! the given place ─► $WORKAHEAD_DUCKDB ─► the cache that setup fills ─► the system's
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names a library to use instead of all others.
pub const ENVIRONMENT: &str = "WORKAHEAD_DUCKDB";

/// The version that `cargo xtask setup` fetches, and studies that ship were tried with.
pub const VERSION: &str = "1.5.5";

/// Of an extension's name.
const EXTENSION: &str = "duckdb_extension";

/// As the system's linker knows it.
const NAME: &str = "libduckdb.so";

/// Places in the order in which they are tried; one that was named is the only one.
pub(crate) fn candidates(path: Option<&Path>) -> Vec<PathBuf> {
    let named = || std::env::var_os(ENVIRONMENT).filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(only) = path.map(Path::to_owned).or_else(named) {
        return vec![only];
    }
    let cache = cache(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    cache.into_iter().chain([PathBuf::from(NAME)]).collect()
}

/// The directories in which it may lie, beside the system's.
#[must_use]
pub fn library_directories() -> Vec<PathBuf> {
    let directory = |path: PathBuf| Some(path.parent()?.to_owned());
    let directories = with_links().filter_map(directory).chain(named_directories());
    directories.filter(|directory| !directory.as_os_str().is_empty()).collect()
}

/// Files that a process reads to load it again: the library, its extensions, and the directories
/// of the libraries that it depends on, if the user named any.
#[must_use]
pub fn library_files() -> Vec<PathBuf> {
    let with_extensions = |path: PathBuf| {
        let entries = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
        let beside = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| path.extension().is_some_and(|name| name == EXTENSION);
        beside.filter(is_one).chain([path]).collect::<Vec<_>>()
    };
    with_links().flat_map(with_extensions).chain(named_directories()).collect()
}

/// The candidates, and what those that are links lead to.
fn with_links() -> impl Iterator<Item = PathBuf> {
    let candidates = candidates(None).into_iter();
    candidates.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten()
}

/// Directories that the linker looks into first.
fn named_directories() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Below the user's cache directory (XDG Base Directory Specification 0.8).
fn cache(cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let cache = cache.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")));
    Some(cache?.join("workahead/duckdb").join(VERSION).join(NAME))
}

/// An extension that DuckDB can `LOAD` from its path: one that lies beside the library, where setup
/// puts those that tests need.
#[must_use]
pub fn extension(name: &str) -> Option<PathBuf> {
    let file = format!("{name}.{EXTENSION}");
    candidates(None).into_iter().map(|path| path.with_file_name(&file)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_the_users() {
        let of = |first: Option<&str>, second: Option<&str>| {
            cache(first.map(OsString::from), second.map(OsString::from))
        };
        let below = |start: &str| PathBuf::from(format!("{start}/workahead/duckdb/1.5.5/{NAME}"));
        assert_eq!(of(Some("/c"), Some("/h")), Some(below("/c")));
        assert_eq!(of(None, Some("/h")), Some(below("/h/.cache")));
        assert_eq!(of(Some("relative"), None), None);
    }

    #[test]
    fn a_named_place_is_the_only_one() {
        assert_eq!(candidates(Some("/x".as_ref())), [PathBuf::from("/x")]);
    }
}
