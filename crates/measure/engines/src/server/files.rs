//! Copies of a server's data while no server uses it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Error, Home};

impl Home {
    /// Copies a whole directory, for the server's user: under a temporary name first, then in place
    /// of what is there. It is copied as that user, who owns both and may change them at any
    /// moment: root would follow its links. Where the file system can, both copies share their
    /// blocks until one of them is written.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let half = to.with_extension("workahead-tmp");
        remove(&half)?;
        self.make_private(&half)?;
        let mut command = Command::new("cp");
        command.arg("-a").arg(from.join(".")).arg(&half).env("LC_ALL", "C");
        if let Some(user) = self.user() {
            user.run_as(&mut command);
        }
        let copied = command.stdin(Stdio::null()).output();
        let copied = copied.map_err(|source| Error::system("start", Path::new("cp"), source))?;
        if !copied.status.success() {
            let says = String::from_utf8_lossy(&copied.stderr);
            let says = io::Error::other(says.lines().last().unwrap_or("cp failed").to_owned());
            return Err(Error::system("copy to", &half, says));
        }
        remove(to)?;
        fs::rename(&half, to).map_err(|source| Error::system("rename", &half, source))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A directory that the server's user owns, for servers that any user reaches.
    fn home(place: &Path) -> Home {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        let home = Home::open(&place.join("home"), &crate::postgres::PRODUCT).unwrap();
        home.make_private(&home.data()).unwrap();
        home
    }

    #[test]
    fn a_copy_has_all_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let home = home(place.path());
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(home.data().join("base")).unwrap();
        home.give(&home.data().join("base")).unwrap();
        for name in ["base/1", "pg_version"] {
            fs::write(home.data().join(name), name).unwrap();
            home.give(&home.data().join(name)).unwrap();
        }
        symlink(&victim, home.data().join("link")).unwrap();
        let kept = home.directory().join("kept");
        for _ in 0..2 {
            home.copy(&home.data(), &kept).unwrap();
        }
        assert_eq!(fs::read_to_string(kept.join("base/1")).unwrap(), "base/1");
        assert_eq!(fs::read_link(kept.join("link")).unwrap(), victim);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    /// As the server's user, who can't read what is root's.
    #[test]
    fn root_copies_nothing_itself() {
        let place = tempfile::tempdir().unwrap();
        let home = home(place.path());
        if home.user().is_none() {
            return;
        }
        let secret = home.data().join("secret");
        fs::write(&secret, "secret").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let kept = home.directory().join("kept");
        let error = home.copy(&home.data(), &kept).unwrap_err().to_string();
        assert!(error.contains("ermission denied") && !error.contains('\n'), "{error}");
        assert!(!kept.exists());
    }
}
