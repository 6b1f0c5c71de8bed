//! Fills and evictions of lines, and their data.

use super::snoop::Request;
use super::{AccessKind, Hierarchy, Unit};
use crate::cache::{State, Victim};
use crate::preset::Protocol;
use crate::ticks::Ticks;

/// A line to be inserted into a cache for a CPU.
pub(super) struct NewLine<D> {
    pub(super) cache: u16,
    pub(super) cpu: usize,
    pub(super) address: u64,
    pub(super) state: State,
    pub(super) data: D,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Fills a line into the caches that missed it, farthest first.
    #[inline(always)]
    pub(super) fn fill(&mut self, request: &Request, depth: usize, state: State, now: Ticks) {
        let Request { cpu, kind, address, nearest } = *request;
        let caches = self.path(cpu, kind).steps;
        let mut data = match caches.get(depth) {
            _ if size_of::<D>() == 0 => D::default(),
            Some(at) => {
                let unit = &self.units[*at as usize];
                unit.cache.data(unit.line_for(cpu, address)).unwrap_or_default()
            }
            None => self.recalled(address),
        };
        let through = kind == AccessKind::Store && self.units[caches[0] as usize].write_through;
        for (step, at) in caches[..depth].iter().enumerate().rev() {
            if step == 0 && through {
                // The nearest cache doesn't get a line that it doesn't have.
                let cache = &mut self.units[*at as usize].cache;
                cache.set_state(cache.line_of(address), State::Modified);
                break;
            }
            let address = if step == 0 { nearest } else { address };
            data = self.put(NewLine { cache: *at, cpu, address, state, data }, now);
        }
        if kind == AccessKind::Store && depth < caches.len() {
            self.modify_path(cpu, address, depth);
        }
    }

    /// Inserts a line into one cache for a CPU, and evicts the victim. Returns its data.
    #[inline(always)]
    pub(super) fn put(&mut self, new: NewLine<D>, now: Ticks) -> D {
        let NewLine { cache: at, cpu, address, state, data } = new;
        let unit = &mut self.units[at as usize];
        let line = unit.line_for(cpu, address);
        let Unit { cache, inclusive, write_through, .. } = unit;
        // A line that is clean or also elsewhere, and that no nearer cache has to give up, is just
        // dropped.
        if let Some(victim) = cache.insert(line, state, data)
            && (*inclusive || victim.state == State::Modified && !*write_through)
        {
            self.leave(at, victim, now);
        }
        data
    }

    /// Evicts a line: it is recalled from nearer caches if this one is inclusive, and modified data
    /// are written to the next.
    fn leave(&mut self, at: u16, mut victim: Victim<D>, now: Ticks) {
        let unit = &self.units[at as usize];
        let address = unit.address_of(victim.line);
        if unit.inclusive {
            let bytes = unit.cache.line_bytes();
            let mut newest = None;
            let nearer = std::mem::take(&mut self.units[at as usize].nearer);
            for nearer in &nearer {
                let nearer = &mut self.units[*nearer as usize];
                for line in nearer.lines_from(address, bytes) {
                    let Some(called) = nearer.cache.drop_line(line) else { continue };
                    if called.state == State::Modified {
                        victim.state = State::Modified;
                        newest = newest.or(Some(called.data));
                    }
                }
            }
            victim.data = newest.unwrap_or(victim.data);
            self.units[at as usize].nearer = nearer;
        }
        if victim.state != State::Modified {
            return;
        }
        self.own_nearer(at, address);
        let Some(next) = self.units[at as usize].next else {
            self.bus.write(now);
            self.remember(address, victim.data);
            return;
        };
        let cache = &mut self.units[next as usize].cache;
        let line = cache.line_of(address);
        // A write-back is a use, as it is where the line has to be inserted: else a cache of more
        // ways could miss more.
        if cache.touch(line) != State::Invalid {
            cache.set_state(line, State::Modified);
            if size_of::<D>() > 0 {
                cache.set_data(line, victim.data);
            }
        } else {
            // Modified lines have no tag.
            let state = State::Modified;
            let new = NewLine { cache: next, cpu: 0, address, state, data: victim.data };
            self.put(new, now);
        }
    }

    /// A modified line leaves a cache. Where a nearer one wrote it through, that has it clean now.
    fn own_nearer(&mut self, at: u16, address: u64) {
        let clean = match self.protocol {
            Protocol::Mesi => State::Exclusive,
            Protocol::Msi => State::Shared,
        };
        let bytes = self.units[at as usize].cache.line_bytes();
        let nearer = std::mem::take(&mut self.units[at as usize].nearer);
        for nearer in &nearer {
            let Unit { cache, write_through: true, .. } = &mut self.units[*nearer as usize] else {
                continue;
            };
            let first = cache.line_of(address);
            for line in first..first + cache.lines_of(bytes) {
                if cache.peek(line) == State::Modified {
                    cache.set_state(line, clean);
                }
            }
        }
        self.units[at as usize].nearer = nearer;
    }

    /// The contents of memory.
    pub(super) fn recalled(&self, address: u64) -> D {
        if size_of::<D>() == 0 {
            return D::default();
        }
        self.memory.get(&self.key(address)).copied().unwrap_or_default()
    }

    pub(super) fn remember(&mut self, address: u64, data: D) {
        if size_of::<D>() > 0 {
            let key = self.key(address);
            self.memory.insert(key, data);
        }
    }

    fn key(&self, address: u64) -> u64 {
        self.units[0].cache.line_of(address)
    }

    /// The value seen by a CPU that just read an address.
    #[must_use]
    pub fn value(&self, cpu: usize, address: u64) -> Option<D> {
        let cache = &self.units[self.data[cpu].steps[0] as usize].cache;
        cache.data(cache.line_of(address))
    }

    /// Sets the value that a CPU just stored at an address.
    pub fn set_value(&mut self, cpu: usize, address: u64, data: D) {
        for at in &*self.data[cpu].steps {
            let Unit { cache, write_through, .. } = &mut self.units[*at as usize];
            cache.set_data(cache.line_of(address), data);
            if !*write_through {
                return;
            }
        }
    }
}
