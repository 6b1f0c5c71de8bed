//! The machine, as far as a study's record and verdicts need it; the flag that Ctrl-C raises.

use anyhow::Context;
use serde_json::Value;
use workahead_study::engine::Stop;
use workahead_study::record::Host;

use crate::interrupt;

/// What this machine is.
pub(crate) fn host() -> anyhow::Result<Host> {
    let cpus = workahead_machine::pin::affinity()?;
    let text = std::fs::read_to_string("/proc/cpuinfo").context("can't read /proc/cpuinfo")?;
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, name)| name);
    Ok(Host {
        name: format!("{model}, {} CPUs allowed", cpus.len()),
        tier: "D".to_owned(),
        tier_reason: "counters are not read yet".to_owned(),
        ..Host::default()
    })
}

/// Memory that may be used now.
pub(crate) fn available_bytes() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").context("can't read /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.context("/proc/meminfo has no MemAvailable")? << 10)
}

/// The machine's measured limits.
pub(crate) fn limits() -> anyhow::Result<Option<Value>> {
    Ok(None)
}

/// The flag that Ctrl-C raises.
pub(crate) fn stop() -> anyhow::Result<Stop> {
    interrupt::listen().map(Stop::from)
}
