//! Settings as words, `bonus=50ms roles=cache`, for the command line.

use std::str::FromStr;

use workahead_machine::Machine;

use crate::error::Error;
use crate::roles::Roles;
use crate::settings::{Bonus, Key, Settings};

/// All settings, as text for `--help`.
pub const WORDS: &str = "\
  bonus=50ms|0.5slice      how far behind a thread of the group may be and still go first;
                           0 is plain fairness
  limit=100                most aggregations in a row
  key=mm|cgroup|parent|tag aggregation groups: threads of an address space, tasks of a cgroup,
                           processes of one parent (PostgreSQL), or only those that have a tag,
                           which goes before the others
  roles=machine|cache|core|alone|0,1/2,3
                           CPUs that follow a master: all CPUs the first, per last-level cache, per
                           core, none, or groups of CPUs, the master first
  max-delay=10ms|off       the most by which aggregation delays a thread that wakes up; without a
                           unit milliseconds; off is the paper's pure bonus
  slice=4ms patience=1s    a time slice; a task that waits for longer goes first
  preempt=1ms balance=4ms  when a wake-up preempts; how often a busy CPU looks for a heavier queue
  scan-max=64 survey=0|1   threads examined per decision; also count concurrent groups";

/// The names of all settings.
const NAMES: [&str; 11] = [
    "bonus",
    "limit",
    "key",
    "roles",
    "max-delay",
    "slice",
    "patience",
    "preempt",
    "balance",
    "scan-max",
    "survey",
];

/// Settings changed by words, and roles if a word names them (for this machine as it is now).
///
/// # Errors
///
/// [`Error::Setting`] for a word that isn't one of [`WORDS`] or is out of range.
pub fn changed<'a>(
    mut settings: Settings,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<(Settings, Option<Roles>), Error> {
    let mut roles = None;
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(Error::Setting(format!("`{word}` is not a setting: write NAME=VALUE")));
        };
        match name {
            "bonus" => settings.bonus = bonus(word, value)?,
            "limit" => settings.limit = number(word, value)?,
            "key" => settings.key = key(word, value)?,
            "slice" => settings.slice_ns = time(word, value)?,
            "max-delay" => settings.max_delay_ns = max_delay(word, value)?,
            "patience" => settings.patience_ns = time(word, value)?,
            "preempt" => settings.preempt_ns = time(word, value)?,
            "balance" => settings.balance_ns = time(word, value)?,
            "scan-max" => settings.scan_max = number(word, value)?,
            "survey" => settings.survey = number::<u8>(word, value)? != 0,
            "roles" => roles = Some(roles_of(word, value)?),
            _ => {
                let says = format!("unknown setting `{name}`: there are {}", NAMES.join(", "));
                return Err(Error::Setting(says));
            }
        }
    }
    settings.check()?;
    Ok((settings, roles))
}

fn wrong(word: &str, should: &str) -> Error {
    Error::Setting(format!("`{word}` isn't understood: {should}"))
}

fn number<T: FromStr>(word: &str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|_| wrong(word, "write a whole number"))
}

fn bonus(word: &str, value: &str) -> Result<Bonus, Error> {
    let Some(slices) = value.strip_suffix("slice") else {
        return Ok(Bonus::Ns(time(word, value)?));
    };
    let per_mille = scaled(slices, 1000).and_then(|per_mille| u32::try_from(per_mille).ok());
    per_mille
        .map(Bonus::PerMilleOfSlice)
        .ok_or_else(|| wrong(word, "a fraction of a slice is 0.5slice"))
}

/// A time in words, `50ms`, `0.5s`, or nanoseconds.
///
/// # Errors
///
/// [`Error::Setting`] if it is not a time.
pub fn nanoseconds(text: &str) -> Result<u64, Error> {
    time(text, text)
}

/// A time: a number, with up to three decimals before a unit.
fn time(word: &str, value: &str) -> Result<u64, Error> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.iter().find_map(|(unit, ns)| Some((value.strip_suffix(unit)?, *ns)));
    let time = match found {
        Some((number, 1)) => number.parse().ok(),
        Some((number, ns)) => scaled(number, ns),
        // The paper's own unit.
        None => value.parse().ok(),
    };
    time.ok_or_else(|| wrong(word, "a time is 50ms, 200us, 1s, or nanoseconds"))
}

/// A decimal number in units of `1 / scale`, exactly.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(scale)?.checked_add(thousandths * (scale / 1000))
}

fn max_delay(word: &str, value: &str) -> Result<Option<u64>, Error> {
    if value == "off" {
        return Ok(None);
    }
    let ns = match scaled(value, 1_000_000) {
        Some(ms) => Ok(ms),
        None => time(word, value),
    };
    ns.map(Some).map_err(|_| wrong(word, "write 10ms, or off for the paper's pure bonus"))
}

fn key(word: &str, value: &str) -> Result<Key, Error> {
    let mut keys = [Key::AddressSpace, Key::Cgroup, Key::Parent, Key::Tag].into_iter();
    let found = keys.find(|key| key.word() == value);
    found.ok_or_else(|| wrong(word, "key is mm, cgroup, parent or tag"))
}

fn roles_of(word: &str, value: &str) -> Result<Roles, Error> {
    match value {
        "alone" => Ok(Roles::alone()),
        "machine" => Roles::whole_machine(&Machine::here()),
        "cache" => Roles::by_last_level_cache(&Machine::here()),
        "core" => Roles::by_core(&Machine::here()),
        _ => {
            let sets: Result<Vec<Vec<u32>>, _> =
                value.split('/').map(|set| set.split(',').map(str::parse).collect()).collect();
            let should = "roles are alone, machine, cache, core, or CPUs as in 0,1/2,3";
            Roles::given(sets.map_err(|_| wrong(word, should))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> Result<(Settings, Option<Roles>), String> {
        changed(Settings::default(), words.iter().copied()).map_err(|error| error.to_string())
    }

    #[test]
    fn words_change_what_they_name() {
        let words = ["bonus=0.5slice", "limit=3", "key=parent", "slice=2ms", "patience=0.25s"];
        let (settings, roles) = set(&words).unwrap();
        assert_eq!(settings.bonus_ns(), 1_000_000);
        assert_eq!((settings.limit, settings.key), (3, Key::Parent));
        assert_eq!((settings.slice_ns, settings.patience_ns), (2_000_000, 250_000_000));
        assert_eq!(settings.preempt_ns, Settings::default().preempt_ns);
        assert!(roles.is_none());
    }

    #[test]
    fn times_are_exact() {
        let time = |text| nanoseconds(text).ok();
        assert_eq!(time("50ms"), Some(50_000_000));
        assert_eq!(time("1.5us"), Some(1_500));
        assert_eq!(time("0.001s"), Some(1_000_000));
        assert_eq!((time("7"), time("7ns")), (Some(7), Some(7)));
        for bad in ["", "ms", "-1ms", "1.0001s", "1.5ns", "1e3", "99999999999s", ".5ms"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }

    #[test]
    fn given_roles_are_read() {
        let (_, roles) = set(&["roles=1,0/2,3"]).unwrap();
        assert_eq!(roles.unwrap().sets(), [vec![1, 0], vec![2, 3]]);
        assert_eq!(set(&["roles=alone"]).unwrap().1, Some(Roles::alone()));
        assert!(set(&["roles=1,x"]).unwrap_err().contains("0,1/2,3"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(set(&["limit"]).unwrap_err(), "`limit` is not a setting: write NAME=VALUE");
        let unknown = set(&["speed=1"]).unwrap_err();
        assert!(unknown.starts_with("unknown setting `speed`: there are bonus"), "{unknown}");
        assert!(set(&["limit=-1"]).unwrap_err().contains("a whole number"));
        assert!(set(&["slice=1s"]).unwrap_err().contains("out of range"));
    }

    #[test]
    fn the_page_of_help_names_every_word() {
        for name in NAMES {
            assert!(WORDS.contains(&format!("{name}=")), "{name}");
            let said = set(&[&format!("{name}=?")]).unwrap_err();
            assert!(said.contains("isn't understood"), "{said}");
        }
    }

    #[test]
    fn a_bound_is_in_milliseconds_or_off() {
        let bound = |word| set(&[word]).map(|(settings, _)| settings.max_delay_ns);
        assert_eq!(bound("max-delay=10"), Ok(Some(10_000_000)));
        assert_eq!(bound("max-delay=0.5"), Ok(Some(500_000)));
        assert_eq!(bound("max-delay=10ms"), Ok(Some(10_000_000)));
        assert_eq!(bound("max-delay=0"), Ok(Some(0)));
        assert_eq!(bound("max-delay=off"), Ok(None));
        assert!(bound("max-delay=soon").unwrap_err().contains("10ms, or off"));
        assert!(bound("max-delay=9s").unwrap_err().contains("out of range"));
    }
}
