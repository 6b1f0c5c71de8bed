//! Translation look-aside buffers.

use crate::cache::{Cache, Replacement, State};
use crate::geometry::{Geometry, GeometryError, Sizes};
use crate::lru_set::LruSet;

/// A TLB: entries of pages, distinguished by address space.
#[derive(Debug, Clone)]
pub(crate) struct Tlb {
    entries: Entries,
    page_shift: u32,
}

#[derive(Debug, Clone)]
enum Entries {
    FullyAssociative(LruSet),
    SetAssociative(Cache),
}

/// Bits of a page number below the number of its address space.
const SPACE_SHIFT: u32 = 44;

impl Tlb {
    /// Empty, for `entries` pages of `page` bytes in sets of `ways`, 0 for no sets.
    ///
    /// # Errors
    /// If no such TLB is possible.
    pub(crate) fn new(entries: u32, ways: u32, page: u32) -> Result<Self, GeometryError> {
        let geometry = Geometry::of(Sizes { bytes: u64::from(entries) * 64, ways, line: 64 })?;
        if !page.is_power_of_two() {
            return Err(GeometryError::Line(page));
        }
        let entries = match ways {
            0 => Entries::FullyAssociative(LruSet::new(entries as usize)),
            _ => Entries::SetAssociative(Cache::new(geometry, Replacement::Lru)),
        };
        Ok(Self { entries, page_shift: page.trailing_zeros() })
    }

    /// Whether the translation of an address was present. Inserts it, or marks it as used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, space: u16, address: u64) -> bool {
        let page = self.page(space, address);
        match &mut self.entries {
            Entries::FullyAssociative(lru_set) => lru_set.touch(page),
            Entries::SetAssociative(cache) => {
                let hit = cache.touch(page) != State::Invalid;
                if !hit {
                    cache.insert(page, State::Shared, ());
                }
                hit
            }
        }
    }

    /// Whether it is present, without marking it as used.
    #[must_use]
    pub(crate) fn holds(&self, space: u16, address: u64) -> bool {
        let page = self.page(space, address);
        match &self.entries {
            Entries::FullyAssociative(lru_set) => lru_set.holds(page),
            Entries::SetAssociative(cache) => cache.peek(page) != State::Invalid,
        }
    }

    /// Flushes it, as a switch of the address space does where entries have no space number.
    pub(crate) fn clear(&mut self) {
        match &mut self.entries {
            Entries::FullyAssociative(lru_set) => lru_set.clear(),
            Entries::SetAssociative(cache) => cache.clear(),
        }
    }

    #[inline(always)]
    const fn page(&self, space: u16, address: u64) -> u64 {
        (space as u64) << SPACE_SHIFT | address >> self.page_shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_as_many_pages_as_it_has_entries() {
        for ways in [0, 4] {
            let mut tlb = Tlb::new(4, ways, 4096).unwrap();
            for page in 0..4_u64 {
                assert!(!tlb.touch(0, page << 12));
            }
            // The same pages at other offsets, newest last; then one more pushes out page 0.
            assert!((0..4_u64).all(|page| tlb.touch(0, (page << 12) + 4095)));
            assert!(!tlb.touch(0, 4 << 12));
            assert!(!tlb.holds(0, 0) && tlb.holds(0, 1 << 12));
        }
    }

    #[test]
    fn tells_address_spaces_apart() {
        let mut tlb = Tlb::new(64, 0, 4096).unwrap();
        assert!(!tlb.touch(1, 0x5000) && !tlb.touch(2, 0x5000) && tlb.touch(1, 0x5000));
        tlb.clear();
        assert!(!tlb.holds(1, 0x5000));
    }
}
