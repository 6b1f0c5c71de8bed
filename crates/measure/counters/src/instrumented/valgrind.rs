//! Finds valgrind, and builds its command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use workahead_machine::search_path;

use super::{Error, InstrumentedRun, Processes, Program, Span, Tool};

/// An installed valgrind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Valgrind {
    /// The program.
    pub path: PathBuf,
    /// Major and minor number of its version.
    pub version: (u32, u32),
}

/// Of 2019, in the oldest distributions that are still looked after. Its formats are those of
/// 3.19, which this was written with.
const OLDEST: (u32, u32) = (3, 15);

/// Files of a run: one per process, by its number.
pub(super) const COUNTS: &str = "counts.";
/// Messages of valgrind itself, kept out of the program's own output.
pub(super) const REMARKS: &str = "remarks.";

impl Valgrind {
    /// The first on the `PATH`.
    ///
    /// # Errors
    /// If there is none, or it is too old.
    pub fn find() -> Result<Self, Error> {
        Self::on(&std::env::var_os("PATH").unwrap_or_default())
    }

    fn on(path: &OsStr) -> Result<Self, Error> {
        Self::at(&search_path::program(path, "valgrind").ok_or(Error::NoValgrind)?)
    }

    /// The one at this path.
    ///
    /// # Errors
    /// If it does not start, or is too old.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let printed = Command::new(path).arg("--version").stdin(Stdio::null()).output();
        let printed = printed.map_err(|source| Error::system("start", path, source))?;
        let says = String::from_utf8_lossy(&printed.stdout);
        match version(&says).filter(|version| *version >= OLDEST) {
            Some(version) => Ok(Self { path: path.to_owned(), version }),
            None => Err(Error::Version {
                path: path.to_owned(),
                says: says.lines().next().unwrap_or_default().to_owned(),
                min_major: OLDEST.0,
                min_minor: OLDEST.1,
            }),
        }
    }
}

/// `valgrind-3.19.0`, or `valgrind-3.22.0.GIT`.
fn version(says: &str) -> Option<(u32, u32)> {
    let mut numbers = says.trim().strip_prefix("valgrind-")?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

impl InstrumentedRun {
    /// The command that counts a program and writes its files into a folder. Its input, output and
    /// process group are for the caller to set.
    #[must_use]
    pub fn command(&self, valgrind: &Valgrind, program: &Program, folder: &Path) -> Command {
        let mut command = Command::new(&valgrind.path);
        let tool = self.tool.name();
        command
            .arg(format!("--tool={tool}"))
            // Nothing of the user's own: `~/.valgrindrc` would change what is counted.
            .arg("--command-line-only=yes")
            // Its debugger port leaves files in /tmp when it is killed.
            .arg("--vgdb=no")
            .args(["--cache-sim=yes", "--branch-sim=yes"])
            .args(self.geometry.words())
            .arg(option(&format!("--{tool}-out-file="), folder, COUNTS))
            .arg(option("--log-file=", folder, REMARKS))
            .arg(match self.processes {
                Processes::First => "--trace-children=no",
                Processes::All => "--trace-children=yes",
            });
        if let (Tool::Callgrind, Span::Inside(functions)) = (self.tool, &self.span) {
            command.arg("--collect-atstart=no");
            command.args(functions.iter().map(|name| format!("--toggle-collect={name}")));
        }
        command.arg("--").arg(&program.program).args(&program.arguments);
        program.prepare(&mut command);
        command
    }
}

/// A file per process: `%p` is its number, and a `%` of the folder's own is doubled.
fn option(name: &str, folder: &Path, file: &str) -> OsString {
    let mut option = name.as_bytes().to_vec();
    for &byte in folder.join(file).as_os_str().as_bytes() {
        option.push(byte);
        if byte == b'%' {
            option.push(byte);
        }
    }
    option.extend_from_slice(b"%p");
    OsString::from_vec(option)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_read_and_old_ones_refused() {
        assert_eq!(version("valgrind-3.19.0\n"), Some((3, 19)));
        assert_eq!(version("valgrind-3.22.0.GIT"), Some((3, 22)));
        for text in ["", "3.19.0", "valgrind-3", "valgrind-x.y"] {
            assert_eq!(version(text), None, "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("valgrind");
        fs::write(&path, "#!/bin/sh\necho valgrind-3.9.0\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Valgrind::on(folder.path().as_os_str()).unwrap_err().to_string();
        assert!(error.contains("`valgrind-3.9.0`") && error.contains("3.15 or newer"), "{error}");
    }

    #[test]
    fn where_there_is_none_the_remedy_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().as_os_str(), OsStr::new(""), OsStr::new("relative:.")] {
            let error = Valgrind::on(path).unwrap_err().to_string();
            assert!(error.contains("apt-get install valgrind"), "{error}");
        }
    }

    #[test]
    fn the_command_gives_all_three_caches() {
        let valgrind = Valgrind { path: "/usr/bin/valgrind".into(), version: (3, 19) };
        let shape = |text: &str| text.parse().unwrap();
        let geometry = crate::instrumented::Geometry {
            l1i: shape("32KiB,8,64"),
            l1d: shape("48KiB,12,64"),
            last: shape("2MiB,16,64"),
        };
        let words = |of: &InstrumentedRun, folder: &str| {
            let command = of.command(&valgrind, &Program::new("sort", ["-n"]), Path::new(folder));
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<String>>()
        };
        let mut of = InstrumentedRun::new(Tool::Cachegrind, geometry);
        let plain = words(&of, "/tmp/50%");
        for word in [
            "--tool=cachegrind",
            "--I1=32768,8,64",
            "--D1=49152,12,64",
            "--LL=2097152,16,64",
            "--branch-sim=yes",
            "--trace-children=no",
            "--cachegrind-out-file=/tmp/50%%/counts.%p",
        ] {
            assert!(plain.iter().any(|other| other == word), "no {word} in {plain:?}");
        }
        assert!(plain.ends_with(&["--".into(), "sort".into(), "-n".into()]), "{plain:?}");
        of.tool = Tool::Callgrind;
        of.processes = Processes::All;
        of.span = Span::Inside(vec!["Executor*".to_owned()]);
        let inside = words(&of, "/tmp");
        for word in [
            "--callgrind-out-file=/tmp/counts.%p",
            "--trace-children=yes",
            "--toggle-collect=Executor*",
            "--collect-atstart=no",
        ] {
            assert!(inside.iter().any(|other| other == word), "no {word} in {inside:?}");
        }
    }
}
