//! Caches and paths from a preset.

use std::collections::{HashMap, HashSet};

use super::{AccessCounts, DEPTHS, Hierarchy, Path, Steps, Unit};
use crate::bus::Bus;
use crate::cache::Cache;
use crate::hierarchy::Fills;
use crate::preset::{CacheLevel, Contents, Preset, PresetError};
use crate::ticks::ticks;

impl<D: Copy + Default> Hierarchy<D> {
    /// The caches of a machine, empty.
    ///
    /// # Errors
    /// If a cache is impossible, or a CPU has none or more than three on its path to memory, of
    /// data or of instructions.
    pub fn new(preset: &Preset) -> Result<Self, PresetError> {
        let mut units: Vec<Unit<D>> = Vec::new();
        let cpus = preset.cpus() as usize;
        let mut data = vec![Path::default(); cpus];
        let mut code = vec![Path::default(); cpus];
        for level in &preset.cache {
            let first = units.len();
            let copies = level.threads.copies(preset.threads);
            let groups = preset.cores.div_ceil(level.cores.max(1));
            let geometry = preset.geometry(level)?;
            for _ in 0..groups * copies {
                units.push(Unit {
                    cache: Cache::new(geometry, level.replacement),
                    latency: ticks(level.latency),
                    inclusive: level.inclusive,
                    write_through: level.write_through,
                    decoded: level.uops > 0,
                    tags: if level.tagged { preset.threads.into() } else { 1 },
                    nearer: Vec::new(),
                    next: None,
                });
            }
            for cpu in 0..cpus {
                let (core, thread) = (cpu as u32 / preset.threads, cpu as u32 % preset.threads);
                let copy = if copies == 1 { 0 } else { thread };
                let unit = first + (core / level.cores.max(1) * copies + copy) as usize;
                if level.holds != Contents::Instructions {
                    data[cpu].steps.push(preset, unit)?;
                }
                if level.holds != Contents::Data {
                    code[cpu].steps.push(preset, unit)?;
                }
            }
        }
        if data.iter().any(|path| path.steps.is_empty()) {
            return Err(count(preset, 0));
        }
        if code.iter().any(|path| path.steps.is_empty()) {
            return Err(PresetError::Range {
                name: preset.name.clone(),
                what: "the number of caches that hold instructions".to_owned(),
                value: 0.0,
                range: "1 to 3",
            });
        }
        link(&mut units, data.iter().chain(&code));
        let all: Vec<Steps> = data.iter().chain(&code).map(|path| path.steps).collect();
        let order = Order::of(&all, &units);
        for path in data.iter_mut().chain(&mut code) {
            path.under = order.under(path.steps);
            let lines = path.steps.iter().map(|at| units[*at as usize].cache.line_bytes());
            path.span = lines.max().unwrap_or(1);
        }
        let shift = units.iter().map(|unit| unit.cache.line_bytes().trailing_zeros()).max();
        let of_data = |level: &&CacheLevel| level.holds != Contents::Instructions;
        Ok(Self {
            units,
            data,
            code,
            protocol: preset.memory.protocol,
            fills: Fills::new(shift.unwrap_or_default()),
            bus: Bus::new(&preset.memory),
            memory: HashMap::new(),
            found: vec![AccessCounts::default(); cpus],
            names: preset.cache.iter().filter(of_data).map(|level| level.name.clone()).collect(),
        })
    }
}

impl Steps {
    fn push(&mut self, preset: &Preset, unit: usize) -> Result<(), PresetError> {
        let at = usize::from(self.count);
        if at == DEPTHS - 1 {
            return Err(count(preset, at + 1));
        }
        self.caches[at] = unit as u16;
        self.count += 1;
        Ok(())
    }
}

fn count(preset: &Preset, caches: usize) -> PresetError {
    PresetError::Range {
        name: preset.name.clone(),
        what: "the number of caches between a CPU and memory".to_owned(),
        value: caches as f64,
        range: "1 to 3",
    }
}

/// Links each cache with those before and behind it.
fn link<'p, D>(units: &mut [Unit<D>], paths: impl Iterator<Item = &'p Path>) {
    for path in paths {
        for (depth, at) in path.steps.iter().enumerate() {
            units[*at as usize].next = path.steps.get(depth + 1).copied();
            for nearer in &path.steps[..depth] {
                if !units[*nearer as usize].decoded && !units[*at as usize].nearer.contains(nearer)
                {
                    units[*at as usize].nearer.push(*nearer);
                }
            }
        }
    }
}

/// Which caches lead through which others, over all paths.
struct Order {
    /// Caches of lines, nearest first: the nearest was modified last.
    units: Vec<u16>,
    /// Pairs of a cache and one behind it.
    leads_through: HashSet<(u16, u16)>,
}

impl Order {
    fn of<D>(all: &[Steps], units: &[Unit<D>]) -> Self {
        let mut depths = vec![0; units.len()];
        let mut leads_through = HashSet::new();
        for steps in all {
            for (depth, far) in steps.iter().enumerate() {
                let deepest = &mut depths[*far as usize];
                *deepest = depth.max(*deepest);
                leads_through.extend(steps[..depth].iter().map(|near| (*near, *far)));
            }
        }
        let has_lines = |unit: &u16| !units[*unit as usize].decoded;
        let mut ordered: Vec<u16> = (0..units.len() as u16).filter(has_lines).collect();
        ordered.sort_by_key(|unit| (depths[*unit as usize], *unit));
        Self { units: ordered, leads_through }
    }

    /// For each depth of a path, the caches of other paths that lead through the one there; for
    /// memory, all that are on none of its own.
    fn under(&self, steps: Steps) -> Vec<Vec<u16>> {
        let others = self.units.iter().copied().filter(|unit| !steps.contains(unit));
        let others: Vec<u16> = others.collect();
        let through = |at: &u16| {
            let leads = |unit: &u16| self.leads_through.contains(&(*unit, *at));
            others.iter().copied().filter(leads).collect()
        };
        let mut under: Vec<Vec<u16>> = steps.iter().map(through).collect();
        under.push(others);
        under
    }
}
