//! What a logical CPU did, and where its cycles went.

use std::ops::{Add, Sub};

use crate::ticks::{Ticks, cycles};

/// What cycles are lost to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Data of the second cache of the path.
    Second,
    /// Data of the third.
    Third,
    /// Data of memory, or of another cache that had changed them.
    Memory,
    /// Translations of data.
    DataTlb,
    /// Instructions that were not in the nearest cache.
    Code,
    /// Translations of instructions.
    CodeTlb,
    /// Branches that were guessed wrong.
    Branch,
    /// Machine clears.
    Clear,
    /// No room for another store.
    Stores,
    /// No room for another line on its way.
    Outstanding,
    /// Operations of a sibling, which had the core's front.
    Sibling,
    /// A spin loop's own waiting.
    Pause,
}

/// Number of causes.
pub const CAUSES: usize = 12;

impl Cause {
    /// All of them.
    pub const ALL: [Cause; CAUSES] = [
        Cause::Second,
        Cause::Third,
        Cause::Memory,
        Cause::DataTlb,
        Cause::Code,
        Cause::CodeTlb,
        Cause::Branch,
        Cause::Clear,
        Cause::Stores,
        Cause::Outstanding,
        Cause::Sibling,
        Cause::Pause,
    ];

    /// As tables name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Cause::Second => "second cache",
            Cause::Third => "third cache",
            Cause::Memory => "memory",
            Cause::DataTlb => "data TLB",
            Cause::Code => "instructions",
            Cause::CodeTlb => "instruction TLB",
            Cause::Branch => "branches",
            Cause::Clear => "machine clears",
            Cause::Stores => "store buffer",
            Cause::Outstanding => "outstanding misses",
            Cause::Sibling => "sibling's turn",
            Cause::Pause => "spinning",
        }
    }
}

/// What a logical CPU did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Micro-operations.
    pub uops: u64,
    /// Reads, by line.
    pub loads: u64,
    /// Writes, by line.
    pub stores: u64,
    /// Prefetch instructions.
    pub hints: u64,
    /// Of those, dropped because the page had no translation.
    pub hints_dropped: u64,
    /// Translations of data that were missing.
    pub data_tlb_misses: u64,
    /// Of instructions.
    pub code_tlb_misses: u64,
    /// Branches.
    pub branches: u64,
    /// Of those, guessed wrong.
    pub mispredicts: u64,
    /// Of the taken, without a target in the buffer.
    pub target_misses: u64,
    /// Machine clears because of this CPU's accesses.
    pub clears: u64,
    /// Ticks from its first operation to its last.
    pub ticks: Ticks,
    /// Ticks in which operations began, at the machine's width, or only the nearest cache was
    /// waited for.
    pub computation: Ticks,
    /// Ticks lost, by cause: the machine waited.
    pub stalled: [Ticks; CAUSES],
    /// Ticks that would be lost if nothing overlapped, by cause.
    pub penalty: [Ticks; CAUSES],
}

impl Counts {
    /// Cycles in all.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        cycles(self.ticks)
    }

    /// Cycles if nothing overlapped: computation and every penalty (Keeton et al. 1998, figure 8).
    #[must_use]
    pub fn non_overlapped_cycles(&self) -> f64 {
        cycles(self.computation + self.penalty.iter().sum::<Ticks>())
    }

    /// Adds one by one.
    #[must_use]
    fn zip(mut self, other: &Self, each: impl Fn(u64, u64) -> u64) -> Self {
        let Self {
            uops,
            loads,
            stores,
            hints,
            hints_dropped,
            data_tlb_misses,
            code_tlb_misses,
            branches,
            mispredicts,
            target_misses,
            clears,
            ticks,
            computation,
            stalled,
            penalty,
        } = &mut self;
        let pairs = [
            (uops, other.uops),
            (loads, other.loads),
            (stores, other.stores),
            (hints, other.hints),
            (hints_dropped, other.hints_dropped),
            (data_tlb_misses, other.data_tlb_misses),
            (code_tlb_misses, other.code_tlb_misses),
            (branches, other.branches),
            (mispredicts, other.mispredicts),
            (target_misses, other.target_misses),
            (clears, other.clears),
            (ticks, other.ticks),
            (computation, other.computation),
        ];
        for (one, more) in pairs {
            *one = each(*one, more);
        }
        let stalls = stalled.iter_mut().chain(penalty);
        for (one, more) in stalls.zip(other.stalled.iter().chain(&other.penalty)) {
            *one = each(*one, *more);
        }
        self
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(&other, |one, more| one + more)
    }
}

/// What was done since an earlier moment.
impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.zip(&before, |one, less| one - less)
    }
}
