//! The events that profiles of studies may be by, and their code on each machine.

use serde::{Deserialize, Serialize};

use super::By;
use crate::event::{Code, Event};
use crate::table::{Definition, Table};

/// The event that a profile is by.
///
/// Hassanein et al. (2008, figures 7b and 17) print shares of time, of L2 misses and of DTLB
/// misses. Their L2 is the last level, so the last level of today is here too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileEvent {
    /// Time.
    Time,
    /// Misses of the second-level cache, by loads where those are counted separately.
    L2Misses,
    /// Misses of the third level, by loads where those are counted separately.
    L3Misses,
    /// Walks of the page table for data; for loads where those are counted separately.
    DtlbMisses,
}

impl ProfileEvent {
    /// As studies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::L2Misses => "l2_misses",
            Self::L3Misses => "l3_misses",
            Self::DtlbMisses => "dtlb_misses",
        }
    }

    /// The metrics that count it, what retires first: a sample then names the load that missed.
    fn metrics(self) -> &'static [&'static str] {
        match self {
            Self::Time => &[],
            Self::L2Misses => &["l2_load_mpki", "l2_data_mpki", "l2_mpki"],
            Self::L3Misses => &["l3_load_mpki", "l3_mpki"],
            Self::DtlbMisses => &["dtlb_mpki"],
        }
    }

    /// The event to sample by on this table's machine: the first event of the first metric that
    /// the machine has. Loads come before stores in every table.
    ///
    /// # Errors
    /// Why it is unavailable, in one line.
    pub fn by(self, table: Option<&Table>) -> Result<By, String> {
        if self == Self::Time {
            return Ok(By::Time);
        }
        let table = table.ok_or("no table of events knows this processor")?;
        let found = self.metrics().iter().find_map(|metric| event(table, metric));
        let found = found.ok_or_else(|| format!("{} counts no such event by thread", table.title));
        Ok(By::Event(found?.clone()))
    }
}

fn event<'a>(table: &'a Table, metric: &str) -> Option<&'a Event> {
    let Some(Definition::Formula(formula)) = table.metric(metric) else { return None };
    let names = formula.names();
    let is_of_core = |event: &Event| matches!(event.code, Code::Core { .. });
    let mut events = table.events();
    events.find(|event| {
        event.name != table.work && names.contains(event.name.as_str()) && is_of_core(event)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wanted: ProfileEvent, table: &str) -> Option<String> {
        match wanted.by(Some(Table::named(table).unwrap())).unwrap() {
            By::Time => None,
            By::Event(event) => Some(event.name),
        }
    }

    #[test]
    fn each_machine_has_its_own_event() {
        let golden = [
            ("intel/skylake-sp", ProfileEvent::L2Misses, "MEM_LOAD_RETIRED.L2_MISS"),
            ("intel/sapphire-rapids", ProfileEvent::L3Misses, "MEM_LOAD_RETIRED.L3_MISS"),
            ("intel/skylake-sp", ProfileEvent::DtlbMisses, "DTLB_LOAD_MISSES.WALK_COMPLETED"),
            ("amd/zen4", ProfileEvent::L2Misses, "l2_cache_req_stat.ls_rd_blk_c"),
            ("amd/zen4", ProfileEvent::DtlbMisses, "ls_l1_d_tlb_miss.all_l2_miss"),
        ];
        for (table, wanted, event) in golden {
            assert_eq!(named(wanted, table).as_deref(), Some(event), "{table}");
        }
    }

    #[test]
    fn every_processor_of_a_table_has_all_of_them() {
        let wanted = [ProfileEvent::L2Misses, ProfileEvent::L3Misses, ProfileEvent::DtlbMisses];
        for table in Table::all().iter().filter(|table| table.name != "software") {
            for wanted in wanted {
                assert!(matches!(wanted.by(Some(table)), Ok(By::Event(_))), "{}", table.name);
            }
        }
    }

    #[test]
    fn without_a_table_there_is_time_only() {
        assert_eq!(ProfileEvent::Time.by(None), Ok(By::Time));
        let why = ProfileEvent::L2Misses.by(None).unwrap_err();
        assert_eq!(why, "no table of events knows this processor");
        let why = ProfileEvent::DtlbMisses.by(Some(Table::software())).unwrap_err();
        assert!(why.contains("counts no such event") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn names_are_those_of_studies() {
        for wanted in [
            ProfileEvent::Time,
            ProfileEvent::L2Misses,
            ProfileEvent::L3Misses,
            ProfileEvent::DtlbMisses,
        ] {
            let written = serde_json::to_string(&wanted).unwrap();
            assert_eq!(written, format!("\"{}\"", wanted.name()));
        }
    }
}
