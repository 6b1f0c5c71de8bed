//! A set of logical CPUs, in the notation of Linux: `0-3,8` (cpuset(7), "Formats").

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// No Linux build has more logical CPUs than this (`NR_CPUS` of the largest configurations is
/// 8192); a larger number in a list is a mistake, and would otherwise cost memory.
pub const CPUS_MAX: usize = 65_536;

/// A set of logical CPUs, smallest first.
///
/// ```
/// use workahead_machine::CpuSet;
/// let cpus: CpuSet = "0-3,8".parse().unwrap();
/// assert_eq!(cpus.len(), 5);
/// assert_eq!(cpus.to_string(), "0-3,8");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// Whether the set holds this CPU.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// How many CPUs the set holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest CPU.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// The CPUs, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::CpuList { text: text.trim().to_owned() };
        let number = |part: &str| {
            let cpu: usize = part.trim().parse().map_err(|_| bad())?;
            if cpu < CPUS_MAX { Ok(cpu) } else { Err(bad()) }
        };
        let mut cpus = BTreeSet::new();
        if text.trim().is_empty() {
            return Ok(Self(cpus));
        }
        for part in text.trim().split(',') {
            match part.split_once('-') {
                None => {
                    cpus.insert(number(part)?);
                }
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(bad());
                    }
                    cpus.extend(first..=last);
                }
            }
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_alike() {
        for text in ["0", "0-1", "0-3,8", "1,3,5,7", "0-7,16-23"] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), text);
        }
        assert!("".parse::<CpuSet>().unwrap().is_empty());
        assert_eq!(" 0-2\n".parse::<CpuSet>().unwrap().len(), 3);
        assert_eq!("3,0-1,2".parse::<CpuSet>().unwrap().to_string(), "0-3");
    }

    #[test]
    fn bad_lists_are_refused_in_one_line() {
        for text in ["x", "3-1", "0-", "-1", "1,,2", "0-99999999999", "1.5"] {
            let message = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(message.contains("0-3,8") && !message.contains('\n'), "{message}");
        }
    }
}
