//! What each kind of operation costs.

use super::{Cpu, Processor};
use crate::cache::State;
use crate::calendar::Places;
use crate::counts::Cause;
use crate::hierarchy::{Access, Hierarchy, Kind};
use crate::op::After;
use crate::ticks::{CYCLE, Ticks};

/// What an access waits for beyond the nearest cache.
#[derive(Debug, Clone, Copy)]
struct Parts {
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
    fn each(&self) -> [(Cause, Ticks); 3] {
        [(Cause::DataTlb, self.tlb), (Cause::Outstanding, self.admission), (self.cause, self.line)]
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

impl Processor {
    /// Begins operations: when the front is free, and the window has room.
    #[inline(always)]
    pub(super) fn begin(&mut self, at: usize, uops: u32) {
        let (core, _) = self.place(at);
        let cpu = &mut self.cpus[at];
        cpu.begun.get_or_insert(cpu.now);
        cpu.counts.uops += u64::from(uops);
        if self.window_shared {
            self.make_shared_room(at);
        } else if self.window > 0 {
            cpu.make_room(self.window);
        }
        let cpu = &mut self.cpus[at];
        let length = Ticks::from(uops) * self.uop;
        if self.preset.threads > 1 {
            // In the gaps of a sibling that waits, too.
            let begun = self.cores[core].front.take(cpu.now, length);
            cpu.lose(Cause::Sibling, begun - cpu.now);
        }
        cpu.now += length;
        cpu.counts.computation += length;
    }

    /// Reads from the line of an address.
    #[inline(always)]
    pub(super) fn load(&mut self, at: usize, address: u64, after: After) {
        let cpu = &mut self.cpus[at];
        cpu.counts.loads += 1;
        let known = match after {
            After::Nothing => 0,
            After::Load => cpu.chain,
            After::Announcement => cpu.announced.when(address).unwrap_or(cpu.chain),
        };
        let issued = cpu.now.max(known);
        let (ready, parts) = self.reach(at, Kind::Load, address, issued);
        let cpu = &mut self.cpus[at];
        if self.preset.threads > 1 {
            // Until it is done, it may have been done too early.
            cpu.touched.note(address, ready);
        }
        cpu.chain = ready;
        if self.window == 0 {
            cpu.wait_for(ready, &parts);
        } else if ready > cpu.now + self.nearest {
            // Also where the nearest cache has it, of an address that is not known yet.
            cpu.flying.push_back((cpu.counts.uops, ready, parts.most()));
        }
    }

    /// Writes to the line of an address.
    #[inline(always)]
    pub(super) fn store(&mut self, at: usize, address: u64) {
        self.cpus[at].counts.stores += 1;
        if self.preset.threads > 1 {
            self.clear_siblings(at, address);
        }
        let issued = self.cpus[at].now;
        let (ready, parts) = self.reach(at, Kind::Store, address, issued);
        let cpu = &mut self.cpus[at];
        if self.stores == 0 {
            return cpu.wait_for(ready, &parts);
        }
        while cpu.storing.front().is_some_and(|done| *done <= cpu.now) {
            cpu.storing.pop_front();
        }
        if self.stores_shared {
            self.make_shared_store(at);
        } else if cpu.storing.len() >= self.stores
            && let Some(done) = cpu.storing.pop_front()
        {
            cpu.lose(Cause::Stores, done - cpu.now);
        }
        let cpu = &mut self.cpus[at];
        let before = cpu.storing.back().copied().unwrap_or_default();
        cpu.storing.push_back(ready.max(before));
    }

    /// Gets at a line through the translation and the caches: when it can be used.
    #[inline(always)]
    fn reach(&mut self, at: usize, kind: Kind, address: u64, asked: Ticks) -> (Ticks, Parts) {
        let (core, thread) = self.place(at);
        let cpu = &mut self.cpus[at];
        let core = &mut self.cores[core];
        let mut parts = Parts { tlb: 0, admission: 0, line: 0, cause: Cause::Memory };
        if !core.data_tlb.of(thread).touch(cpu.space, address) {
            cpu.counts.data_tlb_misses += 1;
            parts.tlb = self.data_tlb_cost;
        }
        let issued = asked + parts.tlb;
        let places = core.outstanding.of(thread);
        let (access, admission) = past(&mut self.hierarchy, places, (at, kind, address), issued);
        let ready = access.ready;
        if access.depth > 0 {
            parts.cause = cause(access, self.hierarchy.depth(at));
            parts.admission = admission;
            if let Some(streams) = &mut core.streams
                && parts.cause == Cause::Memory
            {
                let hierarchy = &mut self.hierarchy;
                streams.missed(address, |line| hierarchy.prefetch(at, line, issued));
            }
        }
        // Also of a line that is in the nearest cache by now, but still on its way.
        parts.line = (ready - issued - parts.admission).saturating_sub(self.nearest);
        if parts.tlb | parts.admission | parts.line != 0 {
            let penalty = &mut self.cpus[at].counts.penalty;
            for (cause, length) in parts.each() {
                penalty[cause as usize] += length;
            }
        }
        (ready, parts)
    }

    /// A store to a line that siblings read a moment ago clears the core's pipeline, at a fixed
    /// cost for all that touched it (S4.15, S4.31).
    fn clear_siblings(&mut self, at: usize, address: u64) {
        let (core, _) = self.place(at);
        let threads = self.preset.threads as usize;
        let now = self.cpus[at].now;
        let since = now.saturating_sub(self.clear_window);
        let mut cleared = false;
        for sibling in core * threads..(core + 1) * threads {
            let cpu = &mut self.cpus[sibling];
            let near = cpu.touched.when(address).is_some_and(|when| when >= since);
            if sibling != at && near {
                cpu.pay(Cause::Clear, self.clear);
                cleared = true;
            }
        }
        if cleared {
            let cpu = &mut self.cpus[at];
            cpu.counts.clears += 1;
            cpu.pay(Cause::Clear, self.clear);
        }
    }

    /// An address is known; a hint brings its line, unless it is dropped for want of a translation
    /// (S4.5).
    pub(super) fn announce(&mut self, at: usize, address: u64, hint: bool) {
        let cpu = &mut self.cpus[at];
        let known = cpu.now.max(cpu.chain);
        cpu.announced.note(address, known);
        if !hint {
            return;
        }
        self.begin(at, 1);
        let (core, thread) = self.place(at);
        let cpu = &mut self.cpus[at];
        cpu.counts.hints += 1;
        let core = &mut self.cores[core];
        if self.preset.core.drops_hints && !core.data_tlb.of(thread).holds(cpu.space, address) {
            cpu.counts.hints_dropped += 1;
            return;
        }
        let mut issued = known;
        if !core.data_tlb.of(thread).touch(cpu.space, address) {
            cpu.counts.data_tlb_misses += 1;
            issued += self.data_tlb_cost;
        }
        let places = core.outstanding.of(thread);
        let asked = (at, Kind::Load, address);
        let (_, waited) = past(&mut self.hierarchy, places, asked, issued);
        // A hint without room for its line holds up those behind it.
        self.cpus[at].pay(Cause::Outstanding, waited);
    }

    /// A branch: guessed, and paid for if wrong.
    pub(super) fn branch(&mut self, at: usize, branch: (u64, bool), taken: bool) {
        self.begin(at, 1);
        let (core, thread) = self.place(at);
        let cpu = &mut self.cpus[at];
        cpu.counts.branches += 1;
        let Some(predictor) = &mut self.cores[core].predictor else { return };
        let guess = predictor.guess(thread, branch, taken);
        cpu.counts.target_misses += u64::from(guess.no_target);
        if guess.wrong {
            cpu.counts.mispredicts += 1;
            // It is known to be wrong once what it asks for is there.
            let known = cpu.chain.max(cpu.now);
            let waited = known - cpu.now;
            if self.window > 0 && waited > 0 {
                let cause = cpu.flying.back().map_or(Some(Cause::Branch), |(_, _, cause)| *cause);
                cpu.lose_or_compute(cause, waited);
            }
            cpu.pay(Cause::Branch, self.mispredict);
        }
    }

    /// Instructions come from their caches; the core waits for them.
    pub(super) fn fetch(&mut self, at: usize, address: u64, bytes: u16) {
        let cpu = &mut self.cpus[at];
        cpu.begun.get_or_insert(cpu.now);
        let line = self.code_line;
        let mut next = address & !(line - 1);
        while next < address + u64::from(bytes.max(1)) {
            self.fetch_line(at, next);
            next += line;
        }
    }

    fn fetch_line(&mut self, at: usize, address: u64) {
        let (core, thread) = self.place(at);
        let cpu = &mut self.cpus[at];
        if let Some(tlb) = &mut self.cores[core].code_tlb
            && !tlb.of(thread).touch(cpu.space, address)
        {
            cpu.counts.code_tlb_misses += 1;
            cpu.pay(Cause::CodeTlb, self.code_tlb_cost);
        }
        let now = cpu.now;
        let access = self.hierarchy.access(at, Kind::Fetch, address, now);
        if access.depth > 0 {
            // What the nearest cache takes is part of the pipeline.
            self.cpus[at].pay(Cause::Code, (access.ready - now).saturating_sub(self.nearest_code));
        }
    }

    /// Waits, as a spin loop does.
    pub(super) fn pause(&mut self, at: usize, cycles: u32) {
        self.begin(at, 1);
        self.cpus[at].pay(Cause::Pause, Ticks::from(cycles) * CYCLE);
    }
}

/// What an access is waited for that left the nearest of `depth` caches.
fn cause(access: Access, depth: usize) -> Cause {
    match usize::from(access.depth) {
        at if at >= depth => Cause::Memory,
        1 => Cause::Second,
        _ => Cause::Third,
    }
}

/// An access through the caches; one that the nearest has not waits for room for its line first.
/// Returns how long that was.
#[inline(always)]
fn past(
    hierarchy: &mut Hierarchy,
    places: &mut Places,
    (at, kind, address): (usize, Kind, u64),
    issued: Ticks,
) -> (Access, Ticks) {
    let state = match hierarchy.near(at, kind, address, issued) {
        Ok(access) => return (access, 0),
        Err(state) => state,
    };
    let admitted = match state {
        State::Invalid => places.free_from(issued),
        // It is there, but not to be written yet.
        _ => issued,
    };
    let access = hierarchy.beyond(at, kind, address, (admitted, state));
    if access.depth > 0 {
        places.take(admitted, access.ready);
    }
    (access, admitted - issued)
}

impl Cpu {
    /// Loses time.
    #[inline(always)]
    pub(super) fn lose(&mut self, cause: Cause, length: Ticks) {
        self.now += length;
        self.counts.stalled[cause as usize] += length;
    }

    /// Loses time to a cause; without one, it is what the nearest cache takes, which is
    /// computation.
    pub(super) fn lose_or_compute(&mut self, cause: Option<Cause>, length: Ticks) {
        match cause {
            Some(cause) => self.lose(cause, length),
            None => {
                self.now += length;
                self.counts.computation += length;
            }
        }
    }

    /// Loses time that nothing could overlap.
    fn pay(&mut self, cause: Cause, length: Ticks) {
        self.lose(cause, length);
        self.counts.penalty[cause as usize] += length;
    }

    /// Waits for an access, without overlap. What the nearest cache takes is computation.
    fn wait_for(&mut self, ready: Ticks, parts: &Parts) {
        let lost = parts.tlb + parts.admission + parts.line;
        for (cause, length) in parts.each() {
            self.lose(cause, length);
        }
        let rest = ready.saturating_sub(self.now);
        debug_assert!(lost <= ready, "{parts:?}");
        self.now += rest;
        self.counts.computation += rest;
    }

    /// Waits until fewer operations than the window holds are begun and not done.
    #[inline(always)]
    fn make_room(&mut self, window: u64) {
        while let Some((number, done, cause)) = self.flying.front().copied() {
            if done > self.now {
                if number + window > self.counts.uops {
                    return;
                }
                self.lose_or_compute(cause, done - self.now);
            }
            self.flying.pop_front();
        }
    }

    /// Waits for everything that is on its way.
    pub(super) fn drain(&mut self) {
        while let Some((_, done, cause)) = self.flying.pop_front() {
            self.lose_or_compute(cause, done.saturating_sub(self.now));
        }
        if let Some(done) = self.storing.back().copied() {
            self.lose(Cause::Stores, done.saturating_sub(self.now));
        }
        self.storing.clear();
    }
}
