//! A calibrator inside the model: what a user's tool would read back, from cycles only.
//!
//! ```text
//!   cycles a load │                 ┌──────── memory
//!                 │        ┌────────┘ ▲
//!                 │ ───────┘ L2       └ the step is the capacity
//!                 └──────────────────────── bytes chased
//! ```
//!
//! Pointers are chased along a random cycle through more and more memory, as Calibrator (Manegold,
//! S4.28) and lmbench (McVoy and Staelin, S0.18) do. Two chases of the same bytes tell translations
//! from caches: one visits each page once a round, the other twice with half of its loads, so that
//! their difference is what translations cost.
//!
//! Only the first CPU works. The other cores are left out, as they are idle, and so is the
//! prefetcher, which Intel's Memory Latency Checker turns off too: it would answer before the cache
//! that is asked.

use workahead_simulator::preset::{Preset, PresetError};

use crate::chase::{Chaser, STRIDE};

/// What was read back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibration {
    /// Caches, nearest first, then memory.
    pub(crate) levels: Vec<Level>,
    /// Translations; none where no footprint was too large for them.
    pub(crate) translations: Option<Translations>,
}

/// A cache, or memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    /// Cycles from a load to its use.
    pub(crate) latency: f64,
    /// Size to a thirty-second; none for memory.
    pub(crate) bytes: Option<u64>,
    /// Bytes of a line of this cache or a nearer one, whichever is longer; none for memory, or
    /// where there is no step up to 512.
    pub(crate) line: Option<u32>,
}

/// A buffer of translations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Translations {
    /// Pages that it holds, to a thirty-second.
    pub(crate) pages: u64,
    /// Cycles that a miss adds.
    pub(crate) cost: f64,
}

impl Calibration {
    /// Cycles that a miss of a cache costs more than a hit: what Calibrator prints.
    #[must_use]
    pub(crate) fn miss(&self, level: usize) -> Option<f64> {
        Some(self.levels.get(level + 1)?.latency - self.levels.get(level)?.latency)
    }
}

/// Latencies closer than this are the same.
const SAME: f64 = 0.01;

/// Of a step, how much is none yet.
const PART: f64 = 0.02;

/// Halvings of the range in which a step lies.
const HALVINGS: u32 = 5;

/// The footprint that is surely in memory: more than twice the largest cache, and twice what
/// translations reach.
#[must_use]
pub(crate) fn enough_for(preset: &Preset) -> u64 {
    let largest = preset.cache.iter().map(|level| level.bytes).max().unwrap_or_default();
    let reach = u64::from(preset.tlb.data.entries) * u64::from(preset.page);
    (largest.max(reach) + 1).next_power_of_two() * 2
}

/// Reads a machine back, from footprints of 1 KiB up to `most` bytes, as lmbench takes its size.
///
/// # Errors
/// If there can be no machine like this.
pub(crate) fn calibrate(preset: &Preset, most: u64) -> Result<Calibration, PresetError> {
    let mut chaser = Chaser::new(preset)?;
    let footprints: Vec<u64> =
        (10..63).map(|shift| 1 << shift).take_while(|bytes| *bytes <= most).collect();
    let read: Vec<Reading> = footprints.iter().map(|bytes| chaser.read(*bytes)).collect();
    let plateaus = plateaus(&read);
    let translations = translations(&mut chaser, &footprints, &read);
    let mut levels = Vec::new();
    for (at, plateau) in plateaus.iter().enumerate() {
        let Plateau { latency, last, .. } = *plateau;
        let Some(next) = plateaus.get(at + 1) else {
            levels.push(Level { latency, bytes: None, line: None });
            break;
        };
        let limit = latency + PART * (next.latency - latency);
        let range = (footprints[last], 2 * footprints[last]);
        let bytes = largest(range, |bytes| chaser.read(bytes).latency <= limit);
        let beyond = footprints[next.first];
        let is_memory = at + 2 == plateaus.len();
        let missing = translations.filter(|known| is_memory || beyond > known.pages * chaser.page);
        let per_page = missing.map_or(0.0, |known| known.cost);
        let line = line(&mut chaser, (beyond, is_memory, most), per_page);
        levels.push(Level { latency, bytes: Some(bytes), line });
    }
    Ok(Calibration { levels, translations })
}

/// What the two chases of a footprint tell.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Cycles a load, with its translation.
    latency: f64,
    /// Cycles that a page's translation adds.
    translation: f64,
}

impl Chaser {
    /// Chases a footprint twice.
    fn read(&mut self, bytes: u64) -> Reading {
        let once = self.warm(bytes, 1);
        if bytes < 2 * self.page {
            return Reading { latency: once, translation: 0.0 };
        }
        let twice = self.warm(bytes, 2);
        let loads = (self.page / STRIDE) as f64;
        Reading { latency: 2.0 * once - twice, translation: (twice - once) * loads }
    }
}

/// Footprints of one latency.
#[derive(Debug, Clone, Copy)]
struct Plateau {
    latency: f64,
    first: usize,
    last: usize,
}

/// At least two footprints of the same latency, one after the other: one alone is on a step.
fn plateaus(read: &[Reading]) -> Vec<Plateau> {
    let mut plateaus: Vec<Plateau> = Vec::new();
    for (at, reading) in read.iter().enumerate() {
        let latency = reading.latency;
        match plateaus.last_mut() {
            Some(plateau) if (latency / plateau.latency - 1.0).abs() < SAME => plateau.last = at,
            _ => plateaus.push(Plateau { latency, first: at, last: at }),
        }
    }
    plateaus.retain(|plateau| plateau.last > plateau.first);
    plateaus
}

fn translations(chaser: &mut Chaser, footprints: &[u64], read: &[Reading]) -> Option<Translations> {
    let cost = read.last()?.translation;
    let limit = PART * cost;
    let last = read.iter().rposition(|reading| reading.translation <= limit)?;
    let range = (footprints[last], *footprints.get(last + 1)?);
    let bytes = largest(range, |bytes| chaser.read(bytes).translation <= limit);
    Some(Translations { pages: bytes / chaser.page, cost })
}

/// The largest footprint that still fits, between one that does and one that does not.
fn largest((mut fits, mut not): (u64, u64), mut try_it: impl FnMut(u64) -> bool) -> u64 {
    for _ in 0..HALVINGS {
        let middle = (fits + not) / 2;
        if middle % STRIDE != 0 {
            break;
        }
        match try_it(middle) {
            true => fits = middle,
            false => not = middle,
        }
    }
    fits
}

/// The stride from which on every load is of another line: the time of a load grows no more.
fn line(
    chaser: &mut Chaser,
    (bytes, is_memory, most): (u64, bool, u64),
    per_page: f64,
) -> Option<u32> {
    let strides = [8_u32, 16, 32, 64, 128, 256, 512];
    let mut times = Vec::new();
    for (at, stride) in strides.iter().enumerate() {
        let stride = u64::from(*stride);
        let time = match is_memory {
            // Memory that was never touched needs no round to get out of the caches.
            true => chaser.fresh(most * (at as u64 + 1), stride),
            false => chaser.ascending(bytes, stride),
        };
        times.push(time - per_page * stride as f64 / chaser.page as f64);
    }
    let steps = times.windows(2).zip(strides);
    let mut flat = steps.filter(|(pair, _)| pair[1] <= pair[0] * (1.0 + PART));
    flat.next().map(|(_, stride)| stride)
}
