//! Where a password comes from that the URL does not have: variables of the environment and the
//! files of each product's own clients.
//!
//! ```text
//! PostgreSQL   WORKAHEAD_PASSWORD ─► PGPASSWORD ─► PGPASSFILE, or ~/.pgpass
//! MariaDB      WORKAHEAD_PASSWORD ─► ~/.my.cnf
//! ```

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use workahead_workloads::session::SessionError;

use super::{Software, Target};
use crate::address::Place;
use crate::postgres;

/// The variable that has the password for either product.
pub const VARIABLE: &str = "WORKAHEAD_PASSWORD";

/// Permissions of the group and of others.
const OF_OTHERS: u32 = 0o077;
const WRITTEN_BY_OTHERS: u32 = 0o002;

/// How a server's refusal of a user without a password begins or ends.
pub(super) const REQUESTED: &str = "requests a password of `";
pub(super) const NOT_USED: &str = "(using password: NO)";

impl Target {
    /// Takes a password of the environment, or of a file, if the URL has none. Returns the warning
    /// of a file that is ignored.
    pub fn find_password(&mut self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        if self.address.password.is_some() {
            return None;
        }
        let text = |name| variable(name)?.into_string().ok();
        let home = |name| Some(PathBuf::from(variable("HOME")?).join(name));
        let (found, warning) = match self.software {
            _ if text(VARIABLE).is_some() => (text(VARIABLE), None),
            Software::Postgres if text("PGPASSWORD").is_some() => (text("PGPASSWORD"), None),
            Software::Postgres => {
                let named = variable("PGPASSFILE").map(PathBuf::from);
                let (file, warning) = read(named.or_else(|| home(".pgpass")), OF_OTHERS);
                (file.and_then(|text| of_pgpass(&text, self)), warning)
            }
            Software::MariaDb => {
                let (file, warning) = read(home(".my.cnf"), WRITTEN_BY_OTHERS);
                (file.and_then(|text| of_my_cnf(&text)), warning)
            }
        };
        self.address.password = found;
        warning
    }

    /// Whether the server refuses the user because it was given no password.
    #[must_use]
    pub fn lacks_password(&self, refusal: &SessionError) -> bool {
        let says = refusal.to_string();
        self.address.password.is_none() && (says.contains(REQUESTED) || says.contains(NOT_USED))
    }
}

/// The text of a file, if it is one; a warning instead if others have these permissions.
fn read(path: Option<PathBuf>, refused: u32) -> (Option<String>, Option<String>) {
    // Only regular files are opened: others may never end.
    let Some((path, facts)) = path.and_then(|path| {
        let facts = std::fs::metadata(&path).ok()?;
        Some((path, facts)).filter(|(_, facts)| facts.is_file())
    }) else {
        return (None, None);
    };
    if facts.permissions().mode() & refused != 0 {
        let shown = path.display();
        let warning = match refused {
            OF_OTHERS => format!("`{shown}` is ignored, others may read it: chmod 600 {shown}"),
            _ => format!("`{shown}` is ignored, anybody may write to it: chmod 600 {shown}"),
        };
        return (None, Some(warning));
    }
    (std::fs::read_to_string(path).ok(), None)
}

/// The password of the first line `host:port:database:user:password` that matches (PostgreSQL
/// manual, "The Password File").
fn of_pgpass(text: &str, target: &Target) -> Option<String> {
    let address = &target.address;
    let (hosts, port) = match &address.place {
        Place::Host(host, port) => (vec![host.clone()], *port),
        Place::Socket(path) => of_socket(path),
    };
    let port = port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, of_port, database, user, password] = fields.get(..5)? else { return None };
        let matches = |field: &Field, value: &str| field.any || field.text == value;
        let found = hosts.iter().any(|name| matches(host, name))
            && matches(of_port, &port)
            && matches(database, &address.database)
            && matches(user, &address.user);
        found.then(|| password.text.clone())
    })
}

/// The directory of a socket, which is `localhost` as well where packages put it; and its port.
fn of_socket(path: &Path) -> (Vec<String>, u16) {
    const USUAL: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];
    let directory = path.parent().unwrap_or(path).to_string_lossy().into_owned();
    let usual = USUAL.contains(&directory.as_str()).then(|| "localhost".to_owned());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let port = name.rsplit('.').next().and_then(|port| port.parse().ok());
    (usual.into_iter().chain([directory]).collect(), port.unwrap_or(postgres::PORT))
}

/// A field as it is written, and what it means.
struct Field {
    /// Whether it is the star that matches all.
    any: bool,
    text: String,
}

/// Fields between colons; a backslash takes the meaning from the character after it.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut written, mut text) = (String::new(), String::new());
    let mut characters = line.chars().chain([':']);
    while let Some(character) = characters.next() {
        written.push(character);
        match character {
            ':' => {
                let any = std::mem::take(&mut written) == "*:";
                fields.push(Field { any, text: std::mem::take(&mut text) });
            }
            '\\' => text.push(characters.next().unwrap_or('\\')),
            other => text.push(other),
        }
    }
    fields
}

/// The last `password` of the groups that clients read (MariaDB manual, "Option Files").
fn of_my_cnf(text: &str) -> Option<String> {
    const GROUPS: [&str; 6] =
        ["client", "client-server", "client-mariadb", "mariadb-client", "mariadb", "mysql"];
    let mut read = false;
    let mut password = None;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            read = GROUPS.contains(&group.0.trim());
            continue;
        }
        let pair = without_comment(line).split_once('=');
        let Some((name, value)) = pair.filter(|_| read && !line.starts_with(';')) else { continue };
        if name.trim() == "password" {
            password = Some(unescaped(unquoted(value.trim())));
        }
    }
    password
}

/// A line up to a `#` outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, character) in line.char_indices() {
        match (character, quote) {
            ('#', None) => return &line[..at],
            ('\'' | '"', None) => quote = Some(character),
            (end, Some(begun)) if end == begun && !escaped => quote = None,
            _ => {}
        }
        escaped = quote.is_some() && character == '\\' && !escaped;
    }
    line
}

fn unquoted(value: &str) -> &str {
    let between = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    between('"').or_else(|| between('\'')).unwrap_or(value)
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('s') => text.push(' '),
            Some(quoted @ ('"' | '\'' | '\\')) => text.push(quoted),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

#[cfg(test)]
mod tests;
