//! Lines on their way into caches and out of them, and what is in them.

use super::snoop::Asked;
use super::{Hierarchy, Kind, Unit};
use crate::cache::{State, Victim};
use crate::ticks::Ticks;

impl<D: Copy + Default> Hierarchy<D> {
    /// Puts a line into the caches that did not have it, farthest first.
    #[inline(always)]
    pub(super) fn fill(&mut self, asked: &Asked, depth: usize, state: State, now: Ticks) {
        let Asked { cpu, kind, address } = *asked;
        let caches = self.path(cpu, kind).steps;
        let mut data = match caches.get(depth) {
            _ if size_of::<D>() == 0 => D::default(),
            Some(at) => {
                let unit = &self.units[*at as usize];
                unit.cache.data(unit.line_for(cpu, address)).unwrap_or_default()
            }
            None => self.recalled(address),
        };
        for at in caches[..depth].iter().rev() {
            data = self.put((*at, cpu), (address, state, data), now);
        }
        if kind == Kind::Store && depth < caches.len() {
            self.modify_path(cpu, address, depth);
        }
    }

    /// Puts a line into one cache for a CPU, and sends who has to leave on its way. Returns its
    /// data.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        (at, cpu): (u16, usize),
        (address, state, data): (u64, State, D),
        now: Ticks,
    ) -> D {
        let unit = &mut self.units[at as usize];
        let line = unit.line_for(cpu, address);
        let Unit { cache, inclusive, .. } = unit;
        // What memory has, and no nearer cache need give up, just goes.
        if let Some(victim) = cache.insert(line, state, data)
            && (*inclusive || victim.state == State::Modified)
        {
            self.leave(at, victim, now);
        }
        data
    }

    /// A line leaves a cache: it is called back from nearer ones where this one includes them, and
    /// what was changed goes on to the next.
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
        let Some(next) = self.units[at as usize].next else {
            self.bus.write(now);
            self.remember(address, victim.data);
            return;
        };
        let cache = &mut self.units[next as usize].cache;
        let line = cache.line_of(address);
        // Being written is a use, as it is where it has to be put in: else a cache of more ways
        // could miss more.
        if cache.touch(line) != State::Invalid {
            cache.set_state(line, State::Modified);
            if size_of::<D>() > 0 {
                cache.set_data(line, victim.data);
            }
        } else {
            // Lines that are changed are nobody's in particular.
            self.put((next, 0), (address, State::Modified, victim.data), now);
        }
    }

    /// What memory holds.
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

    /// What a CPU that just read an address sees there.
    #[must_use]
    pub fn value(&self, cpu: usize, address: u64) -> Option<D> {
        let cache = &self.units[self.data[cpu].steps[0] as usize].cache;
        cache.data(cache.line_of(address))
    }

    /// What a CPU that just stored at an address puts there.
    pub fn set_value(&mut self, cpu: usize, address: u64, data: D) {
        let cache = &mut self.units[self.data[cpu].steps[0] as usize].cache;
        cache.set_data(cache.line_of(address), data);
    }
}
