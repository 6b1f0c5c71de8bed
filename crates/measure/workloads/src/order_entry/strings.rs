//! Random text as the population wants it (clause 4.3.2.2).

use crate::random::Random;

/// A buffer that is refilled: rows are made without an allocation for each text.
#[derive(Debug, Default, Clone)]
pub(super) struct Letters(String);

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Letters {
    /// Letters and digits, from `low` to `high` of them.
    pub(super) fn any(&mut self, random: &mut Random, low: i64, high: i64) -> &str {
        let length = random.within(low, high) as usize;
        self.fill(random, length, 62)
    }

    /// A number of digits.
    pub(super) fn digits(&mut self, random: &mut Random, length: usize) -> &str {
        self.fill(random, length, 10)
    }

    /// Two capital letters.
    pub(super) fn state(&mut self, random: &mut Random) -> &str {
        self.0.clear();
        for _ in 0..2 {
            self.0.push(char::from(b'A' + random.within(0, 25) as u8));
        }
        &self.0
    }

    /// Four digits and five ones (clause 4.3.2.7).
    pub(super) fn zip(&mut self, random: &mut Random) -> &str {
        self.fill(random, 4, 10);
        self.0.push_str("11111");
        &self.0
    }

    /// From 26 to 50 letters, one time in ten with the word ORIGINAL among them.
    pub(super) fn data(&mut self, random: &mut Random) -> &str {
        const WORD: &str = "ORIGINAL";
        self.any(random, 26, 50);
        if random.percent(10) {
            let at = random.within(0, (self.0.len() - WORD.len()) as i64) as usize;
            self.0.replace_range(at..at + WORD.len(), WORD);
        }
        &self.0
    }

    fn fill(&mut self, random: &mut Random, length: usize, letters: u32) -> &str {
        self.0.clear();
        let mut bytes = [0; 64];
        while self.0.len() < length {
            random.fill(&mut bytes);
            // Two bytes a letter: a ten-thousandth from uniform.
            let drawn =
                bytes.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
            let letter = |drawn: u32| char::from(ALPHABET[((drawn * letters) >> 16) as usize]);
            self.0.extend(drawn.map(letter).take(length - self.0.len()));
        }
        &self.0
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_lengths_and_letters() {
        let mut random = Random::new(5, 0, 0);
        let mut letters = Letters::default();
        let mut originals = 0;
        for _ in 0..10_000 {
            assert!((3..=40).contains(&letters.any(&mut random, 3, 40).len()));
            let digits = letters.digits(&mut random, 16);
            assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_digit()));
            assert!(letters.zip(&mut random).ends_with("11111") && letters.text().len() == 9);
            assert!(letters.state(&mut random).bytes().all(|byte| byte.is_ascii_uppercase()));
            let data = letters.data(&mut random);
            assert!((26..=50).contains(&data.len()));
            originals += usize::from(data.contains("ORIGINAL"));
        }
        assert!((800..1_200).contains(&originals), "{originals}");
        assert!(letters.any(&mut random, 10_000, 10_000).contains('z'));
    }
}
