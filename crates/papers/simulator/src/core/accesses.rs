//! What each kind of operation costs.

use super::{Cpu, Turn};
use crate::cache::State;
use crate::counts::Cause;
use crate::hierarchy::{Access, Kind};
use crate::op::After;
use crate::ticks::{CYCLE, Ticks};

/// What an access waits for beyond the nearest cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// The translation.
    tlb: Ticks,
    /// Room for a line on its way.
    admission: Ticks,
    /// The line.
    line: Ticks,
    /// Where the line was.
    cause: Cause,
}

impl Parts {
    pub(super) const fn each(&self) -> [(Cause, Ticks); 3] {
        [(Cause::DataTlb, self.tlb), (Cause::Outstanding, self.admission), (self.cause, self.line)]
    }

    const fn is_nothing(&self) -> bool {
        self.tlb | self.admission | self.line == 0
    }

    /// What most of it is for; nothing if it waits for nothing.
    fn most(&self) -> Option<Cause> {
        let [first, second, third] = self.each();
        let larger =
            |one: (Cause, Ticks), two: (Cause, Ticks)| if two.1 > one.1 { two } else { one };
        let (cause, length) = larger(larger(first, second), third);
        (length > 0).then_some(cause)
    }
}

impl Turn<'_> {
    /// Takes the front for operations, when it is free.
    #[inline(always)]
    pub(super) fn take_front(&mut self, uops: u32) {
        let Self { cpu, core, shape, .. } = self;
        let length = Ticks::from(uops) * shape.uop;
        if !cpu.alone {
            // In the gaps of a sibling that waits, too.
            let begun = core.front.take(cpu.now, length);
            cpu.lose(Cause::Sibling, begun - cpu.now);
        }
        cpu.now += length;
        cpu.counts.computation += length;
    }

    /// Reads from the line of an address.
    #[inline(always)]
    pub(super) fn load(&mut self, address: u64, after: After) {
        let cpu = &mut *self.cpu;
        cpu.counts.loads += 1;
        let known = match after {
            After::Nothing => 0,
            After::Load => cpu.chain,
            After::Announcement => cpu.announced.when(address).unwrap_or(cpu.chain),
        };
        let issued = cpu.now.max(known);
        let (ready, parts) = self.reach(Kind::Load, address, issued);
        let Self { cpu, shape, .. } = self;
        if !cpu.alone {
            // Until it is done, it may have been done too early.
            cpu.touched.note(address, ready);
        }
        cpu.chain = ready;
        if shape.window == 0 {
            cpu.wait_for(ready, &parts);
        } else if ready > cpu.now + shape.nearest {
            // Also where the nearest cache has it, of an address that is not known yet.
            cpu.fly(ready, parts.most());
        }
    }

    /// Writes to the line of an address. Where stores wait in a buffer there is room for one more,
    /// unless that is shared: until when this one is to be in it.
    #[inline(always)]
    pub(super) fn store(&mut self, address: u64) -> Option<Ticks> {
        self.cpu.counts.stores += 1;
        let (ready, parts) = self.reach(Kind::Store, address, self.cpu.now);
        let Self { cpu, shape, .. } = self;
        if shape.stores == 0 {
            cpu.wait_for(ready, &parts);
            return None;
        }
        while cpu.storing.front().is_some_and(|done| *done <= cpu.now) {
            cpu.storing.pop_front();
        }
        if !shape.stores_shared
            && cpu.storing.len() >= cpu.stores
            && let Some(done) = cpu.storing.pop_front()
        {
            cpu.lose(Cause::Stores, done - cpu.now);
        }
        // One after the other.
        let before = cpu.storing.back().copied().unwrap_or_default();
        Some(ready.max(before))
    }

    /// What the translation of an address costs.
    #[inline(always)]
    fn translated(&mut self, address: u64) -> Ticks {
        let Self { cpu, core, shape, .. } = self;
        if core.data_tlb.of(cpu.place.1).touch(cpu.space, address) {
            return 0;
        }
        cpu.counts.data_tlb_misses += 1;
        shape.data_tlb_cost
    }

    /// Gets at a line through the translation and the caches: when it can be used.
    #[inline(always)]
    fn reach(&mut self, kind: Kind, address: u64, asked: Ticks) -> (Ticks, Parts) {
        let tlb = self.translated(address);
        let issued = asked + tlb;
        let mut parts = Parts { tlb, admission: 0, line: 0, cause: Cause::Memory };
        let ready = match self.hierarchy.near(self.at, kind, address, issued) {
            Ok(ready) => ready,
            Err(state) => self.miss((kind, address, state), issued, &mut parts),
        };
        // Also of a line that is in the nearest cache by now, but still on its way.
        parts.line = (ready - issued - parts.admission).saturating_sub(self.shape.nearest);
        if !parts.is_nothing() {
            let penalty = &mut self.cpu.counts.penalty;
            for (cause, length) in parts.each() {
                penalty[cause as usize] += length;
            }
        }
        (ready, parts)
    }

    /// An access that the nearest cache can't settle: when it is done.
    #[inline(never)]
    fn miss(
        &mut self,
        (kind, address, state): (Kind, u64, State),
        issued: Ticks,
        parts: &mut Parts,
    ) -> Ticks {
        let (access, admission) = self.beyond((kind, address, state), issued);
        if access.depth > 0 {
            parts.cause = match usize::from(access.depth) {
                depth if depth >= self.shape.depth => Cause::Memory,
                1 => Cause::Second,
                _ => Cause::Third,
            };
            parts.admission = admission;
            let Self { at, core, hierarchy, .. } = self;
            if let Some(streams) = &mut core.streams
                && parts.cause == Cause::Memory
            {
                streams.missed(address, |line| hierarchy.prefetch(*at, line, issued));
            }
        }
        access.ready
    }

    /// An access beyond the nearest cache; where that has no line, it waits for room for one first.
    /// Returns how long that was.
    #[inline(always)]
    fn beyond(
        &mut self,
        (kind, address, state): (Kind, u64, State),
        issued: Ticks,
    ) -> (Access, Ticks) {
        let places = self.core.outstanding.of(self.cpu.place.1);
        let admitted = match state {
            State::Invalid => places.free_from(issued),
            // It is there, but not to be written yet.
            _ => issued,
        };
        let access = self.hierarchy.beyond(self.at, kind, address, (admitted, state));
        if access.depth > 0 {
            places.take(admitted, access.ready);
        }
        (access, admitted - issued)
    }

    /// An address is known from now on: since when.
    #[inline(always)]
    pub(super) fn announce(&mut self, address: u64) -> Ticks {
        let known = self.cpu.now.max(self.cpu.chain);
        self.cpu.announced.note(address, known);
        known
    }

    /// A hint brings a line, unless it is dropped for want of a translation (S4.5).
    pub(super) fn hint(&mut self, address: u64, known: Ticks) {
        let Self { cpu, core, shape, .. } = self;
        cpu.counts.hints += 1;
        let tlb = core.data_tlb.of(cpu.place.1);
        if shape.drops_hints && !tlb.holds(cpu.space, address) {
            cpu.counts.hints_dropped += 1;
            return;
        }
        let issued = known + self.translated(address);
        let Err(state) = self.hierarchy.near(self.at, Kind::Load, address, issued) else { return };
        let (_, waited) = self.beyond((Kind::Load, address, state), issued);
        // A hint without room for its line holds up those behind it.
        self.cpu.pay(Cause::Outstanding, waited);
    }

    /// A branch: guessed, and paid for if wrong.
    pub(super) fn branch(&mut self, branch: (u64, bool), taken: bool) {
        let Self { cpu, core, shape, .. } = self;
        cpu.counts.branches += 1;
        let Some(predictor) = &mut core.predictor else { return };
        let guess = predictor.guess(cpu.place.1, branch, taken);
        cpu.counts.target_misses += u64::from(guess.no_target);
        if guess.wrong {
            cpu.counts.mispredicts += 1;
            // It is known to be wrong once what it asks for is there.
            if shape.window > 0 {
                cpu.wait_until(cpu.chain);
            }
            cpu.pay(Cause::Branch, shape.mispredict);
        }
    }

    /// Instructions come from their caches; the core waits for them. Lines of one run are asked for
    /// together: a trace line of 8 bytes is a small part of what the next cache sends.
    pub(super) fn fetch(&mut self, address: u64, bytes: u16) {
        self.cpu.begun.get_or_insert(self.cpu.now);
        let mut asked = self.cpu.now;
        let line = self.shape.code_line;
        let mut next = address & !(line - 1);
        while next < address + u64::from(bytes.max(1)) {
            asked = self.fetch_line(next, asked);
            next += line;
        }
    }

    /// A line of a run that is asked for at a time, or once its page is known: that is returned.
    fn fetch_line(&mut self, address: u64, mut asked: Ticks) -> Ticks {
        let Self { cpu, core, shape, hierarchy, .. } = self;
        if let Some(tlb) = &mut core.code_tlb
            && !tlb.of(cpu.place.1).touch(cpu.space, address)
        {
            cpu.counts.code_tlb_misses += 1;
            cpu.pay(Cause::CodeTlb, shape.code_tlb_cost);
            asked += shape.code_tlb_cost;
        }
        let access = hierarchy.access(self.at, Kind::Fetch, address, asked);
        if access.depth > 0 {
            // What the nearest cache takes is part of the pipeline.
            let waited = access.ready.saturating_sub(cpu.now + shape.nearest_code);
            cpu.pay(Cause::Code, waited);
        }
        asked
    }

    /// Waits, as a spin loop does.
    pub(super) fn pause(&mut self, cycles: u32) {
        self.cpu.pay(Cause::Pause, Ticks::from(cycles) * CYCLE);
    }
}

impl Cpu {
    /// Counts operations that begin.
    #[inline(always)]
    pub(super) fn count(&mut self, uops: u32) {
        self.begun.get_or_insert(self.now);
        self.counts.uops += u64::from(uops);
    }
}
