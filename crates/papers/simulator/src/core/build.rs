//! Cores from a preset.

use std::collections::VecDeque;

use super::combining::CombiningBuffers;
use super::exposure::{Commits, Exposures};
use super::slots::Slots;
use super::{Copies, Core, CoreParameters, Cpu, Lines, Processor};
use crate::branches::Predictor;
use crate::counts::Counts;
use crate::hierarchy::Hierarchy;
use crate::prefetcher::Streams;
use crate::preset::{Contents, Preset, PresetError, Sharing, TlbSizes};
use crate::reservation_table::{ReservationTable, SlotReservations};
use crate::ticks::{CYCLE, Ticks, ticks};
use crate::tlb::Tlb;

/// Bytes of a line of [`Lines`], as a shift: a line of most machines.
const LINE_SHIFT: u32 = 6;

impl Processor {
    /// A machine with empty caches.
    ///
    /// # Errors
    /// If a cache or TLB of the preset is impossible.
    pub fn new(preset: &Preset) -> Result<Self, PresetError> {
        preset.check()?;
        let hierarchy = Hierarchy::new(preset)?;
        let cores: Result<Vec<Core>, PresetError> =
            (0..preset.cores).map(|_| Core::new(preset)).collect();
        let mut processor = Self {
            cores: cores?,
            cpus: (0..preset.cpus()).map(|cpu| Cpu::new(cpu, preset.threads)).collect(),
            hierarchy,
            preset: preset.clone(),
            parameters: CoreParameters::of(preset),
        };
        (0..processor.cpus.len()).for_each(|cpu| processor.set_busy(cpu, true));
        Ok(processor)
    }
}

impl CoreParameters {
    fn of(preset: &Preset) -> Self {
        let core = &preset.core;
        let data = preset.cache.iter().filter(|level| level.holds != Contents::Instructions);
        let nearest = data.clone().next();
        let code = preset.cache.iter().find(|level| level.holds != Contents::Data);
        Self {
            threads: preset.threads as usize,
            uop: CYCLE / Ticks::from(core.width),
            nearest: ticks(nearest.map_or(0.0, |level| level.latency)),
            nearest_code: ticks(code.map_or(0.0, |level| level.latency)),
            code_line: code.map_or(64, |level| u64::from(level.line)),
            code_uops: code.map_or(0, |level| u64::from(level.uops)),
            code_tlb_on_misses: preset.tlb.instructions_on_misses,
            line: nearest.map_or(64, |level| u64::from(level.line)),
            depth: data.count(),
            window: u64::from(core.window),
            loads: u64::from(core.loads),
            loads_shared: together(core.loads, core.loads_sharing, preset.threads),
            stores: core.stores as usize,
            window_shared: together(core.window, core.window_sharing, preset.threads),
            stores_shared: together(core.stores, core.stores_sharing, preset.threads),
            drops_hints: core.drops_hints,
            pause_drains: core.pause_drains,
            clear: ticks(preset.clears.cost),
            data_tlb_cost: ticks(preset.tlb.data.cost),
            code_tlb_cost: ticks(preset.tlb.instructions.as_ref().map_or(0.0, |tlb| tlb.cost)),
            mispredict: ticks(preset.branches.as_ref().map_or(0.0, |all| all.mispredict)),
        }
    }
}

/// Whether several threads share one instance of a structure.
fn together(entries: u32, sharing: Sharing, threads: u32) -> bool {
    entries > 0 && sharing == Sharing::Shared && threads > 1
}

impl Core {
    fn new(preset: &Preset) -> Result<Self, PresetError> {
        let threads = preset.threads;
        let tlb = |sizes: &TlbSizes| {
            let entries = sizes.entries / sizes.threads.parts(threads);
            let tlb = Tlb::new(entries, sizes.ways, preset.page);
            let tlb = tlb.map_err(|why| PresetError::Impossible {
                name: preset.name.clone(),
                what: "tlb".to_owned(),
                why,
            })?;
            Ok(Copies::new(sizes.threads, threads, &tlb))
        };
        let core = &preset.core;
        let lines = core.outstanding / core.outstanding_sharing.parts(threads);
        let branches = preset.branches.as_ref();
        Ok(Self {
            front: ReservationTable::default(),
            data_tlb: tlb(&preset.tlb.data)?,
            code_tlb: preset.tlb.instructions.as_ref().map(tlb).transpose()?,
            walkers: SlotReservations::new(core.walkers as usize, walk(preset)),
            outstanding: Copies::new(
                core.outstanding_sharing,
                threads,
                &SlotReservations::new(lines as usize, ticks(preset.memory.latency)),
            ),
            combining: combining(preset),
            predictor: branches.map(|all| Predictor::new(preset, all)).transpose()?,
            streams: preset.prefetcher.as_ref().map(|all| Streams::new(all, preset)),
        })
    }
}

/// Duration of the longest page walk.
fn walk(preset: &Preset) -> Ticks {
    let instructions = preset.tlb.instructions.as_ref().map_or(0.0, |tlb| tlb.cost);
    ticks(preset.tlb.data.cost.max(instructions))
}

/// The write-combining buffers of a core; what has no store buffer waits for each store.
fn combining(preset: &Preset) -> Option<Copies<CombiningBuffers>> {
    let Preset { core, threads, .. } = preset;
    let buffers = core.combining / core.combining_sharing.parts(*threads);
    (core.combining > 0 && core.stores > 0).then(|| {
        let one = CombiningBuffers::new(buffers.max(1) as usize, preset);
        Copies::new(core.combining_sharing, *threads, &one)
    })
}

impl Cpu {
    fn new(cpu: u32, threads: u32) -> Self {
        Self {
            place: ((cpu / threads) as usize, (cpu % threads) as usize),
            now: 0,
            begun: None,
            loaded: 0,
            in_flight: VecDeque::new(),
            room_to: u64::MAX,
            load_room_to: u64::MAX,
            store_buffer: VecDeque::new(),
            announced: Lines::new(LINE_SHIFT),
            retired: 0,
            slots: Slots::default(),
            exposures: Exposures::new(LINE_SHIFT),
            commits: Commits::new(LINE_SHIFT),
            space: 0,
            busy: true,
            alone: false,
            window: 0,
            loads: u64::MAX,
            stores: 0,
            counts: Counts::default(),
        }
    }
}
