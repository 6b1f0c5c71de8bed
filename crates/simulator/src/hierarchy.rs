//! All caches of a machine, and what they agree on about each line.
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
//! cache outside of those it serves has it; within, those nearer settle the rest between them.

mod build;
mod fills;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::bus::Bus;
use crate::cache::{Cache, State, Victim};
use crate::preset::Protocol;
use crate::ticks::Ticks;

use fills::Fills;

/// What is done at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An instruction is fetched.
    Fetch,
    /// Data are read.
    Load,
    /// Data are written.
    Store,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Fetch, Kind::Load, Kind::Store];
}

/// Most caches on a path, and one more for memory.
pub const DEPTHS: usize = 4;

/// How an access went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// When the data can be used, or the store is done.
    pub ready: Ticks,
    /// How many caches on the path did not have it; all of them means memory.
    pub depth: u8,
    /// Whether another cache had changed it.
    pub dirty: bool,
}

/// What the accesses of a CPU found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Accesses by kind and depth at which the line was found.
    pub at: [[u64; DEPTHS]; 3],
    /// The state of the line in the last cache of the path, of those that got there, by kind and
    /// [`State::ALL`] (S2.16).
    pub state: [[u64; 4]; 3],
    /// Accesses that another cache had changed the line of, by kind.
    pub dirty: [u64; 3],
    /// Lines of other caches that stores took away.
    pub invalidated: u64,
    /// Lines that others' stores took away from this CPU's own caches.
    pub lost: u64,
}

#[derive(Debug, Clone)]
struct Unit<D> {
    cache: Cache<D>,
    latency: Ticks,
    inclusive: bool,
    /// Caches nearer to some CPU whose path leads through this one, nearest first.
    nearer: Vec<u16>,
    /// The cache behind this one; none where that is memory.
    next: Option<u16>,
}

/// Where a CPU's accesses go.
#[derive(Debug, Clone, Default)]
struct Path {
    steps: Steps,
    /// By depth: caches of other paths that lead through the one at that depth; at the end, every
    /// cache that is on no path of this CPU. Nearest first.
    under: Vec<Vec<u16>>,
}

/// The caches of a path, nearest first: copied at will.
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
    /// The way to memory.
    pub bus: Bus,
    /// What memory holds, where lines carry data.
    memory: HashMap<u64, D>,
    /// By CPU.
    pub found: Vec<Found>,
    names: Vec<String>,
}

impl<D: Copy + Default> Hierarchy<D> {
    /// Reads, writes or fetches at an address.
    #[inline(always)]
    pub fn access(&mut self, cpu: usize, kind: Kind, address: u64, now: Ticks) -> Access {
        match self.near(cpu, kind, address, now) {
            Ok(ready) => Access { ready, depth: 0, dirty: false },
            Err(state) => self.beyond(cpu, kind, address, (now, state)),
        }
    }

    /// When an access is done that the nearest cache settles; else what it knows of the line, for
    /// [`beyond`](Self::beyond).
    #[inline(always)]
    pub(crate) fn near(
        &mut self,
        cpu: usize,
        kind: Kind,
        address: u64,
        now: Ticks,
    ) -> Result<Ticks, State> {
        let path = match kind {
            Kind::Fetch => &self.code[cpu],
            Kind::Load | Kind::Store => &self.data[cpu],
        };
        let unit = &mut self.units[path.steps.caches[0] as usize];
        let state = unit.cache.touch(unit.cache.line_of(address));
        let here = match kind {
            Kind::Store => state == State::Modified,
            Kind::Fetch | Kind::Load => state != State::Invalid,
        };
        if !here {
            return Err(state);
        }
        self.found[cpu].at[kind as usize][0] += 1;
        Ok(self.fills.ready(address, now + unit.latency))
    }

    /// An access that the nearest cache can't settle.
    pub(crate) fn beyond(
        &mut self,
        cpu: usize,
        kind: Kind,
        address: u64,
        (now, state): (Ticks, State),
    ) -> Access {
        if state != State::Invalid {
            let ready = self.own(cpu, address, now);
            self.found[cpu].at[kind as usize][0] += 1;
            return Access { ready, depth: 0, dirty: false };
        }
        let (depth, state) = self.look_up(cpu, kind, address);
        self.found[cpu].at[kind as usize][depth] += 1;
        let path = self.path(cpu, kind);
        let is_memory = depth == path.steps.len();
        // To be written, a line that is only shared at this depth is asked for from everybody.
        let widest = match kind {
            Kind::Store if !state.is_owned() => path.steps.len(),
            _ => depth,
        };
        let asked = Asked { cpu, kind, address };
        let is_alone = path.under[widest].is_empty();
        let snooped = if is_alone { Snooped::NOTHING } else { self.snoop(&asked, widest) };
        let ready = if is_memory {
            self.bus.read(now, snooped.dirty.is_some())
        } else {
            let latency = self.units[self.path(cpu, kind).steps[depth] as usize].latency;
            // A neighbour's changes take the same way once more.
            let detour = if snooped.dirty.is_some() { latency } else { 0 };
            let upgraded = match widest > depth {
                true => self.bus.upgrade(now, !snooped.had),
                false => now,
            };
            self.fills.ready(address, upgraded.max(now) + latency + detour)
        };
        let dirty = snooped.dirty.is_some();
        self.found[cpu].dirty[kind as usize] += u64::from(dirty);
        let state = match (kind, state) {
            (Kind::Store, _) => State::Modified,
            // Instructions are nobody's own.
            (Kind::Fetch, _) => State::Shared,
            _ if snooped.had => State::Shared,
            (_, State::Invalid) if self.protocol == Protocol::Mesi => State::Exclusive,
            (_, state) if state.is_owned() => match self.protocol {
                Protocol::Mesi => State::Exclusive,
                Protocol::Msi => State::Shared,
            },
            _ => State::Shared,
        };
        self.fill(&asked, depth, state, now);
        self.fills.note(address, ready);
        Access { ready, depth: depth as u8, dirty }
    }

    /// Whether an access can be settled by the nearest cache.
    #[must_use]
    pub fn is_near(&self, cpu: usize, address: u64) -> bool {
        let cache = &self.units[self.data[cpu].steps.caches[0] as usize].cache;
        cache.peek(cache.line_of(address)) != State::Invalid
    }

    /// Where on its path a line is, and what is known of it there; `Invalid` where nowhere.
    fn look_up(&mut self, cpu: usize, kind: Kind, address: u64) -> (usize, State) {
        let path = match kind {
            Kind::Fetch => &self.code[cpu],
            Kind::Load | Kind::Store => &self.data[cpu],
        };
        let last = path.steps.len() - 1;
        let mut state = State::Invalid;
        let mut depth = 1;
        while depth <= last {
            let cache = &mut self.units[path.steps[depth] as usize].cache;
            state = cache.touch(cache.line_of(address));
            if depth == last {
                // Their order is that of `State::ALL`, the other way round.
                let at = State::ALL.len() - 1 - state as usize;
                self.found[cpu].state[kind as usize][at] += 1;
            }
            if state != State::Invalid {
                break;
            }
            depth += 1;
        }
        (depth, state)
    }

    fn path(&self, cpu: usize, kind: Kind) -> &Path {
        match kind {
            Kind::Fetch => &self.code[cpu],
            Kind::Load | Kind::Store => &self.data[cpu],
        }
    }

    /// Makes a line of the nearest cache, which has it unchanged, the CPU's own: when it is.
    fn own(&mut self, cpu: usize, address: u64, now: Ticks) -> Ticks {
        let caches = self.data[cpu].steps;
        let latency = self.units[caches[0] as usize].latency;
        let owned = caches.iter().position(|cache| {
            let cache = &self.units[*cache as usize].cache;
            cache.peek(cache.line_of(address)).is_owned()
        });
        let asked = Asked { cpu, kind: Kind::Store, address };
        let depth = owned.unwrap_or(caches.len());
        let ready = if depth == 0 {
            now
        } else {
            let snooped = self.snoop(&asked, depth);
            match owned {
                Some(depth) => now + self.units[caches[depth] as usize].latency,
                None => self.bus.upgrade(now, !snooped.had),
            }
        };
        self.modify_path(cpu, address);
        ready + latency
    }

    /// Says of every cache on the path that has the line that it was changed.
    fn modify_path(&mut self, cpu: usize, address: u64) {
        for at in 0..self.data[cpu].steps.len() {
            let cache = &mut self.units[self.data[cpu].steps[at] as usize].cache;
            cache.set_state(cache.line_of(address), State::Modified);
        }
    }

    /// Asks the caches under a depth for a line: takes it away for a store, shares it otherwise.
    fn snoop(&mut self, asked: &Asked, depth: usize) -> Snooped<D> {
        let mut snooped = Snooped::NOTHING;
        let Asked { cpu, kind, address } = *asked;
        let path = match kind {
            Kind::Fetch => &mut self.code[cpu],
            Kind::Load | Kind::Store => &mut self.data[cpu],
        };
        // All of what the path's largest line holds: caches may have lines of other sizes.
        let lines = |unit: &Unit<D>| unit.cache.line_bytes();
        let span = path.steps.iter().map(|at| lines(&self.units[*at as usize])).max().unwrap_or(1);
        let first = address & !(span - 1);
        // Lent, so that the caches can be changed meanwhile.
        let others = std::mem::take(&mut path.under[depth]);
        for at in &others {
            let cache = &mut self.units[*at as usize].cache;
            // As that of instructions is where none are fetched; its lines are many and short.
            if cache.is_empty() {
                continue;
            }
            for line in cache.line_of(first)..=cache.line_of(first + span - 1) {
                let state = cache.peek(line);
                snooped.had |= state != State::Invalid;
                if state == State::Modified && snooped.dirty.is_none() {
                    snooped.dirty = cache.data(line);
                }
                if state != State::Invalid && kind == Kind::Store {
                    cache.drop_line(line);
                    self.found[cpu].invalidated += 1;
                } else if state.is_owned() {
                    cache.set_state(line, State::Shared);
                }
            }
        }
        if let Some(data) = snooped.dirty
            && size_of::<D>() > 0
        {
            self.settle(asked, depth, (&others, data));
        }
        match kind {
            Kind::Fetch => self.code[cpu].under[depth] = others,
            Kind::Load | Kind::Store => self.data[cpu].under[depth] = others,
        }
        snooped
    }

    /// What a neighbour had changed is everybody's now: of the neighbour's other caches, of the one
    /// that was asked through, or of memory.
    fn settle(&mut self, asked: &Asked, depth: usize, (others, data): (&[u16], D)) {
        let Asked { cpu, kind, address } = *asked;
        for at in others {
            let cache = &mut self.units[*at as usize].cache;
            cache.set_data(cache.line_of(address), data);
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

    /// Puts a line into the caches that did not have it, farthest first.
    fn fill(&mut self, asked: &Asked, depth: usize, state: State, now: Ticks) {
        let Asked { cpu, kind, address } = *asked;
        let caches = self.path(cpu, kind).steps;
        let mut data = match caches.get(depth) {
            _ if size_of::<D>() == 0 => D::default(),
            Some(at) => {
                let cache = &mut self.units[*at as usize].cache;
                cache.data(cache.line_of(address)).unwrap_or_default()
            }
            None => self.recalled(address),
        };
        for at in caches[..depth].iter().rev() {
            data = self.put(*at, (address, state, data), now);
        }
        if kind == Kind::Store && depth < caches.len() {
            self.modify_path(cpu, address);
        }
    }

    /// Puts a line into one cache, and sends who has to leave on its way. Returns its data.
    fn put(&mut self, at: u16, (address, state, data): (u64, State, D), now: Ticks) -> D {
        let cache = &mut self.units[at as usize].cache;
        let line = cache.line_of(address);
        if let Some(victim) = cache.insert(line, state, data) {
            self.leave(at, victim, now);
        }
        data
    }

    /// A line leaves a cache: it is called back from nearer ones where this one includes them, and
    /// what was changed goes on to the next.
    fn leave(&mut self, at: u16, mut victim: Victim<D>, now: Ticks) {
        let unit = &self.units[at as usize];
        let address = unit.cache.address_of(victim.line);
        if unit.inclusive {
            let bytes = unit.cache.line_bytes();
            let mut newest = None;
            let nearer = std::mem::take(&mut self.units[at as usize].nearer);
            for nearer in &nearer {
                let cache = &mut self.units[*nearer as usize].cache;
                for line in cache.line_of(address)..=cache.line_of(address + bytes - 1) {
                    let Some(called) = cache.drop_line(line) else { continue };
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
            self.put(next, (address, State::Modified, victim.data), now);
        }
    }

    /// Reads a line ahead into the last cache of a path.
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
        // Others' lines are left alone: a guess is not worth taking them.
        let Some(last) = caches.last().copied().filter(|_| !held && !elsewhere) else { return };
        let ready = self.bus.prefetch(now);
        let state = match self.protocol {
            Protocol::Mesi => State::Exclusive,
            Protocol::Msi => State::Shared,
        };
        let data = self.recalled(address);
        self.put(last, (address, state, data), now);
        self.fills.note(address, ready);
    }

    /// What memory holds.
    fn recalled(&self, address: u64) -> D {
        if size_of::<D>() == 0 {
            return D::default();
        }
        self.memory.get(&self.key(address)).copied().unwrap_or_default()
    }

    fn remember(&mut self, address: u64, data: D) {
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

    /// Number of caches on a CPU's path of data.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self, cpu: usize) -> usize {
        usize::from(self.data[cpu].steps.count)
    }

    /// Names of the caches on a path of data, nearest first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Who asks for what.
struct Asked {
    cpu: usize,
    kind: Kind,
    address: u64,
}

/// What others had.
struct Snooped<D> {
    /// Whether anybody had the line.
    had: bool,
    /// What was in it, where it had been changed.
    dirty: Option<D>,
}

impl<D> Snooped<D> {
    const NOTHING: Self = Self { had: false, dirty: None };
}
