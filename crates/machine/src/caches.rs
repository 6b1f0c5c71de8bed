//! Caches as the system describes them (`cache/index*` below each CPU).
//!
//! In a virtual machine these are what the host chose to show; the sizes to rely on are the
//! measured ones of [`limits`](crate::limits).

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::sysroot::Sysroot;

/// The contents of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Its contents.
    pub kind: CacheKind,
    /// Its size.
    pub bytes: u64,
    /// Size of a line.
    pub line_bytes: Option<u64>,
    /// Lines that may hold the same address; `None` also when fully associative.
    pub ways: Option<u64>,
    /// The logical CPUs that use it.
    pub cpus: CpuSet,
}

impl Cache {
    /// Whether loads of data go through it.
    #[must_use]
    pub fn holds_data(&self) -> bool {
        self.kind != CacheKind::Instruction
    }
}

/// All caches of the online CPUs, each once: by level, kind, then first CPU.
pub(crate) fn read(root: &Sysroot, online: &CpuSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for cpu in online.iter() {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        for index in root.numbered(&directory, "index") {
            let Some(cache) = one(root, &format!("{directory}/index{index}"), cpu) else {
                continue;
            };
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    caches
}

fn one(root: &Sysroot, directory: &str, cpu: usize) -> Option<Cache> {
    let positive = |file| root.value(&format!("{directory}/{file}")).filter(|&n: &u64| n > 0);
    let kind = match root.text(&format!("{directory}/type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let shared = root.cpus(&format!("{directory}/shared_cpu_list"));
    Some(Cache {
        level: root.value(&format!("{directory}/level"))?,
        kind,
        bytes: size(&root.text(&format!("{directory}/size"))?)?,
        line_bytes: positive("coherency_line_size"),
        ways: positive("ways_of_associativity"),
        cpus: shared.unwrap_or_else(|| CpuSet::from_iter([cpu])),
    })
}

/// `512K`, `32768K`, `8M`; some virtual machines write `0K`, which says nothing.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('K') {
        Some(digits) => (digits, 10),
        None => text.strip_suffix('M').map_or((text, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok().filter(|&n| n > 0).and_then(|n| n.checked_mul(1 << shift))
}
