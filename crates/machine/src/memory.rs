//! How much memory there is, how much of it this process may use, and on which pages.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::sysroot::{Sysroot, field};

/// Memory of the machine and what this process may have of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All memory of the machine.
    pub total_bytes: Option<u64>,
    /// Memory that the system could give now without swapping (`MemAvailable`).
    pub available_bytes: Option<u64>,
    /// The tightest memory limit of the control groups this process is in.
    pub cgroup_limit_bytes: Option<u64>,
    /// Memory that may be used now: the smaller of the available and the control groups' rest.
    pub allowed_bytes: Option<u64>,
}

impl Memory {
    /// Of this machine, now.
    #[must_use]
    pub fn here() -> Self {
        let root = Sysroot::live();
        Self::read(&root, &cgroup::limits(&root))
    }

    pub(crate) fn read(root: &Sysroot, limits: &cgroup::Limits) -> Self {
        let text = root.text("proc/meminfo").unwrap_or_default();
        let bytes = |key| Some(field(&text, key)?.split(' ').next()?.parse::<u64>().ok()? << 10);
        // Kernels before 3.14 and some containers do not estimate; free memory is a safe guess.
        let available = bytes("MemAvailable").or_else(|| bytes("MemFree"));
        Self {
            total_bytes: bytes("MemTotal"),
            available_bytes: available,
            cgroup_limit_bytes: limits.memory_bytes,
            allowed_bytes: available.into_iter().chain(limits.memory_left_bytes).min(),
        }
    }
}

/// Whether the files of a directory take memory (tmpfs(5), ramfs), not room on a disk.
#[must_use]
pub fn holds_files(directory: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    // Narrower, and signed, on some processors.
    #[expect(clippy::cast_sign_loss, reason = "a number of 32 bits that stands for itself")]
    let kind = |about: rustix::fs::StatFs| about.f_type as u64;
    let kind = rustix::fs::statfs(directory).map(kind);
    kind.is_ok_and(|kind| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind))
}

/// A directory for temporary files whose files take no memory: this one, or `/var/tmp`; none if
/// both do.
#[must_use]
pub fn directory_on_disk(usual: PathBuf) -> Option<PathBuf> {
    let tried = [usual, PathBuf::from("/var/tmp")];
    tried.into_iter().find(|path| !holds_files(path) && path.is_dir())
}

/// Large pages: transparent ones (asked for by advice or given always) and reserved ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    /// When transparent huge pages are given.
    pub transparent: Transparent,
    /// Whether the system compacts memory at a page fault to get one (`defrag`).
    pub defragmentation: Option<String>,
    /// Size of a transparent huge page.
    pub transparent_bytes: Option<u64>,
    /// Pools of reserved huge pages (hugetlbfs); Workahead does not use them.
    pub reserved: Vec<HugePagePool>,
}

/// When transparent huge pages are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transparent {
    /// To everyone.
    Always,
    /// To those who ask by `madvise`.
    Madvise,
    /// To nobody.
    Never,
    /// The system does not say.
    Unknown,
}

/// A pool of reserved huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePagePool {
    /// Size of one page.
    pub page_bytes: u64,
    /// Pages in the pool.
    pub pages: u64,
}

impl HugePages {
    pub(crate) fn read(root: &Sysroot) -> Self {
        const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";
        let chosen = |file| {
            let text = root.text(&format!("{TRANSPARENT}/{file}"))?;
            // `always [madvise] never`
            Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
        };
        let transparent = match chosen("enabled").as_deref() {
            Some("always") => Transparent::Always,
            Some("madvise") => Transparent::Madvise,
            Some("never") => Transparent::Never,
            _ => Transparent::Unknown,
        };
        Self {
            transparent,
            defragmentation: chosen("defrag"),
            transparent_bytes: root.value(&format!("{TRANSPARENT}/hpage_pmd_size")),
            reserved: reserved(root),
        }
    }
}

fn reserved(root: &Sysroot) -> Vec<HugePagePool> {
    const POOLS: &str = "sys/kernel/mm/hugepages";
    let pool = |name: &String| {
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let pages = root.value(&format!("{POOLS}/{name}/nr_hugepages"))?;
        Some(HugePagePool { page_bytes: kib << 10, pages })
    };
    let mut pools: Vec<HugePagePool> = root.names(POOLS).iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}
