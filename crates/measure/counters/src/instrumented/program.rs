//! The program to count: arguments, user, environment and input.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A program to run to its end.
///
/// ```
/// use workahead_counters::instrumented::Program;
/// let mut sort = Program::new("sort", ["-n"]);
/// sort.input = b"3\n1\n2\n".to_vec();
/// ```
///
/// A single backend of PostgreSQL, which refuses root: as the owner of its data, here 101. With
/// `-j` a statement ends with a semicolon and an empty line, without it with its line.
///
/// ```
/// use workahead_counters::instrumented::{Program, User};
/// let words = ["--single", "-j", "-D", "/srv/data", "postgres"];
/// let mut backend = Program::new("/usr/lib/postgresql/15/bin/postgres", words);
/// backend.input = b"select count(*)\nfrom orders;\n\n".to_vec();
/// backend.folder = Some("/".into());
/// backend.user = Some(User { uid: 101, gid: 104 });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program: a path, or a name to be found on the `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Environment,
    /// Its standard input.
    pub input: Vec<u8>,
    /// The folder it starts in; this process's own when `None`.
    pub folder: Option<PathBuf>,
    /// The user it runs as; the caller's when `None`. Only root may name another.
    pub user: Option<User>,
    /// Whether it has a process group of its own, of which nothing is left when it has ended or
    /// this process was killed; it stays in this process's otherwise, and ends with that, for
    /// programs that start none.
    pub own_group: bool,
}

/// Variables of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// Ours, and these.
    OursAnd(Vec<(OsString, OsString)>),
    /// These alone.
    Only(Vec<(OsString, OsString)>),
}

/// A user of this machine, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

impl Program {
    /// A program with arguments, our environment and no input.
    #[must_use]
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Environment::OursAnd(Vec::new()),
            input: Vec::new(),
            folder: None,
            user: None,
            own_group: true,
        }
    }

    /// All but the program itself, onto the command that runs it.
    pub(super) fn prepare(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        match &self.environment {
            Environment::OursAnd(variables) => command.envs(variables.iter().cloned()),
            Environment::Only(variables) => command.env_clear().envs(variables.iter().cloned()),
        };
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(user) = self.user {
            // With a user the standard library also drops root's other groups.
            command.uid(user.uid).gid(user.gid);
        }
    }
}
