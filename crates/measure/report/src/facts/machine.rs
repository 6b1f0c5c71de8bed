//! The machine in a dozen lines.

use std::collections::BTreeMap;

use workahead_machine::Machine;
use workahead_machine::caches::CacheKind;
use workahead_machine::memory::Transparent;
use workahead_machine::topology::Smt;
use workahead_machine::virtualisation::VirtualKind;

use super::Fact;
use crate::{number, words};

pub(super) fn facts(machine: &Machine) -> Vec<Fact> {
    let unknown = || "unknown".to_owned();
    let mut facts = vec![
        Fact::new("processor", machine.processor.clone().unwrap_or_else(unknown)),
        Fact::new("logical CPUs", cpus(machine)),
        Fact::new("cores", cores(machine)),
        Fact::new("caches, as the system reports", caches(machine)),
        Fact::new("memory", memory(machine)),
        Fact::new("huge pages", huge_pages(machine)),
    ];
    if !machine.tlb.levels.is_empty() {
        facts.push(Fact::new("translation buffers", tlb(machine)));
    }
    facts.push(Fact::new("virtual", virtualisation(machine)));
    let kernel = machine.kernel.clone().unwrap_or_else(unknown);
    facts.push(Fact::new("kernel", format!("{kernel}, {}", machine.architecture)));
    facts
}

fn cpus(machine: &Machine) -> String {
    let cpus = &machine.cpus;
    let mut text = format!("{} allowed ({})", cpus.allowed.len(), cpus.allowed);
    if cpus.online != cpus.allowed {
        text.push_str(&format!(" of {} online", cpus.online.len()));
    }
    if let Some(quota) = cpus.quota {
        text.push_str(&format!(", limited to {} CPU seconds a second", number::plain(quota)));
    }
    text
}

fn cores(machine: &Machine) -> String {
    let siblings = match machine.smt {
        Smt::On => "some with two or more logical CPUs (siblings)",
        Smt::Off => "siblings switched off",
        Smt::None => "no siblings visible",
        Smt::Unknown => "siblings unknown",
    };
    let packages = words::counted(machine.packages.len().max(1), "package");
    let nodes = words::counted(machine.nodes.len().max(1), "NUMA node");
    match machine.cores.len() {
        0 => siblings.to_owned(),
        cores => format!("{}, {siblings}; {packages}, {nodes}", words::counted(cores, "core")),
    }
}

/// Equal caches are listed once, with their number.
fn caches(machine: &Machine) -> String {
    let mut kinds: BTreeMap<(u32, CacheKind, u64), usize> = BTreeMap::new();
    for cache in &machine.caches {
        *kinds.entry((cache.level, cache.kind, cache.bytes)).or_default() += 1;
    }
    let one = |((level, kind, bytes), count): (&(u32, CacheKind, u64), &usize)| {
        let kind = match kind {
            CacheKind::Data => " data",
            CacheKind::Instruction => " instructions",
            CacheKind::Unified => "",
        };
        let times = if *count > 1 { format!("{count} × ") } else { String::new() };
        format!("L{level}{kind} {times}{}", number::bytes(*bytes))
    };
    match kinds.is_empty() {
        true => "unknown".to_owned(),
        false => kinds.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn memory(machine: &Machine) -> String {
    let total = machine.memory.total_bytes.map_or_else(|| "unknown".to_owned(), number::bytes);
    match machine.memory.cgroup_limit_bytes {
        Some(limit) => format!("{total}, limited to {} by control groups", number::bytes(limit)),
        None => total,
    }
}

fn huge_pages(machine: &Machine) -> String {
    let pages = &machine.huge_pages;
    let given = match pages.transparent {
        Transparent::Always => "transparent, always",
        Transparent::Madvise => "transparent, on request",
        Transparent::Never => "switched off",
        Transparent::Unknown => "unknown",
    };
    match pages.transparent_bytes {
        Some(bytes) if pages.transparent != Transparent::Never => {
            format!("{given}, {} each", number::bytes(bytes))
        }
        _ => given.to_owned(),
    }
}

fn tlb(machine: &Machine) -> String {
    let one = |level: &workahead_machine::tlb::TlbLevel| {
        format!("L{} {} × {}", level.level, level.entries, number::bytes(level.page_bytes))
    };
    machine.tlb.levels.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn virtualisation(machine: &Machine) -> String {
    let by = machine.virtualisation.hypervisor.as_deref();
    match (machine.virtualisation.kind, by) {
        (VirtualKind::Virtual, Some(by)) => format!("yes, by {by}"),
        (VirtualKind::Virtual, None) => "yes".to_owned(),
        (VirtualKind::BareMetal, _) => "no".to_owned(),
        (VirtualKind::Unknown, _) => "unknown".to_owned(),
    }
}
