//! What other caches are asked for a line.

use super::{Hierarchy, Kind};
use crate::cache::State;

/// Who asks for what.
pub(super) struct Asked {
    pub(super) cpu: usize,
    pub(super) kind: Kind,
    pub(super) address: u64,
}

/// What others had.
pub(super) struct Snooped<D> {
    /// Whether anybody had the line.
    pub(super) had: bool,
    /// What was in it, where it had been changed.
    pub(super) dirty: Option<D>,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Asks the caches under a depth for a line: takes it away for a store, shares it otherwise.
    #[inline(always)]
    pub(super) fn snoop(&mut self, asked: &Asked, depth: usize) -> Snooped<D> {
        let others = &self.path(asked.cpu, asked.kind).under[depth];
        // As of instructions where none are fetched, and their lines are many and short.
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
        // All of what the path's largest line holds: caches may have lines of other sizes.
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

    /// What a neighbour had changed is everybody's now: of the neighbour's other caches, of the one
    /// that was asked through, or of memory.
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
