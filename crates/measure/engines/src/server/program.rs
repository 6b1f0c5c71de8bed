//! The programs of a server: found where distributions put them, old ones refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use workahead_machine::search_path;

use super::Error;

/// A server product: names, versions, folders, users.
#[derive(Debug)]
pub(crate) struct Product {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The server's program.
    pub(crate) program: &'static str,
    /// The oldest version, as it is written and as numbers.
    pub(crate) oldest: (&'static str, [u32; 2]),
    /// The command that installs it.
    pub(crate) install: &'static str,
    /// Folders of programs outside of `PATH`; one `*` stands for a version.
    pub(crate) folders: &'static [&'static str],
    /// Users that its packages make.
    pub(crate) users: &'static [&'static str],
    /// The file name of its socket.
    pub(crate) socket: &'static str,
    /// Stops it without waiting for its clients.
    pub(crate) fast: Signal,
}

/// An installed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    folders: Vec<PathBuf>,
    /// The server itself.
    pub(crate) path: PathBuf,
    /// Its version, digits and points only.
    pub(crate) version: String,
}

impl Program {
    /// The newest installed version; only of `folder` when given.
    pub(crate) fn find(product: &Product, folder: Option<&Path>) -> Result<Program, Error> {
        let folders = match folder {
            Some(folder) => vec![folder.to_owned()],
            None => {
                product.folders.iter().flat_map(|pattern| matching(pattern)).chain(path()).collect()
            }
        };
        let mut found: Option<(Vec<u32>, Program)> = None;
        for folder in &folders {
            let path = folder.join(product.program);
            let Some(version) = path.is_file().then(|| version_of(&path)).flatten() else {
                continue;
            };
            let numbers = numbers(&version);
            if found.as_ref().is_none_or(|(newest, _)| *newest < numbers) {
                // Its companions lie beside it, or on the `PATH`.
                let mut folders = folders.clone();
                folders.insert(0, folder.clone());
                found = Some((numbers, Program { folders, path, version }));
            }
        }
        let Some((version, program)) = found else {
            return Err(missing(product, product.program));
        };
        let (needed, oldest) = product.oldest;
        if version < oldest.to_vec() {
            let (product, install, found) = (product.name, product.install, program.version);
            return Err(Error::Old { product, found, needed, install });
        }
        Ok(program)
    }

    /// Another program of the same package.
    pub(crate) fn companion(&self, product: &Product, name: &str) -> Result<PathBuf, Error> {
        let paths = self.folders.iter().map(|folder| folder.join(name));
        let found = paths.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| missing(product, name))
    }
}

fn missing(product: &Product, program: &str) -> Error {
    let (name, install) = (product.name, product.install);
    Error::Missing { product: name, program: program.to_owned(), install }
}

/// The folders that a pattern with one `*` stands for.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.into()] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = std::fs::read_dir(format!("{parent}/")).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
        .map(|entry| entry.path().join(after.trim_start_matches('/')))
        .collect()
}

fn path() -> Vec<PathBuf> {
    search_path::directories(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// `postgres (PostgreSQL) 15.18 (Debian …)`, `mariadbd  Ver 10.11.19-MariaDB-…`: the first word
/// that begins with a digit, up to the first character that is not a digit or point.
fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").env("LC_ALL", "C").output().ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout))
}

fn version_in(text: &str) -> Option<String> {
    let word =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
    Some(word[..end].trim_end_matches('.').to_owned())
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODYS: Product = Product {
        name: "Nobody's",
        program: "nobodys-server",
        oldest: ("15", [15, 0]),
        install: "apt-get install nobodys",
        folders: &["/usr/lib/nobodys/*/bin"],
        users: &[],
        socket: "s",
        fast: Signal::INT,
    };

    #[test]
    fn versions_are_read_from_what_servers_say() {
        for (said, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some("15.18")),
            ("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu", Some("10.11.19")),
            ("postgres (PostgreSQL) 19beta2", Some("19")),
            ("no version", None),
        ] {
            assert_eq!(version_in(said).as_deref(), version, "{said}");
        }
        assert!(numbers("10.11.19") > numbers("10.6.30"));
    }

    #[test]
    fn a_missing_server_is_named_with_its_remedy() {
        let message = Program::find(&NOBODYS, None).unwrap_err().to_string();
        assert_eq!(
            message,
            "Nobody's is not installed (nobodys-server is nowhere to be found): install it with \
             apt-get install nobodys"
        );
    }

    #[test]
    fn an_old_one_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nobodys-server");
        std::fs::write(&path, "#!/bin/sh\necho nobodys-server 9.6.24\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let message = Program::find(&NOBODYS, Some(folder.path())).unwrap_err().to_string();
        assert!(message.starts_with("Nobody's 9.6.24 is too old, 15 or newer"), "{message}");
    }
}
