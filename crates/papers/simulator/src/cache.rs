//! One cache: sets of lines, each with a state, and the replacement policy.
//!
//! ```text
//!   address ── line number ── set ──► [tag│state] [tag│state] … ways
//!                                      └ least recently used: kept in order, newest first
//!                                      └ tree: one bit a node says which half was used last
//! ```
//!
//! A line may carry data (`D`), which moves with it: the proofs of coherence read it, and models
//! that only count time carry none, which costs nothing.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::geometry::Geometry;

/// State of a line in a cache (MESI; Papamarcos and Patel 1984). MSI is MESI without `Exclusive`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Not in this cache.
    #[default]
    Invalid,
    /// Others may have it; memory is up to date.
    Shared,
    /// No other cache has it; memory is up to date.
    Exclusive,
    /// No other cache has it; memory is stale.
    Modified,
}

impl State {
    /// All states, in the order of the tables of Keeton et al. (1998): M, E, S, I.
    pub const ALL: [State; 4] = [State::Modified, State::Exclusive, State::Shared, State::Invalid];

    const fn of_bits(bits: u64) -> Self {
        match bits & STATE {
            0 => State::Invalid,
            1 => State::Shared,
            2 => State::Exclusive,
            _ => State::Modified,
        }
    }

    /// Whether it may be written without a bus request.
    #[must_use]
    pub const fn is_owned(self) -> bool {
        matches!(self, State::Exclusive | State::Modified)
    }
}

/// Replacement policy of a full set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Least recently used.
    #[default]
    Lru,
    /// Tree pseudo-LRU: the half used less recently, of halves of halves, as hardware implements
    /// it.
    TreePlru,
}

/// The two lowest bits of a slot are its state; the line number is above them.
const STATE: u64 = 0b11;
const STATE_BITS: u32 = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Slot<D> {
    /// Line number and state; 0 is an empty slot.
    bits: u64,
    data: D,
}

impl<D> Slot<D> {
    #[inline(always)]
    const fn holds(&self, line: u64) -> bool {
        // Of the same line only the state is left, which is not 0.
        (self.bits ^ line << STATE_BITS).wrapping_sub(1) < STATE
    }
}

/// A line that was evicted or recalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim<D> {
    /// Its number, in lines of this cache.
    pub line: u64,
    /// State before the eviction; never `Invalid`.
    pub state: State,
    /// Data of the line.
    pub data: D,
}

/// A set-associative cache.
#[derive(Debug, Clone)]
pub struct Cache<D = ()> {
    slots: Vec<Slot<D>>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a mask.
    mask: Option<u64>,
    line_shift: u32,
    replacement: Replacement,
    /// Tree bits of each set; empty under LRU.
    trees: Vec<u64>,
    /// Valid lines.
    held: usize,
}

impl<D: Copy + Default> Cache<D> {
    /// An empty cache.
    #[must_use]
    pub fn new(geometry: Geometry, replacement: Replacement) -> Self {
        let (sets, ways) = (geometry.sets(), geometry.ways() as usize);
        let trees = match replacement {
            Replacement::Lru => 0,
            Replacement::TreePlru => sets as usize,
        };
        Self {
            slots: vec![Slot::default(); sets as usize * ways],
            ways,
            sets,
            mask: sets.is_power_of_two().then(|| sets - 1),
            line_shift: geometry.line().trailing_zeros(),
            replacement,
            trees: vec![0; trees],
            held: 0,
        }
    }

    /// The number of the line that an address lies in.
    #[inline(always)]
    #[must_use]
    pub const fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// Address of a line's first byte.
    #[inline(always)]
    #[must_use]
    pub const fn address_of(&self, line: u64) -> u64 {
        line << self.line_shift
    }

    /// Lines in the `bytes` bytes, a power of two, that begin at the first byte of a line.
    #[inline(always)]
    #[must_use]
    pub const fn lines_of(&self, bytes: u64) -> u64 {
        let lines = bytes >> self.line_shift;
        if lines == 0 { 1 } else { lines }
    }

    /// Bytes per line.
    #[must_use]
    pub const fn line_bytes(&self) -> u64 {
        1 << self.line_shift
    }

    #[inline(always)]
    fn set_of(&self, line: u64) -> usize {
        let set = match self.mask {
            Some(mask) => line & mask,
            None => line % self.sets,
        };
        set as usize * self.ways
    }

    /// Looks a line up and marks it as used if it is there.
    #[inline(always)]
    pub fn touch(&mut self, line: u64) -> State {
        let first = self.set_of(line);
        // Most accesses are to the line that the set was last used for.
        let newest = self.slots[first];
        if newest.holds(line) && self.replacement == Replacement::Lru {
            return State::of_bits(newest.bits);
        }
        let Some(way) = self.way_of(first, line) else { return State::Invalid };
        let state = State::of_bits(self.slots[first + way].bits);
        self.used(first, way);
        state
    }

    /// The way of a line. Four ways are compared at once: the branch at the end of a search of one
    /// after the other would often be mispredicted.
    #[inline(always)]
    fn way_of(&self, first: usize, line: u64) -> Option<usize> {
        let set = &self.slots[first..first + self.ways];
        let (fours, rest) = set.as_chunks::<4>();
        for (at, four) in fours.iter().enumerate() {
            let [one, two, three, four] = four.each_ref().map(|slot| slot.holds(line));
            if one | two | three | four {
                let way = usize::from(three | four) * 2 + usize::from(two | four);
                return Some(at * 4 + way);
            }
        }
        // Caches with a multiple of four ways, as most have, end here.
        if rest.is_empty() {
            return None;
        }
        let way = rest.iter().position(|slot| slot.holds(line))?;
        Some(fours.len() * 4 + way)
    }

    /// Marks a way of a set as used.
    #[inline(always)]
    fn used(&mut self, first: usize, way: usize) {
        match self.replacement {
            Replacement::Lru => {
                let newest = self.slots[first + way];
                self.push(first, way, newest);
            }
            Replacement::TreePlru => {
                let tree = &mut self.trees[first / self.ways];
                *tree = tree_used(*tree, self.ways, way);
            }
        }
    }

    /// Puts a slot in front of its set and shifts the slots before `way` back by one. Returns the
    /// slot that was in `way`.
    #[inline(always)]
    fn push(&mut self, first: usize, way: usize, slot: Slot<D>) -> Slot<D> {
        let set = &mut self.slots[first..first + self.ways];
        let left = set[way];
        // Where a whole set moves its size is known: a few moves of many slots at once.
        if let (Some(eight), 7) = (set.first_chunk_mut::<8>(), way) {
            eight.copy_within(..7, 1);
        } else if let (Some(four), 3) = (set.first_chunk_mut::<4>(), way) {
            four.copy_within(..3, 1);
        } else {
            // A loop: calling memmove costs more than a few ways.
            for at in (0..way).rev() {
                set[at + 1] = set[at];
            }
        }
        set[0] = slot;
        left
    }

    /// State of a line, without marking it as used.
    #[inline(always)]
    #[must_use]
    pub fn peek(&self, line: u64) -> State {
        self.slot(line).map_or(State::Invalid, |slot| State::of_bits(slot.bits))
    }

    /// Whether the cache holds no line.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Data of a line, if it is there.
    #[must_use]
    pub fn data(&self, line: u64) -> Option<D> {
        self.slot(line).map(|slot| slot.data)
    }

    #[inline(always)]
    fn slot(&self, line: u64) -> Option<&Slot<D>> {
        let first = self.set_of(line);
        self.way_of(first, line).map(|way| &self.slots[first + way])
    }

    fn slot_mut(&mut self, line: u64) -> Option<&mut Slot<D>> {
        let first = self.set_of(line);
        self.way_of(first, line).map(|way| &mut self.slots[first + way])
    }

    /// Changes the state of a line; false if it isn't there.
    ///
    /// # Panics
    /// For `Invalid`: use [`drop_line`](Self::drop_line).
    #[inline]
    pub fn set_state(&mut self, line: u64, state: State) -> bool {
        assert_ne!(state, State::Invalid, "lines are dropped, not made invalid");
        let Some(slot) = self.slot_mut(line) else { return false };
        slot.bits = line << STATE_BITS | state as u64;
        true
    }

    /// Changes the data of a line; false if it isn't there.
    pub fn set_data(&mut self, line: u64, data: D) -> bool {
        self.slot_mut(line).map(|slot| slot.data = data).is_some()
    }

    /// Inserts an absent line as most recently used. Returns the evicted line.
    #[inline(always)]
    pub fn insert(&mut self, line: u64, state: State, data: D) -> Option<Victim<D>> {
        debug_assert_eq!(self.peek(line), State::Invalid, "line {line} is there already");
        let first = self.set_of(line);
        let slot = Slot { bits: line << STATE_BITS | state as u64, data };
        let left = match self.replacement {
            Replacement::Lru => self.push(first, self.way_to_leave(first), slot),
            Replacement::TreePlru => self.replace(first, slot),
        };
        let was_full = left.bits & STATE != 0;
        self.held += usize::from(!was_full);
        was_full.then(|| Victim {
            line: left.bits >> STATE_BITS,
            state: State::of_bits(left.bits),
            data: left.data,
        })
    }

    /// The first empty way, or else the last, which is the least recently used.
    #[inline(always)]
    fn way_to_leave(&self, first: usize) -> usize {
        if self.held == self.slots.len() {
            return self.ways - 1;
        }
        let set = &self.slots[first..first + self.ways];
        set.iter().position(|slot| slot.bits & STATE == 0).unwrap_or(self.ways - 1)
    }

    /// Puts a slot in an empty way, or in the victim way of the tree.
    fn replace(&mut self, first: usize, slot: Slot<D>) -> Slot<D> {
        let set = &self.slots[first..first + self.ways];
        let empty = set.iter().position(|slot| slot.bits & STATE == 0);
        let tree = self.trees[first / self.ways];
        let way = empty.unwrap_or_else(|| tree_victim(tree, self.ways));
        let left = std::mem::replace(&mut self.slots[first + way], slot);
        self.used(first, way);
        left
    }

    /// Removes a line.
    pub fn drop_line(&mut self, line: u64) -> Option<Victim<D>> {
        let slot = self.slot_mut(line)?;
        let Slot { bits, data } = std::mem::take(slot);
        self.held -= 1;
        Some(Victim { line, state: State::of_bits(bits), data })
    }

    /// All valid lines.
    pub fn lines(&self) -> impl Iterator<Item = (u64, State)> {
        let here = self.slots.iter().filter(|slot| slot.bits & STATE != 0);
        here.map(|slot| (slot.bits >> STATE_BITS, State::of_bits(slot.bits)))
    }

    /// Removes all lines without writing them back.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.trees.fill(0);
        self.held = 0;
    }
}

/// The tree after a way was used: every node on the path to it points to the other half. Node 1 is
/// the root, `2n` and `2n + 1` are the halves of `n`; a set bit says that the right half was used.
fn tree_used(mut tree: u64, ways: usize, way: usize) -> u64 {
    let mut node = 1;
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let right = way & half != 0;
        tree = tree & !(1 << node) | u64::from(right) << node;
        node = 2 * node + usize::from(right);
        half /= 2;
    }
    tree
}

/// The victim way of a tree: at each node the half not used last, if it has ways.
fn tree_victim(tree: u64, ways: usize) -> usize {
    let mut node = 1;
    let mut way = 0;
    let mut half = ways.next_power_of_two() / 2;
    while half > 0 {
        let right = tree >> node & 1 == 0 && way + half < ways;
        way += if right { half } else { 0 };
        node = 2 * node + usize::from(right);
        half /= 2;
    }
    way
}
