//! Match bitmaps: which rows have a match.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits for build rows, shared by the probers; all clear at first.
#[derive(Debug, Default)]
pub(crate) struct SharedMatchBitmap {
    words: Box<[AtomicU64]>,
}

impl SharedMatchBitmap {
    pub(crate) fn new(bits: usize) -> Self {
        Self { words: (0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Sets a bit. If it is set already it is only read, so that its cache line stays shared.
    #[inline]
    pub(crate) fn set(&self, bit: usize) {
        let (word, mask) = (&self.words[bit / 64], 1 << (bit % 64));
        // The end of every prober synchronises with the reader of all bits.
        if word.load(Ordering::Relaxed) & mask == 0 {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn get(&self, bit: usize) -> bool {
        self.words[bit / 64].load(Ordering::Relaxed) >> (bit % 64) & 1 != 0
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

/// Bits for the rows of one prober's batch.
#[derive(Debug, Default)]
pub(crate) struct MatchBitmap {
    words: Vec<u64>,
}

impl MatchBitmap {
    /// Clears the bitmap and resizes it.
    pub(crate) fn reset(&mut self, bits: usize) {
        self.words.clear();
        self.words.resize(bits.div_ceil(64), 0);
    }

    #[inline]
    pub(crate) fn set(&mut self, bit: usize) {
        self.words[bit / 64] |= 1 << (bit % 64);
    }

    /// Sets the bits of some words, starting at bit `first`.
    ///
    /// # Panics
    /// If `first` is not a multiple of 64.
    pub(crate) fn set_words(&mut self, first: usize, words: &[u64]) {
        assert!(first.is_multiple_of(64), "bits are set by whole words");
        let own = &mut self.words[first / 64..];
        own.iter_mut().zip(words).for_each(|(own, word)| *own |= word);
    }

    #[inline]
    pub(crate) fn get(&self, bit: usize) -> bool {
        self.words[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// The bits of 64 rows.
    pub(crate) fn word(&self, word: usize) -> u64 {
        self.words[word]
    }

    /// The number of set bits.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_set_by_several_threads_are_all_set() {
        let bitmap = SharedMatchBitmap::new(1000);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let bitmap = &bitmap;
                scope.spawn(move || (0..1000).step_by(thread + 2).for_each(|bit| bitmap.set(bit)));
            }
        });
        let expected = |bit: usize| bit.is_multiple_of(2) || bit.is_multiple_of(3);
        assert!((0..1000).all(|bit| bitmap.get(bit) == expected(bit)));
        assert_eq!(bitmap.bytes(), 128);
    }

    #[test]
    fn own_bits_are_counted_and_reset() {
        let mut bitmap = MatchBitmap::default();
        bitmap.reset(130);
        [0, 64, 129, 64].into_iter().for_each(|bit| bitmap.set(bit));
        assert_eq!(bitmap.count(), 3);
        assert!(bitmap.get(129) && !bitmap.get(128));
        bitmap.reset(70);
        assert_eq!(bitmap.count(), 0);
        bitmap.set(65);
        bitmap.set_words(64, &[0b101]);
        assert_eq!([64, 65, 66, 67].map(|bit| bitmap.get(bit)), [true, true, true, false]);
    }
}
