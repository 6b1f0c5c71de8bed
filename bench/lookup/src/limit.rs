//! The limit of this machine: random lines of a large memory, with many under way.

use std::hint::black_box;

use crate::keys::Random;

/// Lines read at random places of `bytes` bytes.
pub struct Lines {
    lines: Vec<[u64; 8]>,
    places: Vec<u32>,
    /// Lines read in a round.
    probes: usize,
}

impl Lines {
    pub fn new(bytes: usize, (probes, rounds): (usize, usize)) -> Self {
        let lines = vec![[1_u64; 8]; bytes / 64];
        let mut random = Random(1);
        let places = (0..probes * (rounds + 1)).map(|_| random.below(lines.len()) as u32).collect();
        Self { lines, places, probes }
    }

    /// As independent loads: the processor overlaps as many as it can.
    pub fn loads(&self, round: usize) -> u64 {
        let places = &self.places[round * self.probes..][..self.probes];
        places.iter().map(|place| black_box(&self.lines)[*place as usize][0]).sum()
    }

    /// With a hint for the line `ahead` places on.
    pub fn hinted(&self, round: usize, ahead: usize) -> u64 {
        let places = &self.places[round * self.probes..][..self.probes];
        let mut sum = 0;
        for (at, place) in places.iter().enumerate() {
            let next = places[(at + ahead).min(places.len() - 1)];
            hint(&raw const self.lines[next as usize]);
            sum += self.lines[*place as usize][0];
        }
        sum
    }
}

#[inline(always)]
pub fn hint<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
