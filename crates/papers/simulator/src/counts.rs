//! Counts of a logical CPU, and its cycles by cause.

use std::ops::{Add, Sub};

use crate::ticks::{Ticks, cycles};

/// Cause of lost cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Data in the second cache of the path.
    Second,
    /// Data in the third cache of the path.
    Third,
    /// Data in memory, or modified in another cache.
    Memory,
    /// Translations of data.
    DataTlb,
    /// Instructions that missed the nearest cache.
    Code,
    /// Translations of instructions.
    CodeTlb,
    /// Branch mispredictions.
    Branch,
    /// Machine clears.
    Clear,
    /// Full store buffer.
    Stores,
    /// No free fill buffer.
    Outstanding,
    /// Operations of a sibling, which occupied the front end.
    Sibling,
    /// PAUSE instructions.
    Pause,
}

/// Number of causes.
pub const CAUSES: usize = 12;

impl Cause {
    /// All causes.
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

    /// Name in tables.
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

/// Cycles are counted by how many micro-operations retire in them: up to this number one by one, as
/// by a Pentium Pro's counters, and from it on together.
pub(crate) const RETIRED_MOST: usize = 3;

/// Counts of a logical CPU.
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
    /// Prefetch instructions dropped because of a TLB miss.
    pub hints_dropped: u64,
    /// Data TLB misses.
    pub data_tlb_misses: u64,
    /// Instruction TLB misses.
    pub code_tlb_misses: u64,
    /// Branches.
    pub branches: u64,
    /// Mispredicted branches.
    pub mispredicts: u64,
    /// Taken branches that missed the target buffer.
    pub target_misses: u64,
    /// Machine clears caused by this CPU's accesses.
    pub clears: u64,
    /// Cycles in which micro-operations begin.
    pub begun_cycles: u64,
    /// Cycles in which one, two, and three or more of them retire.
    pub retired_cycles: [u64; RETIRED_MOST],
    /// Ticks from its first operation to its last.
    pub ticks: Ticks,
    /// Ticks in which operations began at the machine's width, or only the nearest cache was waited
    /// for.
    pub computation: Ticks,
    /// Ticks lost, by cause.
    pub stalled: [Ticks; CAUSES],
    /// Ticks that would be lost without overlap, by cause.
    pub penalty: [Ticks; CAUSES],
}

impl Counts {
    /// Total cycles.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        cycles(self.ticks)
    }

    /// Cycles without overlap: computation and every penalty (Keeton et al. 1998, figure 8).
    #[must_use]
    pub fn non_overlapped_cycles(&self) -> f64 {
        cycles(self.computation + self.penalty.iter().sum::<Ticks>())
    }

    /// Combines two counts field by field.
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
            begun_cycles,
            retired_cycles,
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
            (begun_cycles, other.begun_cycles),
            (ticks, other.ticks),
            (computation, other.computation),
        ];
        for (one, more) in pairs {
            *one = each(*one, more);
        }
        let lists = retired_cycles.iter_mut().chain(stalled).chain(penalty);
        let others = other.retired_cycles.iter().chain(&other.stalled).chain(&other.penalty);
        for (one, more) in lists.zip(others) {
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

/// Counts since an earlier moment.
impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.zip(&before, |one, less| one - less)
    }
}
