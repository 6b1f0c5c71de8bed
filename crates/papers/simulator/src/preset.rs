//! A modelled machine as data: its parts, and the origin of each figure.

mod branches;
mod changes;
mod error;
mod figures;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cache::Replacement;
use crate::geometry::{Geometry, GeometryError, Sizes, TREE_WAYS_MAX};

pub(crate) use branches::OWN_HISTORY_MAX;
pub use branches::{Branches, Histories};
pub use error::PresetError;
pub use figures::Figure;

/// How the threads of a core share one of its structures (S0.19).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// One, shared by all threads.
    #[default]
    Shared,
    /// One per thread, of full size.
    Duplicated,
    /// An equal part each; all of it where a core runs one thread.
    Split,
}

impl Sharing {
    /// Instances of the structure in a core with `threads` threads.
    #[must_use]
    pub const fn copies(self, threads: u32) -> u32 {
        match self {
            Sharing::Shared => 1,
            Sharing::Duplicated | Sharing::Split => threads,
        }
    }

    /// Into how many shares the structure is divided.
    #[must_use]
    pub const fn parts(self, threads: u32) -> u32 {
        match self {
            Sharing::Split => threads,
            Sharing::Shared | Sharing::Duplicated => 1,
        }
    }
}

/// The contents of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Data only.
    Data,
    /// Instructions only.
    Instructions,
    /// Both.
    Both,
}

/// Coherence protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A line that no other cache has may be written without a bus request.
    #[default]
    Mesi,
    /// Every first write of a line takes a bus request (S2.18).
    Msi,
}

/// A modelled machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// Clock rate in GHz.
    pub ghz: f64,
    /// Cores.
    pub cores: u32,
    /// Logical CPUs per core.
    pub threads: u32,
    /// Bytes per page.
    pub page: u32,
    /// Parameters of a core.
    pub core: Core,
    /// Caches, nearest to the core first.
    pub cache: Vec<CacheLevel>,
    /// TLBs.
    pub tlb: Tlbs,
    /// Memory and the bus.
    pub memory: Memory,
    /// Branch prediction; not modelled where absent.
    #[serde(default)]
    pub branches: Option<Branches>,
    /// Memory-order machine clears.
    pub clears: Clears,
    /// A stream prefetcher; none where absent.
    #[serde(default)]
    pub prefetcher: Option<Prefetcher>,
    /// Origins of figures, by path or prefix of it.
    pub origin: BTreeMap<String, String>,
    /// Other readings of unclear figures, by name: the figures that each changes.
    #[serde(default)]
    pub variant: BTreeMap<String, toml::Table>,
}

/// Parameters of a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Core {
    /// Micro-operations that begin per cycle.
    pub width: u32,
    /// Micro-operations in flight at most; 0 waits for every access, which is a machine without
    /// overlap.
    pub window: u32,
    /// Entries of the load buffer, which a load has until it retires; 0 where only the window
    /// limits them.
    #[serde(default)]
    pub loads: u32,
    /// Entries of the store buffer.
    pub stores: u32,
    /// Outstanding line fills; of loads only, where stores are combined.
    pub outstanding: u32,
    /// Write-combining buffers: lines that stores outside of the nearest cache are gathered in, so
    /// that they leave the store buffer before their line is there; 0 where they wait for it, and
    /// for a place among `outstanding`.
    #[serde(default)]
    pub combining: u32,
    /// Page walks at a time, of data and instructions, for all threads; 0 for no limit.
    #[serde(default)]
    pub walkers: u32,
    /// Sharing of the window among threads.
    #[serde(default)]
    pub window_sharing: Sharing,
    /// Sharing of the load buffer.
    #[serde(default)]
    pub loads_sharing: Sharing,
    /// Sharing of the store buffer.
    #[serde(default)]
    pub stores_sharing: Sharing,
    /// Sharing of the fill buffers.
    #[serde(default)]
    pub outstanding_sharing: Sharing,
    /// Sharing of the write-combining buffers.
    #[serde(default)]
    pub combining_sharing: Sharing,
    /// Whether a prefetch instruction is dropped on a TLB miss (S4.5).
    #[serde(default)]
    pub drops_hints: bool,
    /// Whether an idle thread halts and leaves its share of a split window and store buffer to its
    /// siblings.
    #[serde(default = "yes")]
    pub halts: bool,
    /// Micro-operations per x86 instruction, where counts are of instructions.
    pub uops_per_instruction: f64,
    /// Bytes that one instruction of a copy moves.
    #[serde(default = "vector")]
    pub word: u32,
    /// Cycles of a PAUSE.
    #[serde(default)]
    pub pause: u32,
    /// Whether a PAUSE begins when all loads before it are done.
    #[serde(default)]
    pub pause_drains: bool,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheLevel {
    /// Name: L1D, L1I, L2.
    pub name: String,
    /// Its contents.
    pub holds: Contents,
    /// Total bytes of one instance.
    pub bytes: u64,
    /// Lines per set; 0 for fully associative.
    pub ways: u32,
    /// Bytes per line.
    pub line: u32,
    /// Micro-operations of a line, however long their code is, in a cache of decoded
    /// instructions; 0 where a line holds bytes. `bytes` and `line` then say how many lines it has.
    #[serde(default)]
    pub uops: u32,
    /// Cycles from a load to its use.
    pub latency: f64,
    /// Cores that share it.
    #[serde(default = "one")]
    pub cores: u32,
    /// Sharing among the threads of a core.
    #[serde(default)]
    pub threads: Sharing,
    /// Replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
    /// Whether it holds all lines of the nearer caches.
    #[serde(default)]
    pub inclusive: bool,
    /// Whether stores also write to the next cache, at once, and those that miss this one write
    /// there only.
    #[serde(default)]
    pub write_through: bool,
    /// Whether a thread finds only lines that it brought itself, as trace lines are tagged; of
    /// instruction caches.
    #[serde(default)]
    pub tagged: bool,
}

/// Bytes of a register of SSE2, which every x86-64 has.
fn vector() -> u32 {
    16
}

fn one() -> u32 {
    1
}

/// TLBs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tlbs {
    /// For data.
    pub data: TlbSizes,
    /// For instructions; not modelled where absent.
    #[serde(default)]
    pub instructions: Option<TlbSizes>,
    /// Whether instructions are translated only where they miss the nearest cache, which then
    /// needs no address of memory.
    #[serde(default)]
    pub instructions_on_misses: bool,
    /// Whether they are flushed when another address space runs.
    #[serde(default = "yes")]
    pub flushed: bool,
}

fn yes() -> bool {
    true
}

/// One TLB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlbSizes {
    /// Entries, one page each.
    pub entries: u32,
    /// Entries per set; 0 for fully associative.
    pub ways: u32,
    /// Cycles of a miss.
    pub cost: f64,
    /// Sharing among threads.
    #[serde(default)]
    pub threads: Sharing,
}

/// Memory and the bus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Memory {
    /// Cycles from a load to its use on an idle bus.
    pub latency: f64,
    /// Cycles for which a line occupies the bus.
    pub transfer: f64,
    /// Cycles for which a message without a line occupies it.
    pub message: f64,
    /// Outstanding bus requests of all cores; 0 for no limit.
    #[serde(default)]
    pub outstanding: u32,
    /// Cycles from a load to its use of a line modified in another cache.
    pub dirty_latency: f64,
    /// Coherence protocol.
    #[serde(default)]
    pub protocol: Protocol,
}

/// Memory-order machine clears (S4.15): a store meets a load of a sibling that has not retired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Clears {
    /// Cycles per clear, fixed (S4.31).
    pub cost: f64,
}

/// A prefetcher of ascending lines, into the cache farthest from the core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prefetcher {
    /// Streams followed at a time.
    pub streams: u32,
    /// Lines ahead.
    pub ahead: u32,
}

/// The allowed values of a figure.
struct AllowedRange {
    bounds: (f64, f64),
    /// The same in words.
    range: &'static str,
}

/// Caches: three on the way of data, and three of instructions.
const CACHES: (f64, f64) = (0.0, 6.0);

/// Entries of a TLB or of a target buffer, of which each thread may have its own.
const ENTRIES: (f64, f64) = (1.0, 65_536.0);
const ENTRIES_RANGE: &str = "1 to 65536";

const fn allowed(bounds: (f64, f64), range: &'static str) -> AllowedRange {
    AllowedRange { bounds, range }
}

impl Preset {
    /// Logical CPUs.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.cores * self.threads
    }

    /// Bytes in which a model keeps which lines its caches hold, and the most for entries of its
    /// TLBs and predictors.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        /// A line's number and state, and what an engine notes of it.
        const LINE_BYTES: u64 = 16;
        /// The same of an entry.
        const ENTRY_BYTES: u64 = 32;
        let of = |level: &CacheLevel| {
            let groups = u64::from(self.cores.div_ceil(level.cores.max(1)));
            let copies = u64::from(level.threads.copies(self.threads));
            let lines = level.bytes / u64::from(level.line.max(1));
            lines.saturating_mul(LINE_BYTES).saturating_mul(groups * copies)
        };
        let caches = self.cache.iter().map(of).fold(0, u64::saturating_add);
        let tlbs = [Some(&self.tlb.data), self.tlb.instructions.as_ref()];
        let tlbs = tlbs.into_iter().flatten().map(|tlb| u64::from(tlb.entries)).sum::<u64>();
        let of_branches = |branches: &Branches| {
            u64::from(branches.targets) + (1 << branches.history.min(u64::BITS - 1))
        };
        let entries = tlbs.saturating_add(self.branches.as_ref().map_or(0, of_branches));
        let entries = entries.saturating_mul(ENTRY_BYTES).saturating_mul(self.cpus().into());
        caches.saturating_add(entries)
    }

    /// The same machine with one thread per core, which then has all of each split structure (A4).
    #[must_use]
    pub fn without_siblings(mut self) -> Self {
        self.threads = 1;
        self
    }

    /// The geometry of a thread's or the shared instance of a cache.
    ///
    /// # Errors
    /// If it is impossible.
    pub fn geometry(&self, level: &CacheLevel) -> Result<Geometry, PresetError> {
        let CacheLevel { bytes, ways, line, .. } = *level;
        let impossible = |why: GeometryError| PresetError::Impossible {
            name: self.name.clone(),
            what: level.name.clone(),
            why,
        };
        let whole = Geometry::of(Sizes { bytes, ways, line }).map_err(impossible)?;
        let geometry = whole.split(level.threads.parts(self.threads));
        let has_tree = level.replacement == Replacement::TreePlru;
        if has_tree && geometry.ways() > TREE_WAYS_MAX {
            return Err(impossible(GeometryError::Tree(geometry.ways())));
        }
        Ok(geometry)
    }

    /// Checks that all figures are in range.
    ///
    /// # Errors
    /// For the first that is not.
    pub fn check(&self) -> Result<(), PresetError> {
        let core = &self.core;
        let figures = [
            ("ghz", self.ghz, (0.001, 1000.0), "0.001 to 1000"),
            ("cores", self.cores.into(), (1.0, 64.0), "1 to 64"),
            ("threads", self.threads.into(), (1.0, 8.0), "1 to 8"),
            ("page", self.page.into(), (512.0, 1e9), "512 to 1000000000"),
            ("core.width", core.width.into(), (1.0, 6.0), "1 to 6"),
            ("core.window", core.window.into(), (0.0, 4096.0), "0 to 4096"),
            ("core.loads", core.loads.into(), (0.0, 4096.0), "0 to 4096"),
            ("core.stores", core.stores.into(), (0.0, 4096.0), "0 to 4096"),
            ("core.outstanding", core.outstanding.into(), (1.0, 256.0), "1 to 256"),
            ("core.combining", core.combining.into(), (0.0, 256.0), "0 to 256"),
            ("core.walkers", core.walkers.into(), (0.0, 64.0), "0 to 64"),
            ("core.uops-per-instruction", core.uops_per_instruction, (0.1, 10.0), "0.1 to 10"),
            ("core.word", core.word.into(), (1.0, 64.0), "1 to 64"),
            ("core.pause", core.pause.into(), (0.0, 1e5), "0 to 100000"),
            ("memory.latency", self.memory.latency, (1.0, 1e5), "1 to 100000"),
            ("memory.outstanding", self.memory.outstanding.into(), (0.0, 4096.0), "0 to 4096"),
            ("memory.dirty-latency", self.memory.dirty_latency, (1.0, 1e5), "1 to 100000"),
            ("memory.transfer", self.memory.transfer, (0.0, 1e5), "0 to 100000"),
            ("memory.message", self.memory.message, (0.0, 1e5), "0 to 100000"),
            ("clears.cost", self.clears.cost, (0.0, 1e5), "0 to 100000"),
            ("the number of caches", self.cache.len() as f64, CACHES, "up to 6"),
        ];
        for (what, value, bounds, range) in figures {
            self.within(what, value, allowed(bounds, range))?;
        }
        self.check_parts()?;
        let mut before = 0.0;
        for level in &self.cache {
            let what = format!("the latency of {}", level.name);
            let range = "no less than the cache before it";
            self.within(&what, level.latency, allowed((0.0, 1e5), range))?;
            if level.holds != Contents::Instructions {
                self.within(&what, level.latency, allowed((before, 1e5), range))?;
                before = level.latency;
            }
        }
        let range = "no less than the last cache";
        self.within("memory.latency", self.memory.latency, allowed((before, 1e5), range))
    }

    /// Checks the figures of optional parts.
    fn check_parts(&self) -> Result<(), PresetError> {
        let cycles = (0.0, 1e5);
        let data = Some(("tlb.data", &self.tlb.data));
        let code = self.tlb.instructions.as_ref().map(|tlb| ("tlb.instructions", tlb));
        for (name, tlb) in data.into_iter().chain(code) {
            self.within(&format!("{name}.cost"), tlb.cost, allowed(cycles, "0 to 100000"))?;
            let entries = allowed(ENTRIES, ENTRIES_RANGE);
            self.within(&format!("{name}.entries"), tlb.entries.into(), entries)?;
        }
        if let Some(branches) = &self.branches {
            for (what, value, allowed) in branches.figures() {
                self.within(what, value, allowed)?;
            }
        }
        if let Some(prefetcher) = &self.prefetcher {
            let streams = prefetcher.streams.into();
            self.within("prefetcher.streams", streams, allowed((1.0, 64.0), "1 to 64"))?;
            let ahead = prefetcher.ahead.into();
            self.within("prefetcher.ahead", ahead, allowed((0.0, 64.0), "0 to 64"))?;
        }
        let of_data = self.cache.iter().filter(|level| level.holds != Contents::Instructions);
        let nearest: Vec<&str> = of_data.map(|level| level.name.as_str()).collect();
        for level in &self.cache {
            let what = format!("cache.{}.cores", level.name);
            self.within(&what, level.cores.into(), allowed((1.0, 64.0), "1 to 64"))?;
            let tagged = f64::from(u8::from(level.tagged));
            let is_code = level.holds == Contents::Instructions;
            let most = if is_code { 1.0 } else { 0.0 };
            let uops = format!("cache.{}.uops", level.name);
            let (most_uops, range) = match is_code {
                true => (64.0, "0 to 64"),
                false => (0.0, "0 where the cache holds data"),
            };
            self.within(&uops, level.uops.into(), allowed((0.0, most_uops), range))?;
            let through = format!("cache.{}.write-through", level.name);
            let is_first = nearest.len() > 1 && nearest[0] == level.name;
            let most_through = if is_first && level.holds == Contents::Data { 1.0 } else { 0.0 };
            let range = "true for the nearest cache of data, with another behind it";
            let value = f64::from(u8::from(level.write_through));
            self.within(&through, value, allowed((0.0, most_through), range))?;
            let what_tagged = format!("cache.{}.tagged", level.name);
            let range = "true where the cache holds instructions only";
            self.within(&what_tagged, tagged, allowed((0.0, most), range))?;
            let same = |other: &&CacheLevel| other.name == level.name;
            let what = format!("the number of caches called {}", level.name);
            let count = self.cache.iter().filter(same).count() as f64;
            self.within(
                &what,
                count,
                allowed((1.0, 1.0), "one, so that figures can be named by it"),
            )?;
        }
        Ok(())
    }

    fn within(&self, what: &str, value: f64, allowed: AllowedRange) -> Result<(), PresetError> {
        let AllowedRange { bounds: (least, most), range } = allowed;
        match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(PresetError::Range {
                name: self.name.clone(),
                what: what.to_owned(),
                value,
                range,
            }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
