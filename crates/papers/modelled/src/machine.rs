//! The machine of a cell: its figures, and the placement of threads on its CPUs.

use workahead_engines::configuration::CellConfiguration;
use workahead_native::size::Footprint;
use workahead_simulator::preset::Preset;
use workahead_study::engine::EngineError;

/// A modelled machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelledMachine {
    preset: Preset,
    placement: Placement,
}

/// Placement of threads on CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Placement {
    /// All threads of a core, then those of the next.
    #[default]
    Compact,
    /// One thread of each core, then the second of each.
    Scatter,
}

const PLACEMENTS: [(&str, Placement); 2] =
    [("compact", Placement::Compact), ("scatter", Placement::Scatter)];

const SIBLINGS: [(&str, bool); 2] = [("on", true), ("off", false)];

/// Prefix of settings that change the machine.
const CHANGES: &str = "model.";

impl ModelledMachine {
    /// Reads `machine`, its changes, `siblings` and `placement`.
    pub(crate) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        let name: String = config.text("machine", String::new())?;
        if name.is_empty() {
            let known: Vec<&str> = workahead_simulator::catalogue::names().collect();
            return Err(EngineError::refused(format!(
                "the setting `machine` is missing: one of {}",
                known.join(", ")
            )));
        }
        let mut preset = Preset::named(&name).map_err(EngineError::failed)?;
        for (path, value) in config.beginning(CHANGES) {
            let path = path.strip_prefix(CHANGES).unwrap_or(&path);
            preset =
                preset.with_override(&format!("{path}={value}")).map_err(EngineError::failed)?;
        }
        if !config.choice("siblings", true, &SIBLINGS)? {
            preset = preset.without_siblings();
        }
        let placement = config.choice("placement", Placement::Compact, &PLACEMENTS)?;
        Ok(Self { preset, placement })
    }

    /// The same placement on a changed machine.
    pub(crate) fn with_preset(self, change: impl FnOnce(Preset) -> Preset) -> Self {
        Self { preset: change(self.preset), ..self }
    }

    /// The cache sizes to which named sizes refer.
    pub(crate) fn footprint(&self) -> Footprint {
        let bytes = |at: usize| self.preset.cache.get(at).map(|level| level.bytes as usize);
        let last = self.preset.cache.len().saturating_sub(1);
        let l2 = self.preset.cache.iter().find(|level| level.name == "L2");
        let llc_bytes = bytes(last).unwrap_or(1 << 20);
        Footprint { l2_bytes: l2.map_or(llc_bytes, |level| level.bytes as usize), llc_bytes }
    }

    /// The machine.
    pub(crate) fn preset(&self) -> &Preset {
        &self.preset
    }

    /// The CPU of each thread in turn.
    pub(crate) fn cpu(&self, thread: usize) -> usize {
        let (cores, threads) = (self.preset.cores as usize, self.preset.threads as usize);
        let thread = thread % (cores * threads);
        match self.placement {
            Placement::Compact => thread,
            Placement::Scatter => thread % cores * threads + thread / cores,
        }
    }
}
