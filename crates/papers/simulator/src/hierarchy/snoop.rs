//! Snooping: requests to other caches for a line.

use super::{AccessKind, Hierarchy};
use crate::cache::State;

/// A request for a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) cpu: usize,
    pub(crate) kind: AccessKind,
    pub(crate) address: u64,
    /// The same in the nearest cache, which may count its lines otherwise.
    pub(crate) nearest: u64,
}

impl Request {
    /// For a line that all caches number alike.
    #[inline(always)]
    pub(crate) const fn of(cpu: usize, kind: AccessKind, address: u64) -> Self {
        Self { cpu, kind, address, nearest: address }
    }
}

/// The response of other caches.
pub(super) struct SnoopResult<D> {
    /// Whether any of them had the line.
    pub(super) had: bool,
    /// The data, where it was modified.
    pub(super) dirty: Option<D>,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Snoops the caches under a depth: invalidates the line for a store, shares it otherwise.
    #[inline(always)]
    pub(super) fn snoop(&mut self, request: &Request, depth: usize) -> SnoopResult<D> {
        let others = &self.path(request.cpu, request.kind).under[depth];
        // For instructions only if caches fetch them: their lines are many and short.
        let all_empty = others.iter().all(|at| self.units[*at as usize].cache.is_empty());
        match all_empty {
            true => SnoopResult { had: false, dirty: None },
            false => self.snoop_all(request, depth),
        }
    }

    fn snoop_all(&mut self, request: &Request, depth: usize) -> SnoopResult<D> {
        let mut response = SnoopResult { had: false, dirty: None };
        let Request { cpu, kind, address, .. } = *request;
        let Self { units, data, code, found, .. } = self;
        let path = match kind {
            AccessKind::Fetch => &code[cpu],
            AccessKind::Load | AccessKind::Store => &data[cpu],
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
                response.had = true;
                let is_dirty = state == State::Modified && !unit.write_through;
                if is_dirty && response.dirty.is_none() {
                    response.dirty = cache.data(line);
                }
                if kind == AccessKind::Store {
                    cache.drop_line(line);
                    found[cpu].invalidated += 1;
                } else if state.is_owned() {
                    cache.set_state(line, State::Shared);
                }
            }
        }
        if let Some(data) = response.dirty
            && size_of::<D>() > 0
        {
            self.settle(request, depth, data);
        }
        response
    }

    /// Writes a neighbour's modified line to where all see it: the neighbour's other caches, the
    /// shared cache through which it was response, or memory.
    fn settle(&mut self, request: &Request, depth: usize, data: D) {
        let Request { cpu, kind, address, .. } = *request;
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
