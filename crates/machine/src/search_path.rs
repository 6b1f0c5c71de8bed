//! Where programs are looked for by their names.

use std::ffi::OsStr;
use std::path::PathBuf;

/// The directories of a `PATH`, without those that are relative: anybody may have put a program
/// into the one that the command is started in, and root would run it.
pub fn directories(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).filter(|directory| directory.is_absolute())
}

/// The first program of this name in the directories of a `PATH`.
#[must_use]
pub fn program(path: &OsStr, name: &str) -> Option<PathBuf> {
    directories(path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_directories_are_looked_through() {
        // Tests run in the directory of their crate.
        let here = std::env::current_dir().unwrap();
        let file = |path: &str| program(OsStr::new(path), "Cargo.toml");
        for relative in ["", ".", "src/..", ":", "src:.:"] {
            assert_eq!(file(relative), None, "{relative:?}");
        }
        let absolute = format!(":{}:.", here.display());
        assert_eq!(file(&absolute), Some(here.join("Cargo.toml")));
        assert_eq!(directories(OsStr::new(&absolute)).collect::<Vec<_>>(), [here]);
    }
}
