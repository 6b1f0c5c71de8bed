//! The directory of a private server's socket.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// `sun_path` holds 108 bytes, one of which ends it (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// `DIRECTORY/run`, or a short directory among the temporary ones when the path of a socket called
/// `name` would not fit. The same directory has the same place in every run.
pub(super) fn directory(directory: &Path, name: &str) -> PathBuf {
    let beside = directory.join("run");
    if fits(&beside, name) {
        return beside;
    }
    let mut hasher = DefaultHasher::new();
    directory.hash(&mut hasher);
    let short = format!("workahead-{:016x}", hasher.finish());
    let temporary = std::env::temp_dir().join(&short);
    if fits(&temporary, name) { temporary } else { Path::new("/tmp").join(short) }
}

fn fits(directory: &Path, name: &str) -> bool {
    directory.join(name).as_os_str().len() <= PATH_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_directory_has_its_socket_in_a_short_one() {
        let near = Path::new("/var/data");
        assert_eq!(directory(near, "s"), near.join("run"));
        let deep = Path::new("/var").join("d".repeat(120));
        let other = Path::new("/var").join("e".repeat(120));
        assert!(fits(&directory(&deep, "mariadb.sock"), "mariadb.sock"));
        assert_eq!(directory(&deep, "s"), directory(&deep, "s"));
        assert_ne!(directory(&deep, "s"), directory(&other, "s"));
    }
}
