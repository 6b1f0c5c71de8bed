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

/// As the system's linker knows it.
const NAME: &str = "libduckdb.so";

/// Places in the order in which they are tried; one that was named is the only one.
pub(crate) fn candidates(asked: Option<&Path>) -> Vec<PathBuf> {
    let named = || std::env::var_os(ENVIRONMENT).filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(only) = asked.map(Path::to_owned).or_else(named) {
        return vec![only];
    }
    let cache = cache(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    cache.into_iter().chain([PathBuf::from(NAME)]).collect()
}

/// The directories in which it may lie, beside the system's.
#[must_use]
pub fn library_directories() -> Vec<PathBuf> {
    let candidates = candidates(None).into_iter();
    let with_links = candidates.flat_map(|path| [path.canonicalize().ok(), Some(path)]);
    let found = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let directory = |path: PathBuf| Some(path.parent()?.to_owned());
    let directories = with_links.flatten().filter_map(directory);
    let directories = directories.chain(std::env::split_paths(&found));
    directories.filter(|directory| !directory.as_os_str().is_empty()).collect()
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
    let file = format!("{name}.duckdb_extension");
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
