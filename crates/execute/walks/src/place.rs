//! Places: what a walk will touch next.

#[cfg(feature = "std")]
use core::num::NonZero;
use core::ptr::NonNull;

/// A run of bytes a walk will touch in its next step.
///
/// A place is an address and no right to use it: only a [`Memory`](crate::Memory) or the helper of
/// a work-ahead set reacts to it, by instructions that cannot fault or change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    address: NonNull<u8>,
    bytes: u16,
}

/// The purpose of an access. A store needs the line exclusively, so a hint can ask for
/// that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It will be read.
    Read,
    /// It will be written.
    Write,
}

/// Bytes of a cache line on every machine we run on (128 on some ARM servers: two hints, no harm).
pub const LINE_BYTES: usize = 64;

impl Place {
    /// The place of one value.
    #[inline(always)]
    pub fn of<T>(at: &T) -> Self {
        const { assert!(size_of::<T>() <= u16::MAX as usize) };
        Self { address: NonNull::from(at).cast(), bytes: size_of::<T>() as u16 }
    }

    /// A run of bytes by its address. It may lie anywhere: no one but hints goes there.
    #[inline(always)]
    pub const fn at(address: NonNull<u8>, bytes: u16) -> Self {
        Self { address, bytes }
    }

    /// The place of a `T` that someone else has lent out to be written.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn of_lent<T>(address: NonZero<usize>) -> Self {
        const { assert!(size_of::<T>() <= u16::MAX as usize) };
        Self { address: NonNull::without_provenance(address), bytes: size_of::<T>() as u16 }
    }

    /// First byte.
    #[inline(always)]
    pub fn address(self) -> *const u8 {
        self.address.as_ptr()
    }

    /// The part of the place from `offset` on, up to a given number of bytes.
    #[inline(always)]
    fn part(self, offset: usize, bytes: usize) -> Self {
        let address = self.address.map_addr(|address| address.saturating_add(offset));
        Self { address, bytes: (self.bytes() - offset).min(bytes) as u16 }
    }

    /// Length in bytes.
    #[inline(always)]
    pub fn bytes(self) -> usize {
        usize::from(self.bytes)
    }

    /// Whether a run of bytes lies inside this place.
    #[must_use]
    pub fn covers(self, address: *const u8, bytes: usize) -> bool {
        let first = self.address().addr();
        address.addr() >= first && address.addr() + bytes <= first + self.bytes()
    }
}

/// The places of one step: one for most walks, several where a step reads several rows at once.
///
/// All references that are available together belong to one step (Zhou et al., VLDB 2005, §4.1):
/// splitting them over steps lets the early ones be evicted before the last arrives.
pub trait References: Copy {
    /// Fewest places a step of this walk asks for: the paper's `m`.
    const LEAST: usize;
    /// Most places a step of this walk asks for: the paper's `M`.
    const MOST: usize;
    /// A row's input, one place, where a step asks for these.
    type Input: References + From<Place>;
    /// The places, in the order in which they are best asked for.
    fn each(&self, visit: impl FnMut(Place));
    /// How many there are.
    fn count(&self) -> usize;
}

impl References for Place {
    const LEAST: usize = 1;
    const MOST: usize = 1;
    type Input = Self;
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(Place)) {
        visit(*self);
    }
    #[inline(always)]
    fn count(&self) -> usize {
        1
    }
}

/// One place, line by line: up to `MOST` references.
///
/// A hint covers a place however long it is; the helper of a work-ahead set loads one line a
/// reference. The place begins with a line, or is shorter than what is left of one.
#[derive(Debug, Clone, Copy)]
pub struct Lines<const MOST: usize>(Place);

impl<const MOST: usize> From<Place> for Lines<MOST> {
    #[inline(always)]
    fn from(place: Place) -> Self {
        debug_assert!(place.bytes() <= MOST * LINE_BYTES, "{place:?} has more lines than {MOST}");
        Self(place)
    }
}

impl<const MOST: usize> References for Lines<MOST> {
    const LEAST: usize = 1;
    const MOST: usize = MOST;
    type Input = Self;
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(Place)) {
        for line in 0..self.count() {
            visit(self.0.part(line * LINE_BYTES, LINE_BYTES));
        }
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.bytes().div_ceil(LINE_BYTES)
    }
}

/// Between `LEAST` and `MOST` places.
#[derive(Debug, Clone, Copy)]
pub struct Several<const LEAST: usize, const MOST: usize> {
    places: [Place; MOST],
    count: u8,
}

impl<const LEAST: usize, const MOST: usize> Several<LEAST, MOST> {
    /// The first `count` of `places`.
    ///
    /// # Panics
    /// Unless `LEAST <= count <= MOST`.
    #[inline(always)]
    pub fn first(count: usize, places: [Place; MOST]) -> Self {
        assert!((LEAST..=MOST).contains(&count));
        Self { places, count: count as u8 }
    }

    /// All of `places`.
    #[inline(always)]
    pub fn all(places: [Place; MOST]) -> Self {
        Self::first(MOST, places)
    }
}

impl<const LEAST: usize, const MOST: usize> References for Several<LEAST, MOST> {
    const LEAST: usize = LEAST;
    const MOST: usize = MOST;
    type Input = Place;
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(Place)) {
        for place in &self.places[..self.count()] {
            visit(*place);
        }
    }
    #[inline(always)]
    fn count(&self) -> usize {
        usize::from(self.count)
    }
}
