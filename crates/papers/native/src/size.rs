//! Size of an operator's data, in rows or relative to this machine's caches.

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::limits::Limits;
use workahead_machine::machine::Machine;
use workahead_machine::pages::Pages;
use workahead_study::engine::EngineError;

/// Most rows of a table: positions have 32 bits.
const ROWS_MAX: usize = u32::MAX as usize - 1;

/// Fewest probes of a run, so that it is long compared with starting a thread.
const PROBES_MIN: usize = 1 << 20;

/// The cache sizes to which named sizes refer.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Size of the second-level cache.
    pub l2_bytes: usize,
    /// Size of the last-level cache.
    pub llc_bytes: usize,
}

impl Footprint {
    /// Measured sizes, else those reported by the system, else usual ones. Measured sizes are
    /// better: a virtual machine reports the size of a cache that others use too.
    #[must_use]
    pub fn of(machine: &Machine, limits: Option<&Limits>) -> Self {
        let said = |level| machine.cache_bytes(level).map(|bytes| bytes as usize);
        let l2_bytes = limits.and_then(Limits::l2_bytes).or_else(|| said(2));
        let llc_bytes = limits.and_then(Limits::useful_llc_bytes).or_else(|| said(3));
        Self { l2_bytes: l2_bytes.unwrap_or(1 << 20), llc_bytes: llc_bytes.unwrap_or(32 << 20) }
    }

    /// Bytes of a named size. Out of cache is eight times the last-level cache, limited so that
    /// memory holds a few of them.
    fn bytes(&self, size: Size) -> usize {
        const OUT_OF_CACHE_MAX: usize = 1 << 30;
        match size {
            Size::InCache => self.l2_bytes / 2,
            Size::Knee => self.llc_bytes,
            Size::OutOfCache => (self.llc_bytes * 8).clamp(256 << 20, OUT_OF_CACHE_MAX),
        }
    }
}

/// A named size.
#[derive(Debug, Clone, Copy)]
enum Size {
    InCache,
    Knee,
    OutOfCache,
}

const SIZES: [(&str, Size); 3] =
    [("in-cache", Size::InCache), ("knee", Size::Knee), ("out-of-cache", Size::OutOfCache)];

/// Reads `rows`, or `size` by name: randomly accessed data of half the second-level cache, the
/// last-level cache, or eight times that.
pub(crate) fn rows(
    config: &CellConfiguration<'_>,
    footprint: &Footprint,
    row_bytes: usize,
) -> Result<usize, EngineError> {
    match (config.has("rows"), config.has("size")) {
        (true, false) => config.number("rows", 0, 1..=ROWS_MAX),
        (false, true) => {
            let size = config.choice("size", Size::InCache, &SIZES)?;
            Ok((footprint.bytes(size) / row_bytes).max(16))
        }
        (true, true) => {
            Err(EngineError::refused("settings `rows` and `size` say the same: leave one out"))
        }
        (false, false) => Err(EngineError::refused(
            "a size is missing: add `rows = 2_000_000` or `size = \"out-of-cache\"`",
        )),
    }
}

/// Reads `probe_rows`; default: as many as the table has rows, and a million at least.
pub(crate) fn probe_rows(
    config: &CellConfiguration<'_>,
    rows: usize,
) -> Result<usize, EngineError> {
    config.number("probe_rows", rows.max(PROBES_MIN), 1..=ROWS_MAX)
}

/// In which order rows probe, and how they are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probes {
    /// In memory order.
    Clustered,
    /// In random order, each read where its probe begins (Zhou et al. 2005, §5).
    Unclustered,
    /// The same, each announced before it is read, in a stage of its own.
    Announced,
}

impl Probes {
    pub(crate) fn are_clustered(self) -> bool {
        self == Probes::Clustered
    }

    pub(crate) fn have_a_stage(self) -> bool {
        self == Probes::Announced
    }
}

/// Reads `probes`: clustered, unclustered or announced.
pub(crate) fn probes(config: &CellConfiguration<'_>) -> Result<Probes, EngineError> {
    let words = [
        ("clustered", Probes::Clustered),
        ("unclustered", Probes::Unclustered),
        ("announced", Probes::Announced),
    ];
    config.choice("probes", Probes::Unclustered, &words)
}

/// Reads `pages`: huge or small.
pub(crate) fn pages(config: &CellConfiguration<'_>) -> Result<Pages, EngineError> {
    config.choice("pages", Pages::Huge, &[("huge", Pages::Huge), ("small", Pages::Small)])
}
