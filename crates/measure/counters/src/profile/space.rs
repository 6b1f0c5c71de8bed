//! The address space of one process: what code lies where, and how to unwind through it.

use std::collections::BTreeMap;
use std::sync::Arc;

use framehop::{MayAllocateDuringUnwind, Unwinder as _, UnwinderNative};

use workahead_machine::guarded::guarded;

use super::modules::{ModuleId, Modules};

/// The unwinder of one address space.
pub(super) type Unwinder = UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>;

/// Mappings of one module without an index of its tables that are unwound through. Of a library's
/// code there is one, or a few where a part was protected.
const INDEXED_MAX: u32 = 8;

/// Code of a process. A child begins with a copy of its parent's.
#[derive(Clone, Default)]
pub(super) struct Space {
    /// By the address of their first byte; they do not overlap.
    mappings: BTreeMap<u64, Mapping>,
    pub(super) unwinder: Unwinder,
    /// How often tables of a module without an index were given one.
    indexed: BTreeMap<ModuleId, u32>,
}

/// A part of a file that a process mapped to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The byte of the file that lies at `start`.
    pub(super) offset: u64,
    pub(super) module: ModuleId,
}

impl Space {
    /// The mappings of a process that is running, from `/proc/PID/maps` (proc(5)).
    pub(super) fn of_process(pid: u32, modules: &mut Modules) -> Self {
        let mut space = Self::default();
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        // A path is any bytes.
        let maps = String::from_utf8_lossy(&maps);
        let mappings = maps.lines().filter_map(|line| mapping(line, modules));
        for mapping in mappings.collect::<Vec<_>>() {
            space.map(mapping, modules);
        }
        space
    }

    /// Adds a mapping; it takes the place of what was there.
    pub(super) fn map(&mut self, mapping: Mapping, modules: &Modules) {
        let Mapping { start, end, .. } = mapping;
        if start >= end {
            return;
        }
        let before = self.mappings.range(..start).next_back().map(|(at, _)| *at);
        let touched = before.into_iter().chain(self.mappings.range(start..end).map(|(at, _)| *at));
        let touched: Vec<u64> = touched.collect();
        for at in touched {
            let old = self.mappings[&at];
            if old.end <= start {
                continue;
            }
            self.mappings.remove(&at);
            self.unwinder.remove_module(at);
            self.add(Mapping { end: start, ..old }, modules);
            let offset = old.offset.wrapping_add(end.wrapping_sub(old.start));
            self.add(Mapping { start: end, offset, ..old }, modules);
        }
        self.add(mapping, modules);
    }

    fn add(&mut self, mapping: Mapping, modules: &Modules) {
        if mapping.start >= mapping.end {
            return;
        }
        self.mappings.insert(mapping.start, mapping);
        let module = modules.get(mapping.module);
        let Some(image) = &module.image else { return };
        let Some(bias) = image.bias(mapping.start, mapping.offset) else { return };
        if !image.has_index() {
            // Each mapping gets an index of all its module's tables.
            let times = self.indexed.entry(mapping.module).or_default();
            if *times == INDEXED_MAX {
                return;
            }
            *times += 1;
        }
        // Its tables may be damaged; they are left out then.
        let described = guarded(|| {
            framehop::Module::new(
                module.name.clone(),
                mapping.start..mapping.end,
                bias,
                image.unwind_sections(),
            )
        });
        if let Ok(described) = described {
            self.unwinder.add_module(described);
        }
    }

    /// The module at an address of the process, and the address in the module's own terms.
    pub(super) fn find(&self, address: u64, modules: &Modules) -> Option<(ModuleId, u64)> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        if address >= mapping.end {
            return None;
        }
        let image = modules.get(mapping.module).image.as_ref();
        let bias = image.and_then(|image| image.bias(mapping.start, mapping.offset));
        // Without its file only the place in the file is known.
        let bias = bias.unwrap_or(mapping.start.wrapping_sub(mapping.offset));
        Some((mapping.module, address.wrapping_sub(bias)))
    }
}

/// A line of `/proc/PID/maps` that holds code: `start-end perms offset device inode path`.
fn mapping(line: &str, modules: &mut Modules) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    if !fields.next()?.contains('x') {
        return None;
    }
    let offset = hexadecimal(fields.next()?)?;
    let inode = fields.nth(1)?.parse().ok().filter(|&inode: &u64| inode > 0);
    let path = fields.next().unwrap_or_default().trim_start();
    Some(Mapping { start, end, offset, module: modules.of(path, inode) })
}

#[cfg(test)]
mod tests;
