//! Options of a private server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use workahead_machine::CpuSet;
use workahead_machine::scheduling::Policy;

use super::Error;

/// Settings by name, as in the server's own file.
pub type Settings = BTreeMap<String, String>;

/// Options of a private server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Its directory, made when it is not there.
    pub directory: PathBuf,
    /// The folder of its programs; the newest installed when not given.
    pub programs: Option<PathBuf>,
    /// Settings beyond the version's own.
    pub settings: Settings,
    /// The CPUs it is kept on; those of this process when not given.
    pub cpus: Option<CpuSet>,
    /// How the system schedules it.
    pub policy: Policy,
}

/// Refuses settings that are not one line of a settings file; the server checks the rest.
pub(crate) fn check(settings: &Settings, product: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    for (name, value) in settings {
        if name.is_empty() || !name.chars().all(plain) || value.contains(['\n', '\r', '\0']) {
            let says = format!("`{}` can't be a setting of {product}", name.escape_debug());
            return Err(Error::Setting(says));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_stays_on_its_line() {
        let of = |name: &str, value: &str| {
            check(&Settings::from([(name.to_owned(), value.to_owned())]), "PostgreSQL")
        };
        assert!(of("work_mem", "4 MB's").is_ok() && of("innodb-log.x", "").is_ok());
        for (name, value) in [("", "1"), ("a b", "1"), ("a", "1\nb = 2"), ("a\nb", "1")] {
            let message = of(name, value).unwrap_err().to_string();
            assert!(message.ends_with("a setting of PostgreSQL"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
