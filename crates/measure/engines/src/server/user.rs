//! The user a server runs as. Both servers refuse to run as root.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use super::Error;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// The user to become: none unless this process is root; then the first of `packaged` that
    /// exists, or `nobody`.
    pub(crate) fn other_than_root(packaged: &[&str]) -> Result<Option<User>, Error> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let text = passwd()?;
        let tried: Vec<&str> = packaged.iter().copied().chain(["nobody"]).collect();
        let found = tried.iter().find_map(|name| of(&text, name));
        found.map(Some).ok_or_else(|| Error::NoUser { tried: tried.join(", ") })
    }

    /// Has a command run as this user, without our environment, which that user could read.
    pub(crate) fn run_as(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid).current_dir("/");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    }
}

/// The name of this process's user, the default user of clients.
pub(crate) fn own_name() -> Option<String> {
    name_of(&passwd().ok()?, geteuid().as_raw())
}

fn passwd() -> Result<String, Error> {
    let users = Path::new("/etc/passwd");
    std::fs::read_to_string(users).map_err(|source| Error::system("read", users, source))
}

fn name_of(text: &str, uid: u32) -> Option<String> {
    let mut users = text.lines().map(|line| line.split(':'));
    users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The user of this name in the text of passwd(5): `name:password:uid:gid:…`.
fn of(text: &str, name: &str) -> Option<User> {
    let mut fields = text
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?
        .skip(1);
    let mut number = || fields.next()?.parse().ok();
    let (uid, gid) = (number()?, number()?);
    // A second name of root would be refused like root.
    (uid != 0).then(|| User { name: name.to_owned(), uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/:/bin/bash\ntoor:x:0:0::/:/bin/sh\nbroken:x\n\
                          postgres:x:101:104:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn the_first_name_of_a_number_counts() {
        assert_eq!(name_of(PASSWD, 0).as_deref(), Some("root"));
        assert_eq!(name_of(PASSWD, 101).as_deref(), Some("postgres"));
        assert_eq!(name_of(PASSWD, 7), None);
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let postgres = User { name: "postgres".to_owned(), uid: 101, gid: 104 };
        assert_eq!(of(PASSWD, "postgres"), Some(postgres));
        for absent in ["postgre", "mysql", "toor", "broken", ""] {
            assert_eq!(of(PASSWD, absent), None, "{absent}");
        }
    }
}
