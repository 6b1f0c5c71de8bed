//! All caches of a machine, kept coherent.
//!
//! ```text
//!   CPU 0   CPU 1       a CPU's path: its caches, nearest first
//!   L1D     L1D         under a cache: those of other paths that lead through it
//!     └─ L2 ─┘          others: every cache that is not on the path at all
//!         │
//!        bus ── memory
//! ```
//!
//! Each cache knows the state of its lines. A line is `Modified` or `Exclusive` in a cache when no
//! cache outside of those it serves has it; those nearer settle the rest among themselves.

mod build;
mod fills;
mod lines;
mod snoop;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::bus::Bus;
use crate::cache::{Cache, State};
use crate::preset::Protocol;
use crate::ticks::Ticks;

use fills::Fills;
use lines::NewLine;
pub(crate) use snoop::Request;
use snoop::SnoopResult;

/// AccessKind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccessKind {
    /// An instruction fetch.
    Fetch,
    /// A read of data.
    Load,
    /// A write of data.
    Store,
}

impl AccessKind {
    /// All kinds.
    pub const ALL: [AccessKind; 3] = [AccessKind::Fetch, AccessKind::Load, AccessKind::Store];
}

/// Most caches on a path, and one more for memory.
pub const DEPTHS: usize = 4;

/// The result of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// When the data can be used, or the store is done.
    pub ready: Ticks,
    /// Number of caches on the path that missed; all of them means memory.
    pub depth: u8,
    /// Whether another cache had modified the line.
    pub dirty: bool,
}

/// Where the accesses of a CPU found their lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Accesses by kind and depth at which the line was found.
    pub at: [[u64; DEPTHS]; 3],
    /// The state of the line in the last cache of the path, of those that got there, by kind and
    /// [`State::ALL`] (S2.16).
    pub state: [[u64; 4]; 3],
    /// Accesses to lines that another cache had modified, by kind.
    pub dirty: [u64; 3],
    /// Lines invalidated in other caches by this CPU's stores.
    pub invalidated: u64,
    /// Lines invalidated in this CPU's caches by others' stores.
    pub lost: u64,
}

#[derive(Debug, Clone)]
struct Unit<D> {
    cache: Cache<D>,
    latency: Ticks,
    inclusive: bool,
    /// Whether a line modified here is so in the next cache, too: evicted, it is only dropped.
    write_through: bool,
    /// Whether its lines are numbered by micro-operations, not by addresses: no snoop and no
    /// recall finds them.
    decoded: bool,
    /// Threads whose lines are tagged separately; 1 where they are not.
    tags: u64,
    /// Caches of which this one is on the path to memory, nearest to a CPU first.
    nearer: Vec<u16>,
    /// The cache behind this one; none where that is memory.
    next: Option<u16>,
}

/// Bits of a line's number below its tag.
const TAG_SHIFT: u32 = 56;

impl<D: Copy + Default> Unit<D> {
    /// The number of an address's line for a CPU, with its tag.
    #[inline(always)]
    fn line_for(&self, cpu: usize, address: u64) -> u64 {
        let line = self.cache.line_of(address);
        match self.tags {
            1 => line,
            tags => line | (cpu as u64 % tags) << TAG_SHIFT,
        }
    }

    /// Address of a line's first byte, without its tag.
    fn address_of(&self, line: u64) -> u64 {
        let tag = if self.tags == 1 { 0 } else { line >> TAG_SHIFT << TAG_SHIFT };
        self.cache.address_of(line ^ tag)
    }

    /// Every number that the lines of `bytes` bytes from an address on may have.
    #[inline(always)]
    fn lines_from(&self, address: u64, bytes: u64) -> impl Iterator<Item = u64> + use<D> {
        let (first, lines) = (self.cache.line_of(address), self.cache.lines_of(bytes));
        (0..self.tags).flat_map(move |tag| {
            let first = first | tag << TAG_SHIFT;
            first..first + lines
        })
    }
}

/// The caches between a CPU and memory.
#[derive(Debug, Clone, Default)]
struct Path {
    steps: Steps,
    /// By depth: caches of other paths that lead through the one at that depth; at the end, every
    /// cache that is on no path of this CPU. Nearest first.
    under: Vec<Vec<u16>>,
    /// Bytes of the longest of its lines.
    span: u64,
}

/// The caches of a path, nearest first, in a `Copy` type.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    caches: [u16; DEPTHS - 1],
    count: u8,
}

impl std::ops::Deref for Steps {
    type Target = [u16];

    #[inline(always)]
    fn deref(&self) -> &[u16] {
        &self.caches[..usize::from(self.count)]
    }
}

/// Caches and the bus behind them.
#[derive(Debug, Clone)]
pub struct Hierarchy<D = ()> {
    units: Vec<Unit<D>>,
    data: Vec<Path>,
    code: Vec<Path>,
    protocol: Protocol,
    fills: Fills,
    /// The memory bus.
    pub bus: Bus,
    /// Contents of memory, where lines carry data.
    memory: HashMap<u64, D>,
    /// By CPU.
    pub found: Vec<AccessCounts>,
    names: Vec<String>,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Reads, writes or fetches at an address.
    #[inline(always)]
    pub fn access(&mut self, cpu: usize, kind: AccessKind, address: u64, now: Ticks) -> Access {
        match self.near(cpu, kind, address, now) {
            Ok(ready) => Access { ready, depth: 0, dirty: false },
            Err(state) => self.beyond(Request::of(cpu, kind, address), state, now),
        }
    }

    /// The end of an access that the nearest cache serves; else the state of the line there, for
    /// [`beyond`](Self::beyond).
    #[inline(always)]
    pub(crate) fn near(
        &mut self,
        cpu: usize,
        kind: AccessKind,
        address: u64,
        now: Ticks,
    ) -> Result<Ticks, State> {
        let path = match kind {
            AccessKind::Fetch => &self.code[cpu],
            AccessKind::Load | AccessKind::Store => &self.data[cpu],
        };
        let unit = &mut self.units[path.steps.caches[0] as usize];
        let state = unit.cache.touch(unit.line_for(cpu, address));
        let here = match kind {
            AccessKind::Store => state == State::Modified,
            AccessKind::Fetch | AccessKind::Load => state != State::Invalid,
        };
        if !here {
            return Err(state);
        }
        self.found[cpu].at[kind as usize][0] += 1;
        Ok(self.fills.ready(address, now + unit.latency))
    }

    /// An access that misses the nearest cache.
    pub(crate) fn beyond(&mut self, request: Request, state: State, now: Ticks) -> Access {
        let Request { cpu, kind, address, .. } = request;
        if state != State::Invalid && !self.is_written_elsewhere(cpu, address) {
            let ready = self.own(cpu, address, now);
            self.found[cpu].at[kind as usize][0] += 1;
            return Access { ready, depth: 0, dirty: false };
        }
        let (depth, state) = self.look_up(cpu, kind, address);
        let steps = self.path(cpu, kind).steps;
        // A write to a line that is only shared at this depth invalidates every other copy.
        let widest = match kind {
            AccessKind::Store if !state.is_owned() => steps.len(),
            _ => depth,
        };
        let response = self.snoop(&request, widest);
        let is_dirty = response.dirty.is_some();
        let ready = match steps.get(depth) {
            None => self.bus.read(now, is_dirty),
            Some(at) => {
                let latency = self.units[*at as usize].latency;
                // A modified line of a neighbour takes the same way once more.
                let detour = if is_dirty { latency } else { 0 };
                let upgraded = match widest > depth {
                    true => self.bus.upgrade(now, !response.had),
                    false => now,
                };
                self.fills.ready(address, upgraded.max(now) + latency + detour)
            }
        };
        let found = &mut self.found[cpu];
        found.at[kind as usize][depth] += 1;
        found.dirty[kind as usize] += u64::from(is_dirty);
        let state = self.state_of(kind, state, &response);
        self.fill(&request, depth, state, now);
        self.fills.note(address, ready);
        Access { ready, depth: depth as u8, dirty: is_dirty }
    }

    /// The state of a line in the caches that missed it.
    #[inline(always)]
    const fn state_of(&self, kind: AccessKind, state: State, response: &SnoopResult<D>) -> State {
        match (kind, state, self.protocol) {
            (AccessKind::Store, _, _) => State::Modified,
            // Lines of instructions are always shared.
            (AccessKind::Fetch, _, _) => State::Shared,
            _ if response.had => State::Shared,
            (_, State::Shared, _) | (_, _, Protocol::Msi) => State::Shared,
            (_, _, Protocol::Mesi) => State::Exclusive,
        }
    }

    /// The depth at which a line is found, and its state there; `Invalid` if in no cache.
    #[inline(always)]
    fn look_up(&mut self, cpu: usize, kind: AccessKind, address: u64) -> (usize, State) {
        let Self { units, data, code, found, .. } = self;
        let path = match kind {
            AccessKind::Fetch => &code[cpu],
            AccessKind::Load | AccessKind::Store => &data[cpu],
        };
        let farther = path.steps.get(1..).unwrap_or_default();
        for (depth, at) in (1..).zip(farther) {
            let unit = &mut units[*at as usize];
            let state = unit.cache.touch(unit.line_for(cpu, address));
            if depth == farther.len() {
                // `found.state` is in the order of `State::ALL`, which is the reverse.
                let at = State::ALL.len() - 1 - state as usize;
                found[cpu].state[kind as usize][at] += 1;
            }
            if state != State::Invalid {
                return (depth, state);
            }
        }
        (farther.len() + 1, State::Invalid)
    }

    #[inline(always)]
    fn path(&self, cpu: usize, kind: AccessKind) -> &Path {
        match kind {
            AccessKind::Fetch => &self.code[cpu],
            AccessKind::Load | AccessKind::Store => &self.data[cpu],
        }
    }

    /// Whether a line of the nearest cache is written to another, which has to get it first: stores
    /// go through the nearest.
    fn is_written_elsewhere(&self, cpu: usize, address: u64) -> bool {
        let [nearest, next, ..] = self.data[cpu].steps.caches;
        self.units[nearest as usize].write_through && {
            let next = &self.units[next as usize].cache;
            next.peek(next.line_of(address)) == State::Invalid
        }
    }

    /// Makes a shared line of the nearest cache exclusive; returns when it is.
    fn own(&mut self, cpu: usize, address: u64, now: Ticks) -> Ticks {
        let caches = self.data[cpu].steps;
        let latency = self.units[caches[0] as usize].latency;
        let owned = caches.iter().position(|cache| {
            let cache = &self.units[*cache as usize].cache;
            cache.peek(cache.line_of(address)).is_owned()
        });
        let request = Request::of(cpu, AccessKind::Store, address);
        let depth = owned.unwrap_or(caches.len());
        let ready = if depth == 0 {
            now
        } else {
            let response = self.snoop(&request, depth);
            match owned {
                Some(depth) => now + self.units[caches[depth] as usize].latency,
                None => self.bus.upgrade(now, !response.had),
            }
        };
        self.modify_path(cpu, address, 0);
        ready + latency
    }

    /// Marks a line modified in every cache on the path from a depth on that has it.
    fn modify_path(&mut self, cpu: usize, address: u64, depth: usize) {
        for at in &self.data[cpu].steps[depth..] {
            let cache = &mut self.units[*at as usize].cache;
            cache.set_state(cache.line_of(address), State::Modified);
        }
    }

    /// Prefetches a line into the last cache of a path.
    pub fn prefetch(&mut self, cpu: usize, address: u64, now: Ticks) {
        let caches = self.data[cpu].steps;
        let held = caches.iter().any(|at| {
            let cache = &self.units[*at as usize].cache;
            cache.peek(cache.line_of(address)) != State::Invalid
        });
        let others = self.data[cpu].under.last().map_or(&[][..], Vec::as_slice);
        let elsewhere = others.iter().any(|at| {
            let cache = &self.units[*at as usize].cache;
            cache.peek(cache.line_of(address)) != State::Invalid
        });
        // Lines of other CPUs are left alone: a guess is not worth taking them.
        let Some(last) = caches.last().copied().filter(|_| !held && !elsewhere) else { return };
        let ready = self.bus.prefetch(now);
        let state = match self.protocol {
            Protocol::Mesi => State::Exclusive,
            Protocol::Msi => State::Shared,
        };
        let data = self.recalled(address);
        self.put(NewLine { cache: last, cpu, address, state, data }, now);
        self.fills.note(address, ready);
    }

    /// Names of the data caches on a path, nearest first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}
