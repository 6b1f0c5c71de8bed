//! A calibrator inside the model: measures a machine from cycles only, as a user's tool does.
//!
//! ```text
//!   cycles a load │                 ┌──────── memory
//!                 │        ┌────────┘ ▲
//!                 │ ───────┘ L2       └ the step is the capacity
//!                 └──────────────────────── bytes chased
//! ```
//!
//! Chases pointers along a random cycle through more and more memory, as Calibrator (Manegold,
//! S4.28) and lmbench (McVoy and Staelin, S0.18) do. Two chases of the same bytes separate
//! translations from caches: one visits each page once per round, the other twice with half of its
//! loads, so that their difference is the cost of translations.
//!
//! Only the first CPU runs. The idle cores are left out, and so is the prefetcher, which Intel's
//! Memory Latency Checker turns off too: it would answer before the measured cache.

use workahead_simulator::preset::{Preset, PresetError};

use crate::chase::{Chaser, STRIDE};

/// The measured machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibration {
    /// Caches, nearest first, then memory.
    pub(crate) levels: Vec<Level>,
    /// TLB; `None` if no footprint exceeded its reach.
    pub(crate) translations: Option<Translations>,
}

/// A cache, or memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    /// Cycles from a load to its use.
    pub(crate) latency: f64,
    /// Size to a thirty-second; `None` for memory.
    pub(crate) bytes: Option<u64>,
    /// Bytes of a line of this cache or a nearer one, whichever is longer; `None` for memory, or
    /// without a step up to 512.
    pub(crate) line: Option<u32>,
}

/// A TLB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Translations {
    /// Entries, to a thirty-second.
    pub(crate) pages: u64,
    /// Cycles of a miss.
    pub(crate) cost: f64,
}

impl Calibration {
    /// Cycles of a miss beyond a hit, as Calibrator prints.
    #[must_use]
    pub(crate) fn miss(&self, level: usize) -> Option<f64> {
        Some(self.levels.get(level + 1)?.latency - self.levels.get(level)?.latency)
    }
}

/// Relative difference below which latencies are equal.
const SAME: f64 = 0.01;

/// Relative height below which there is no step.
const PART: f64 = 0.02;

/// Bisections of the range of a step.
const HALVINGS: u32 = 5;

/// A footprint surely in memory: more than twice the largest cache, and twice the reach of the TLB.
#[must_use]
pub(crate) fn enough_for(preset: &Preset) -> u64 {
    let largest = preset.cache.iter().map(|level| level.bytes).max().unwrap_or_default();
    let reach = u64::from(preset.tlb.data.entries) * u64::from(preset.page);
    (largest.max(reach) + 1).next_power_of_two() * 2
}

/// Measures a machine, with footprints of 1 KiB up to `most` bytes, as lmbench takes its size.
///
/// # Errors
/// If the machine is impossible.
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

/// Result of the two chases of a footprint.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Cycles per load, with its translation.
    latency: f64,
    /// Cycles per translation of a page.
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

/// Consecutive footprints of the same latency.
#[derive(Debug, Clone, Copy)]
struct Plateau {
    latency: f64,
    first: usize,
    last: usize,
}

/// Plateaus of at least two footprints: a single one is on a step.
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

/// The largest footprint that fits, by bisection.
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

/// The stride from which every load is of another line: the time of a load doesn't grow further.
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
            // Untouched memory needs no eviction from the caches.
            true => chaser.fresh(most * (at as u64 + 1), stride),
            false => chaser.ascending(bytes, stride),
        };
        times.push(time - per_page * stride as f64 / chaser.page as f64);
    }
    let steps = times.windows(2).zip(strides);
    let mut flat = steps.filter(|(pair, _)| pair[1] <= pair[0] * (1.0 + PART));
    flat.next().map(|(_, stride)| stride)
}
