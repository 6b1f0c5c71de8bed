//! `workahead machine`: a description of this computer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use workahead_counters::evidence::Evidence;
use workahead_machine::caches::CacheKind;
use workahead_machine::evidence_tier::CounterState;
use workahead_machine::limits::siblings::{SiblingPair, Source};
use workahead_machine::limits::{Siblings, Store};
use workahead_machine::memory::Transparent;
use workahead_machine::tlb::TlbSource;
use workahead_machine::topology::{CoreKind, Smt};
use workahead_machine::virtualisation::VirtualKind;
use workahead_machine::{Machine, Sysroot};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead machine --json")]
pub(crate) struct Args {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Describe the machine whose proc/ and sys/ are in this directory
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = match &args.root {
        Some(directory) => Sysroot::at(directory)?,
        None => Sysroot::live(),
    };
    let machine = Machine::read(&root);
    output::show(args.json, &machine, || {
        // Another root is another machine, without measurements.
        let is_this = args.root.is_none();
        let limits = is_this.then(|| Store::of_user().load(&machine)).flatten();
        let probed = limits.as_ref().map(|limits| &limits.siblings);
        let evidence = match is_this {
            true => Evidence::by_trial(&machine),
            false => Evidence::published(&machine),
        };
        description(&machine, probed, &evidence)
    })?;
    Ok(ExitCode::SUCCESS)
}

const UNKNOWN: &str = "unknown";

/// Lines of a label and its values.
fn description(machine: &Machine, probed: Option<&Siblings>, evidence: &Evidence) -> String {
    let lines = [
        ("Processor", vec![processor(machine)]),
        ("Machine", vec![reality(machine)]),
        ("CPUs", cpus(machine)),
        ("Layout", vec![layout(machine)]),
        ("SMT", smt(machine, probed)),
        ("Caches", caches(machine)),
        ("TLB (data)", tlb(machine)),
        ("Memory", vec![memory(machine)]),
        ("Huge pages", vec![huge_pages(machine)]),
        ("Counters", counters(machine, evidence)),
        ("Evidence tier", vec![format!("{:?}", evidence.tier)]),
    ];
    let mut text = String::new();
    for (label, values) in lines {
        for (i, value) in values.iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            text.push_str(&format!("{label:<15}{value}\n"));
        }
    }
    text
}

fn processor(machine: &Machine) -> String {
    let name = machine.processor.as_deref().unwrap_or(UNKNOWN);
    let kernel = machine.kernel.as_deref().unwrap_or(UNKNOWN);
    format!("{name} ({}), kernel {kernel}", machine.architecture)
}

fn reality(machine: &Machine) -> String {
    match (machine.virtualisation.kind, &machine.virtualisation.hypervisor) {
        (VirtualKind::Virtual, Some(name)) => format!("virtual ({name})"),
        (VirtualKind::Virtual, None) => "virtual".to_owned(),
        (VirtualKind::BareMetal, _) => "real hardware".to_owned(),
        (VirtualKind::Unknown, _) => "unknown whether virtual".to_owned(),
    }
}

fn cpus(machine: &Machine) -> Vec<String> {
    let cpus = &machine.cpus;
    let mut lines = vec![format!("{} online ({})", cpus.online.len(), cpus.online)];
    if cpus.present != cpus.online {
        lines.push(format!("{} present ({})", cpus.present.len(), cpus.present));
    }
    if cpus.allowed == cpus.online {
        lines[0].push_str(", all allowed");
    } else {
        lines.push(format!("{} allowed ({})", cpus.allowed.len(), cpus.allowed));
    }
    if let Some(quota) = cpus.quota {
        lines.push(format!("a quota of {quota} CPU seconds per second: figures will be low"));
    }
    lines
}

fn layout(machine: &Machine) -> String {
    let count = |n: usize, one: &str, many: &str| match n {
        0 => format!("{many} {UNKNOWN}"),
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let cores = if machine.smt == Smt::Unknown { 0 } else { machine.cores.len() };
    let mut text = [
        count(machine.packages.len(), "package", "packages"),
        count(machine.nodes.len(), "NUMA node", "NUMA nodes"),
        count(cores, "core", "cores"),
    ]
    .join(", ");
    let of_kind = |kind| machine.cores.iter().filter(|core| core.kind == kind).count();
    let (strong, small) = (of_kind(CoreKind::Performance), of_kind(CoreKind::Efficiency));
    if small > 0 {
        text.push_str(&format!(" ({strong} performance, {small} efficiency)"));
    }
    text
}

/// SMT as reported by the system; below it as probed, if it was.
fn smt(machine: &Machine, probed: Option<&Siblings>) -> Vec<String> {
    let seen = SiblingPair::of(machine, probed);
    let by_probe = match (seen.source, seen.cpus) {
        (Source::System, _) => return vec![smt_by_system(machine)],
        (Source::Probe, Some((one, other))) => format!("CPUs {one} and {other} share a core"),
        (Source::Probe, None) => "no two CPUs share a core".to_owned(),
    };
    let by_system = match machine.smt {
        Smt::None => "none shown".to_owned(),
        Smt::Unknown => UNKNOWN.to_owned(),
        Smt::On | Smt::Off => smt_by_system(machine),
    };
    vec![
        format!("{by_system} (reported by the system)"),
        format!("{by_probe} (measured by `workahead limits`: preferred)"),
    ]
}

fn smt_by_system(machine: &Machine) -> String {
    match machine.smt {
        Smt::On => {
            let siblings = machine.cores.iter().filter(|core| core.cpus.len() > 1);
            let lists: Vec<String> = siblings.map(|core| core.cpus.to_string()).collect();
            format!("on; siblings {}", lists.join(" "))
        }
        Smt::Off => "off: the siblings are offline".to_owned(),
        Smt::None if machine.virtualisation.kind == VirtualKind::Virtual => {
            "none shown; the host may hide siblings (`workahead limits` probes for them)".to_owned()
        }
        Smt::None => "none".to_owned(),
        Smt::Unknown => format!("{UNKNOWN} (`workahead limits` probes for siblings)"),
    }
}

/// A line for each kind of cache, with their number.
fn caches(machine: &Machine) -> Vec<String> {
    let mut sorts: BTreeMap<_, usize> = BTreeMap::new();
    for cache in &machine.caches {
        let sort = (cache.level, cache.kind, cache.bytes, cache.cpus.len());
        *sorts.entry(sort).or_default() += 1;
    }
    if sorts.is_empty() {
        return vec![UNKNOWN.to_owned()];
    }
    let line = |((level, kind, bytes, users), count): ((u32, CacheKind, u64, usize), usize)| {
        let kind = match kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let users = if users == 1 { "per CPU".to_owned() } else { format!("per {users} CPUs") };
        format!("{:<4}{:>9} {users}, {count} of them", format!("L{level}{kind}"), size(bytes))
    };
    sorts.into_iter().map(line).collect()
}

fn tlb(machine: &Machine) -> Vec<String> {
    if machine.tlb.source == TlbSource::Unknown {
        return vec![UNKNOWN.to_owned()];
    }
    let line = |level: &workahead_machine::tlb::TlbLevel| {
        let reach = size(level.entries * level.page_bytes);
        let page = size(level.page_bytes);
        format!("L{}  {:>5} × {page} covers {reach}", level.level, level.entries)
    };
    machine.tlb.levels.iter().map(line).collect()
}

fn memory(machine: &Machine) -> String {
    let known = |bytes: Option<u64>| bytes.map_or(UNKNOWN.to_owned(), size);
    let memory = &machine.memory;
    let mut text = format!(
        "{}, {} available, {} allowed",
        known(memory.total_bytes),
        known(memory.available_bytes),
        known(memory.allowed_bytes)
    );
    if let Some(limit) = memory.cgroup_limit_bytes {
        text.push_str(&format!(" (control group limit {})", size(limit)));
    }
    text
}

fn huge_pages(machine: &Machine) -> String {
    let pages = &machine.huge_pages;
    let of_size = pages.transparent_bytes.map_or(String::new(), |bytes| size(bytes) + " ");
    match pages.transparent {
        Transparent::Always => format!("{of_size}transparent, always"),
        Transparent::Madvise => format!("{of_size}transparent, on advice"),
        Transparent::Never => {
            "never: write madvise to /sys/kernel/mm/transparent_hugepage/enabled".to_owned()
        }
        Transparent::Unknown => UNKNOWN.to_owned(),
    }
}

fn counters(machine: &Machine, evidence: &Evidence) -> Vec<String> {
    let counters = &machine.counters;
    let mut lines = match counters.state {
        CounterState::Present => {
            vec![format!("{}; {}", counters.sources.join(", "), evidence.reason)]
        }
        _ => vec![format!("none: {}", counters.reason)],
    };
    if counters.watchdog {
        let remedy = "write 0 to /proc/sys/kernel/nmi_watchdog to count with all of them";
        lines.push(format!("the NMI watchdog holds one: {remedy}"));
    }
    lines
}

/// `512 KiB`, `1.25 MiB`, `23.5 GiB`: three digits, without zeros at the end.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 10.0 { 2 } else { 1 };
    let text = format!("{value:.digits$}");
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(512 << 10), "512 KiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
        assert_eq!(size(1280 << 10), "1.25 MiB");
        assert_eq!(size(500 << 30), "500 GiB");
        assert_eq!(size(0), "0 B");
    }
}
