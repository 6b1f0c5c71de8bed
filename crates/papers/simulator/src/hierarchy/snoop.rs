//! Snooping: requests to other caches for a line.

use super::{Hierarchy, Kind};
use crate::cache::State;

/// A request for a line.
pub(super) struct Asked {
    pub(super) cpu: usize,
    pub(super) kind: Kind,
    pub(super) address: u64,
}

/// The response of other caches.
pub(super) struct Snooped<D> {
    /// Whether any of them had the line.
    pub(super) had: bool,
    /// The data, where it was modified.
    pub(super) dirty: Option<D>,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Snoops the caches under a depth: invalidates the line for a store, shares it otherwise.
    #[inline(always)]
    pub(super) fn snoop(&mut self, asked: &Asked, depth: usize) -> Snooped<D> {
        let others = &self.path(asked.cpu, asked.kind).under[depth];
        // For instructions only if caches fetch them: their lines are many and short.
        let nobody = others.iter().all(|at| self.units[*at as usize].cache.is_empty());
        match nobody {
            true => Snooped { had: false, dirty: None },
            false => self.snoop_all(asked, depth),
        }
    }

    fn snoop_all(&mut self, asked: &Asked, depth: usize) -> Snooped<D> {
        let mut snooped = Snooped { had: false, dirty: None };
        let Asked { cpu, kind, address } = *asked;
        let Self { units, data, code, found, .. } = self;
        let path = match kind {
            Kind::Fetch => &code[cpu],
            Kind::Load | Kind::Store => &data[cpu],
        };
        // All bytes of the path's largest line: caches may have lines of other sizes.
        let first = address & !(path.span - 1);
        for at in &path.under[depth] {
            let unit = &mut units[*at as usize];
            let lines = unit.lines_from(first, path.span);
            let cache = &mut unit.cache;
            if cache.is_empty() {
                continue;
            }
            for line in lines {
                let state = cache.peek(line);
                if state == State::Invalid {
                    continue;
                }
                snooped.had = true;
                if state == State::Modified && snooped.dirty.is_none() {
                    snooped.dirty = cache.data(line);
                }
                if kind == Kind::Store {
                    cache.drop_line(line);
                    found[cpu].invalidated += 1;
                } else if state.is_owned() {
                    cache.set_state(line, State::Shared);
                }
            }
        }
        if let Some(data) = snooped.dirty
            && size_of::<D>() > 0
        {
            self.settle(asked, depth, data);
        }
        snooped
    }

    /// Writes a neighbour's modified line to where all see it: the neighbour's other caches, the
    /// shared cache through which it was snooped, or memory.
    fn settle(&mut self, asked: &Asked, depth: usize, data: D) {
        let Asked { cpu, kind, address } = *asked;
        for at in self.path(cpu, kind).under[depth].clone() {
            let unit = &mut self.units[at as usize];
            for line in unit.lines_from(address, 1) {
                unit.cache.set_data(line, data);
            }
        }
        let through = self.path(cpu, kind).steps.get(depth).copied();
        match through {
            Some(at) => {
                let cache = &mut self.units[at as usize].cache;
                cache.set_data(cache.line_of(address), data);
            }
            None => self.remember(address, data),
        }
    }
}
