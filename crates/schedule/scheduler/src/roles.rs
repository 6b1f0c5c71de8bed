//! Assignment of masters and slaves: one published group per set of CPUs.

use std::collections::BTreeSet;

use workahead_machine::Machine;

use crate::error::Error;
use crate::wire::{GROUPS_MAX, RawRole};

/// The roles of CPUs: of each set the first is master and the others its slaves; a CPU in no set
/// aggregates alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    sets: Vec<Vec<u32>>,
}

impl Roles {
    /// All CPUs alone: TAS.
    #[must_use]
    pub fn alone() -> Self {
        Self::default()
    }

    /// Given sets of CPUs, master first.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if a CPU is in two sets, or there are more sets than published groups.
    pub fn given(sets: Vec<Vec<u32>>) -> Result<Self, Error> {
        let sets: Vec<Vec<u32>> = sets.into_iter().filter(|set| set.len() > 1).collect();
        let mut seen = BTreeSet::new();
        if let Some(twice) = sets.iter().flatten().find(|cpu| !seen.insert(**cpu)) {
            return Err(Error::Setting(format!("CPU {twice} is in two groups of roles")));
        }
        if sets.len() > GROUPS_MAX as usize {
            return Err(Error::Setting(format!("at most {GROUPS_MAX} groups of roles")));
        }
        Ok(Self { sets })
    }

    /// One master for all CPUs, the paper's setting (core 0, and the others its slaves).
    ///
    /// # Errors
    ///
    /// As [`Roles::given`].
    pub fn whole_machine(machine: &Machine) -> Result<Self, Error> {
        Self::given(vec![numbers(machine.cpus.online.iter())])
    }

    /// A master for each last-level cache.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if the system reports no data cache.
    pub fn by_last_level_cache(machine: &Machine) -> Result<Self, Error> {
        let caches = || machine.caches.iter().filter(|cache| cache.holds_data());
        let Some(last) = caches().map(|cache| cache.level).max() else {
            let says = "the system doesn't say which CPUs share a cache: give the roles yourself";
            return Err(Error::Setting(says.into()));
        };
        let shared = caches().filter(|cache| cache.level == last);
        let sets: BTreeSet<Vec<u32>> = shared.map(|cache| numbers(cache.cpus.iter())).collect();
        Self::given(sets.into_iter().collect())
    }

    /// A master per core: its siblings follow it (SMT).
    ///
    /// # Errors
    ///
    /// As [`Roles::given`].
    pub fn by_core(machine: &Machine) -> Result<Self, Error> {
        Self::given(machine.cores.iter().map(|core| numbers(core.cpus.iter())).collect())
    }

    /// The sets, master first.
    #[must_use]
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.sets
    }

    /// An entry for each of a given number of CPUs.
    #[cfg_attr(not(any(test, feature = "bpf")), expect(dead_code, reason = "nobody to tell"))]
    pub(crate) fn to_raw(&self, cpus: u32) -> Result<Vec<RawRole>, Error> {
        let mut roles = vec![RawRole::default(); cpus as usize];
        for (group, set) in (0..).zip(&self.sets) {
            for (place, &cpu) in set.iter().enumerate() {
                let Some(role) = roles.get_mut(cpu as usize) else {
                    let says = format!("there is no CPU {cpu}: the last one is {}", cpus - 1);
                    return Err(Error::Setting(says));
                };
                *role = RawRole { role: if place == 0 { MASTER } else { SLAVE }, group };
            }
        }
        Ok(roles)
    }
}

/// `enum itas_role`.
const MASTER: u32 = 1;
const SLAVE: u32 = 2;

fn numbers(cpus: impl Iterator<Item = usize>) -> Vec<u32> {
    cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_set_is_master() {
        let roles = Roles::given(vec![vec![2, 0], vec![1, 3], vec![4]]).unwrap();
        let raw = roles.to_raw(5).unwrap();
        let pairs: Vec<(u32, u32)> = raw.iter().map(|role| (role.role, role.group)).collect();
        assert_eq!(pairs, [(2, 0), (1, 1), (1, 0), (2, 1), (0, 0)]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Roles::given(vec![vec![0, 1], vec![1, 2]]).unwrap_err().to_string().contains("1"));
        let far = Roles::given(vec![vec![0, 9]]).unwrap();
        assert_eq!(far.to_raw(4).unwrap_err().to_string(), "there is no CPU 9: the last one is 3");
    }

    #[test]
    fn a_machine_has_its_own_sets() {
        let machine = Machine::here();
        let all = machine.cpus.online.len();
        let whole = Roles::whole_machine(&machine).unwrap();
        assert_eq!(whole.sets().iter().map(Vec::len).sum::<usize>(), if all > 1 { all } else { 0 });
        let covered: usize = Roles::by_core(&machine).unwrap().sets().iter().map(Vec::len).sum();
        assert!(covered <= all);
    }
}
