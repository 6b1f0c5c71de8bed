//! The kernel's event source of the cores, and which events it lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::source::CountError;

/// Where the kernel lists its event sources.
pub(crate) const SOURCES: &str = "/sys/bus/event_source/devices";

/// The usual name, and that of the large cores of a hybrid. Arm's sources have names of their own:
/// `armv8_pmuv3_0` by ACPI, `armv8_cortex_a76` by a device tree.
const NAMES: [&str; 2] = ["cpu", "cpu_core"];

/// The source of the cores.
pub(crate) struct CoreSource {
    name: String,
    /// The number that the kernel gave it.
    pub(crate) number: Option<u32>,
    /// The numbers of the events that it lists.
    listed: BTreeSet<u64>,
}

impl CoreSource {
    /// Read once: a slot of counting opens thousands of events.
    pub(crate) fn here() -> Option<&'static Self> {
        static HERE: LazyLock<Option<CoreSource>> =
            LazyLock::new(|| CoreSource::among(Path::new(SOURCES)));
        HERE.as_ref()
    }

    fn among(sources: &Path) -> Option<Self> {
        let named = NAMES.iter().map(|name| sources.join(name)).find(|source| source.is_dir());
        // Only sources of cores have a file `cpus`; others have `cpumask`.
        let with_cpus = || entries(sources).filter(|source| source.join("cpus").exists()).min();
        let source = named.or_else(with_cpus)?;
        let number = |path: PathBuf| {
            let text = fs::read_to_string(path).ok()?;
            u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
        };
        Some(Self {
            name: source.file_name()?.to_str()?.to_owned(),
            number: fs::read_to_string(source.join("type"))
                .ok()
                .and_then(|t| t.trim().parse().ok()),
            listed: entries(&source.join("events")).filter_map(number).collect(),
        })
    }

    /// Refuses an event that would be opened and stay at zero. Arm's driver takes any number; of
    /// those that the architecture names it lists the ones that the processor has, as PMCEID says
    /// (drivers/perf/arm_pmuv3.c). The other drivers' lists are of a few names only.
    pub(crate) fn check(&self, event: &str, config: u64) -> Result<(), CountError> {
        let is_architected = (1..0x40).contains(&config) || (0x4000..0x4040).contains(&config);
        let is_complete = self.name.starts_with("arm") && !self.listed.is_empty();
        if !is_complete || !is_architected || self.listed.contains(&config) {
            return Ok(());
        }
        let why = format!("it is not among the events of {}", self.name);
        Err(CountError::NoSuchEvent { event: event.to_owned(), why })
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(sources: &Path, name: &str, kind: &str) -> PathBuf {
        let source = sources.join(name);
        fs::create_dir_all(source.join("events")).unwrap();
        fs::write(source.join(kind), "0\n").unwrap();
        fs::write(source.join("type"), "8\n").unwrap();
        source
    }

    #[test]
    fn arms_source_is_found_by_its_cpus_and_lists_all_that_it_counts() {
        let sources = tempfile::tempdir().unwrap();
        assert!(CoreSource::among(sources.path()).is_none());
        source(sources.path(), "arm_cmn_0", "cpumask");
        let arm = source(sources.path(), "armv8_pmuv3", "cpus");
        fs::write(arm.join("events/inst_retired"), "event=0x0008\n").unwrap();
        let found = CoreSource::among(sources.path()).expect("a source");
        assert_eq!(found.number, Some(8));
        assert_eq!(found.check("INST_RETIRED", 0x08), Ok(()));
        let refused = found.check("L2D_CACHE_REFILL", 0x17).unwrap_err().to_string();
        assert!(
            refused.contains("L2D_CACHE_REFILL") && refused.contains("armv8_pmuv3"),
            "{refused}"
        );
        assert!(found.check("STALL_BACKEND_MEM", 0x4005).is_err());
        assert_eq!(found.check("LD_SPEC", 0x70), Ok(()), "vendor events are not in any list");
    }

    #[test]
    fn other_lists_say_nothing_of_what_is_not_there() {
        let sources = tempfile::tempdir().unwrap();
        source(sources.path(), "armv8_pmuv3_0", "cpus");
        source(sources.path(), "cpu", "cpus");
        let found = CoreSource::among(sources.path()).expect("a source");
        assert_eq!(found.check("L2D_CACHE_REFILL", 0x17), Ok(()));
    }
}
