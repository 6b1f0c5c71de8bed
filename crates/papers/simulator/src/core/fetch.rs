//! Instruction fetches: from a cache of bytes, or of decoded micro-operations.
//!
//! ```text
//!   bytes      │ line         │ line         │      by address
//!   decoded    │ 6 uops │ 6 uops │ 6 uops │        by number of the micro-operation: longer or
//!                                                 shorter code fills a line
//! ```
//!
//! The trace cache of a Pentium 4 holds six micro-operations a line, along the path of execution,
//! and instructions are translated only where they miss it (Hassanein et al. 2008, sections 3.1 and
//! 4.4; Hinton et al., Intel Technology Journal Q1 2001).

use super::CpuContext;
use crate::counts::Cause;
use crate::hierarchy::{AccessKind, Request};
use crate::ticks::Ticks;

/// Bytes of code of which a density is said, as a shift.
const DENSITY_SHIFT: u32 = 10;

/// Code that is fetched at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeRange {
    pub(super) address: u64,
    pub(super) bytes: u16,
    /// Micro-operations of 1,024 bytes.
    pub(super) density: u16,
}

/// A line of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeLine {
    /// Its first byte in memory.
    address: u64,
    /// The same in the nearest cache.
    nearest: u64,
}

impl CodeRange {
    fn last(self) -> u64 {
        self.address + u64::from(self.bytes.max(1)) - 1
    }

    /// The lines of `line` bytes that it lies in.
    fn lines(self, line: u64) -> impl Iterator<Item = CodeLine> {
        let first = self.address & !(line - 1);
        (first..=self.last()).step_by(line as usize).map(|at| CodeLine { address: at, nearest: at })
    }

    /// The lines of `uops` micro-operations that it lies in. In the cache they are `line` apart.
    fn decoded(self, uops: u64, line: u64) -> impl Iterator<Item = CodeLine> {
        let density = u64::from(self.density.max(1));
        let number = |address: u64| ((address * density) >> DENSITY_SHIFT) / uops;
        (number(self.address)..=number(self.last())).map(move |number| {
            let begins = ((number * uops) << DENSITY_SHIFT).div_ceil(density);
            CodeLine { address: begins.max(self.address), nearest: number * line }
        })
    }
}

impl CpuContext<'_> {
    /// Fetches instructions; the core waits for them. Lines of one range are requested together: a
    /// trace line is a small part of what the next cache sends.
    pub(super) fn fetch(&mut self, code: CodeRange) {
        self.cpu.begun.get_or_insert(self.cpu.now);
        let mut requested = self.cpu.now;
        match self.parameters.code_uops {
            0 => {
                for line in code.lines(self.parameters.code_line) {
                    requested = self.fetch_line(line, requested);
                }
            }
            uops => {
                for line in code.decoded(uops, self.parameters.code_line) {
                    requested = self.fetch_line(line, requested);
                }
            }
        }
    }

    /// Requests a line of a range at `requested` or once its page is translated; returns that time.
    #[inline]
    fn fetch_line(&mut self, line: CodeLine, mut requested: Ticks) -> Ticks {
        let CodeLine { address, nearest } = line;
        if !self.parameters.code_tlb_on_misses {
            requested += self.translated_code(address, requested);
        }
        let Err(state) = self.hierarchy.near(self.at, AccessKind::Fetch, nearest, requested) else {
            return requested;
        };
        if self.parameters.code_tlb_on_misses {
            requested += self.translated_code(address, requested);
        }
        let request = Request { nearest, ..Request::of(self.at, AccessKind::Fetch, address) };
        let access = self.hierarchy.beyond(request, state, requested);
        // The latency of the nearest cache is part of the pipeline.
        let waited = access.ready.saturating_sub(self.cpu.now + self.parameters.nearest_code);
        self.cpu.pay(Cause::Code, waited);
        requested
    }

    /// Pays for the translation of instructions from `requested` on; returns the time it takes.
    fn translated_code(&mut self, address: u64, requested: Ticks) -> Ticks {
        let Self { cpu, core, parameters, .. } = self;
        let Some(tlb) = &mut core.code_tlb else { return 0 };
        if tlb.of(cpu.place.1).touch(cpu.space, address) {
            return 0;
        }
        cpu.counts.code_tlb_misses += 1;
        let length = core.walk(requested, parameters.code_tlb_cost);
        cpu.pay(Cause::CodeTlb, length);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Processor;
    use crate::op::Op;
    use crate::preset::TlbSizes;
    use crate::preset::tests::small;
    use crate::ticks::cycles;

    /// By hand: half a micro-operation a byte, six a line, are twelve bytes a line. Bytes 8 to 39
    /// are micro-operations 4 to 19, of lines 0 to 3.
    #[test]
    fn decoded_lines_hold_micro_operations() {
        let code = CodeRange { address: 8, bytes: 32, density: 512 };
        let found: Vec<(u64, u64)> =
            code.decoded(6, 64).map(|line| (line.nearest / 64, line.address)).collect();
        assert_eq!(found, [(0, 8), (1, 12), (2, 24), (3, 36)]);
        // Of the same bytes with a quarter each, 2 to 9, there are two.
        let loose = CodeRange { density: 256, ..code };
        let found: Vec<u64> = loose.decoded(6, 64).map(|line| line.nearest / 64).collect();
        assert_eq!(found, [0, 1]);
        // As a cache of bytes has them, the range lies in one line.
        assert_eq!(code.lines(64).count(), 1);
    }

    /// Cycles lost to instructions, and their translations, when a range is fetched a second time.
    fn again(bytes: u16, density: u16, on_misses: bool) -> (f64, u64) {
        let mut preset = small();
        preset.cache[1].uops = 6;
        preset.tlb.instructions_on_misses = on_misses;
        preset.tlb.instructions = Some(TlbSizes { entries: 1, ..preset.tlb.data.clone() });
        let mut processor = Processor::new(&preset).unwrap();
        let mut fetch = || {
            for address in [0, 12 << 16] {
                processor.run(0, Op::Fetch { address, bytes, density });
            }
            processor.counts(0)
        };
        let (first, second) = (fetch(), fetch());
        let lost = second.stalled[Cause::Code as usize] - first.stalled[Cause::Code as usize];
        (cycles(lost), second.code_tlb_misses - first.code_tlb_misses)
    }

    /// Four lines hold 24 micro-operations: 48 bytes of code in two ranges, or 24 of denser code.
    #[test]
    fn denser_code_needs_more_lines() {
        assert_eq!(again(24, 512, true).0, 0.0);
        assert_eq!(again(12, 1024, true).0, 0.0);
        assert!(again(24, 1024, true).0 > 0.0);
    }

    /// Two pages in turn, of which the buffer of translations holds one: what the cache has needs
    /// none, if only misses are translated.
    #[test]
    fn hits_need_no_translation() {
        assert_eq!(again(24, 512, true), (0.0, 0));
        assert_eq!(again(24, 512, false), (0.0, 2));
    }
}
