//! Cost of each kind of operation.

use super::combining::StoreStart;
use super::exposure::Exposure;
use super::{Core, Cpu, CpuContext};
use crate::branches::BranchSite;
use crate::cache::State;
use crate::counts::Cause;
use crate::hierarchy::{Access, AccessKind, Request};
use crate::op::Dependence;
use crate::ticks::{CYCLE, Ticks};

/// An access that the nearest cache doesn't serve, with the state of its line there.
#[derive(Clone, Copy)]
struct Miss {
    kind: AccessKind,
    address: u64,
    state: State,
}

/// When an access is made.
#[derive(Clone, Copy)]
struct Start {
    /// Its address is known.
    known: Ticks,
    /// With its translation, it doesn't reach the caches before.
    earliest: Ticks,
}

impl Start {
    /// As soon as the address is known and translated.
    const fn at(known: Ticks) -> Self {
        Self { known, earliest: 0 }
    }
}

/// The delay of an access beyond the nearest cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessDelay {
    /// Address translation.
    tlb: Ticks,
    /// A free fill buffer.
    admission: Ticks,
    /// The line itself.
    line: Ticks,
    /// Where the line was found.
    cause: Cause,
}

impl AccessDelay {
    pub(super) const fn each(&self) -> [(Cause, Ticks); 3] {
        [(Cause::DataTlb, self.tlb), (Cause::Outstanding, self.admission), (self.cause, self.line)]
    }

    const fn is_nothing(&self) -> bool {
        self.tlb | self.admission | self.line == 0
    }

    /// The cause with the largest share; `None` if it waits for nothing.
    fn most(&self) -> Option<Cause> {
        let [first, second, third] = self.each();
        let larger =
            |one: (Cause, Ticks), two: (Cause, Ticks)| if two.1 > one.1 { two } else { one };
        let (cause, length) = larger(larger(first, second), third);
        (length > 0).then_some(cause)
    }
}

impl CpuContext<'_> {
    /// Occupies the front end with operations, once it is free.
    #[inline(always)]
    pub(super) fn take_front(&mut self, uops: u32) {
        let Self { cpu, core, parameters, .. } = self;
        let length = Ticks::from(uops) * parameters.uop;
        if !cpu.alone {
            // In the gaps of a waiting sibling, too.
            let begun = core.front.take(cpu.now, length);
            cpu.lose(Cause::Sibling, begun - cpu.now);
        }
        cpu.slots.begin(cpu.now, cpu.now + length, &mut cpu.counts);
        cpu.now += length;
        cpu.counts.computation += length;
    }

    /// Retires the operations that began last: a cycle later, and behind all loads so far.
    #[inline(always)]
    pub(super) fn retire(&mut self, uops: u32) {
        let Self { cpu, parameters, .. } = self;
        let first = cpu.now + CYCLE - Ticks::from(uops) * parameters.uop;
        cpu.slots.retire(uops, parameters.uop, first.max(cpu.retired), &mut cpu.counts);
    }

    /// Reads from the line of an address; returns how long it is exposed to stores of siblings.
    #[inline(always)]
    pub(super) fn load(&mut self, address: u64, after: Dependence) -> Exposure {
        let cpu = &mut *self.cpu;
        cpu.counts.loads += 1;
        if cpu.counts.loads >= cpu.load_room_to {
            cpu.make_load_room();
        }
        let known = match after {
            Dependence::None => 0,
            Dependence::Load => cpu.loaded,
            Dependence::Announcement => cpu.announced.last(address).unwrap_or(cpu.loaded),
        };
        let issued = cpu.now.max(known);
        let (ready, parts) = self.reach(AccessKind::Load, address, Start::at(issued));
        let Self { cpu, parameters, .. } = self;
        cpu.loaded = ready;
        cpu.retired = cpu.retired.max(ready);
        let exposure = Exposure { from: issued, until: cpu.retired };
        if parameters.window == 0 {
            cpu.wait_for(ready, &parts);
        } else if ready > cpu.now + parameters.nearest {
            // Also a hit of the nearest cache whose address is not known yet.
            cpu.issue_load(ready, parts.most());
        }
        exposure
    }

    /// Writes to the line of an address; returns when the store leaves its buffer, after those
    /// before it and after every load before it. Waits for room in the buffer if it is private.
    #[inline(always)]
    pub(super) fn store(&mut self, address: u64) -> Ticks {
        self.cpu.counts.stores += 1;
        if self.core.combining.is_some() {
            return self.combined_store(address);
        }
        let start = Start::at(self.cpu.now);
        let (ready, parts) = self.reach(AccessKind::Store, address, start);
        if self.parameters.stores == 0 {
            self.cpu.wait_for(ready, &parts);
            return ready;
        }
        self.make_store_room();
        ready.max(self.cpu.stores_left()).max(self.cpu.retired)
    }

    /// A store that reaches the caches in order and once it has retired; it leaves the store buffer
    /// when its line, or a buffer that gathers stores to its line, takes it.
    fn combined_store(&mut self, address: u64) -> Ticks {
        self.make_store_room();
        // The nearest cache takes one while it is still busy with the one before.
        let before = self.cpu.stores_left().saturating_sub(self.parameters.nearest);
        let earliest = before.max(self.cpu.retired);
        let start = Start { known: self.cpu.now, earliest };
        let (ready, parts) = self.reach(AccessKind::Store, address, start);
        ready - parts.line
    }

    /// Waits for room in a store buffer of the thread's own.
    #[inline(always)]
    fn make_store_room(&mut self) {
        let Self { cpu, parameters, .. } = self;
        while cpu.store_buffer.front().is_some_and(|done| *done <= cpu.now) {
            cpu.store_buffer.pop_front();
        }
        if !parameters.stores_shared
            && cpu.store_buffer.len() >= cpu.stores
            && let Some(done) = cpu.store_buffer.pop_front()
        {
            cpu.lose(Cause::Stores, done - cpu.now);
        }
    }

    /// Time that the translation of an address takes from `known` on.
    #[inline(always)]
    fn translated(&mut self, address: u64, known: Ticks) -> Ticks {
        let Self { cpu, core, parameters, .. } = self;
        if core.data_tlb.of(cpu.place.1).touch(cpu.space, address) {
            return 0;
        }
        cpu.counts.data_tlb_misses += 1;
        core.walk(known, parameters.data_tlb_cost)
    }

    /// Accesses a line through the TLB and the caches; returns when it can be used.
    #[inline(always)]
    fn reach(&mut self, kind: AccessKind, address: u64, start: Start) -> (Ticks, AccessDelay) {
        let tlb = self.translated(address, start.known);
        let issued = (start.known + tlb).max(start.earliest);
        let mut parts = AccessDelay { tlb, admission: 0, line: 0, cause: Cause::Memory };
        let ready = match self.hierarchy.near(self.at, kind, address, issued) {
            Ok(ready) => ready,
            Err(state) => self.miss(Miss { kind, address, state }, issued, &mut parts),
        };
        // Also of a line that is in the nearest cache by now, but still being filled.
        parts.line = (ready - issued - parts.admission).saturating_sub(self.parameters.nearest);
        if !parts.is_nothing() {
            let penalty = &mut self.cpu.counts.penalty;
            for (cause, length) in parts.each() {
                penalty[cause as usize] += length;
            }
        }
        (ready, parts)
    }

    /// An access that misses the nearest cache; returns when it is done.
    #[inline(never)]
    fn miss(&mut self, miss: Miss, issued: Ticks, parts: &mut AccessDelay) -> Ticks {
        let (access, admission) = self.beyond(miss, issued);
        if access.depth > 0 {
            parts.cause = match usize::from(access.depth) {
                depth if depth >= self.parameters.depth => Cause::Memory,
                1 => Cause::Second,
                _ => Cause::Third,
            };
            parts.admission = admission;
            let Self { at, core, hierarchy, .. } = self;
            if let Some(streams) = &mut core.streams
                && parts.cause == Cause::Memory
            {
                streams.missed(miss.address, |line| hierarchy.prefetch(*at, line, issued));
            }
        }
        access.ready
    }

    /// An access beyond the nearest cache; a miss first waits for a free fill buffer. Returns how
    /// long that took.
    #[inline(always)]
    fn beyond(&mut self, miss: Miss, issued: Ticks) -> (Access, Ticks) {
        let Miss { kind, address, state } = miss;
        let Self { at, cpu, core, hierarchy, parameters } = self;
        let request = Request::of(*at, kind, address);
        if kind == AccessKind::Store
            && let Some(combining) = &mut core.combining
        {
            let start = StoreStart { address, issued, nearest: parameters.nearest };
            let beyond = |admitted| hierarchy.beyond(request, state, admitted);
            return combining.of(cpu.place.1).gather(start, beyond);
        }
        let places = core.outstanding.of(cpu.place.1);
        let admitted = match state {
            State::Invalid => places.free_from(issued),
            // The line is there, but not writable.
            _ => issued,
        };
        let access = hierarchy.beyond(request, state, admitted);
        if access.depth > 0 {
            places.take(admitted, access.ready);
        }
        (access, admitted - issued)
    }

    /// Announces an address; returns when it is known.
    #[inline(always)]
    pub(super) fn announce(&mut self, address: u64) -> Ticks {
        let known = self.cpu.now.max(self.cpu.loaded);
        self.cpu.announced.note(address, known);
        known
    }

    /// A prefetch instruction fetches a line, unless it is dropped because of a TLB miss (S4.5).
    pub(super) fn hint(&mut self, address: u64, known: Ticks) {
        let Self { cpu, core, parameters, .. } = self;
        cpu.counts.hints += 1;
        let tlb = core.data_tlb.of(cpu.place.1);
        if parameters.drops_hints && !tlb.holds(cpu.space, address) {
            cpu.counts.hints_dropped += 1;
            return;
        }
        let issued = known + self.translated(address, known);
        let Err(state) = self.hierarchy.near(self.at, AccessKind::Load, address, issued) else {
            return;
        };
        let miss = Miss { kind: AccessKind::Load, address, state };
        let (_, waited) = self.beyond(miss, issued);
        // A hint without a free fill buffer delays those after it.
        self.cpu.pay(Cause::Outstanding, waited);
    }

    /// A branch: predicted, with a penalty if mispredicted.
    pub(super) fn branch(&mut self, site: BranchSite, taken: bool) {
        let Self { cpu, core, parameters, .. } = self;
        cpu.counts.branches += 1;
        let Some(predictor) = &mut core.predictor else { return };
        let guess = predictor.guess(cpu.place.1, site, taken);
        cpu.counts.target_misses += u64::from(guess.no_target);
        if guess.wrong {
            cpu.counts.mispredicts += 1;
            // A misprediction is known once the loaded value is there.
            if parameters.window > 0 {
                cpu.wait_until(cpu.loaded);
            }
            cpu.pay(Cause::Branch, parameters.mispredict);
        }
    }

    /// Waits, as a spin loop does. Where the machine has the instruction, nothing that began before
    /// it is in flight meanwhile: what threads share of the window and the fill buffers is all the
    /// siblings'.
    pub(super) fn pause(&mut self, cycles: u32) {
        if self.parameters.pause_drains {
            self.cpu.wait_for_loads();
        }
        self.idle(cycles);
    }

    /// Executes nothing; loads in flight go on.
    pub(super) fn idle(&mut self, cycles: u32) {
        self.cpu.begun.get_or_insert(self.cpu.now);
        self.cpu.pay(Cause::Pause, Ticks::from(cycles) * CYCLE);
    }
}

impl Core {
    /// Duration of a page walk of `cost` from `known` on, with its wait for a walker.
    pub(super) fn walk(&mut self, known: Ticks, cost: Ticks) -> Ticks {
        let begun = self.walkers.free_from(known);
        self.walkers.take(begun, begun + cost);
        begun + cost - known
    }
}

impl Cpu {
    /// When the last store so far leaves the buffer.
    #[inline(always)]
    fn stores_left(&self) -> Ticks {
        self.store_buffer.back().copied().unwrap_or_default()
    }

    /// Counts operations that begin.
    #[inline(always)]
    pub(super) fn count(&mut self, uops: u32) {
        self.begun.get_or_insert(self.now);
        self.counts.uops += u64::from(uops);
    }
}
