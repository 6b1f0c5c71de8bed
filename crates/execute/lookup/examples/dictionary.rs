//! A dictionary encoder: texts become small numbers in the order in which they are first seen.
//!
//! `cargo run --release -p workahead-lookup --example dictionary`

use workahead_lookup::HashIndex;

/// Numbers of texts of up to 12 bytes, padded with zeros.
#[derive(Default)]
struct Dictionary {
    codes: HashIndex<[u8; 12], u32>,
    texts: Vec<[u8; 12]>,
}

impl Dictionary {
    /// The number of each text; new ones get the next.
    fn encode(&mut self, texts: &[[u8; 12]]) -> Vec<u32> {
        let mut found = vec![None; texts.len()];
        self.codes.get_many(texts, &mut found);
        let known: Vec<Option<u32>> = found.into_iter().map(|code| code.copied()).collect();
        let mut codes = Vec::with_capacity(texts.len());
        for (text, known) in texts.iter().zip(known) {
            // Most texts are known after the first batches; a new one may come twice in a batch.
            codes.push(known.unwrap_or_else(|| {
                *self.codes.get_or_insert_with(*text, || {
                    self.texts.push(*text);
                    self.texts.len() as u32 - 1
                })
            }));
        }
        codes
    }
}

fn main() {
    let mut dictionary = Dictionary::default();
    let mut rows = 0;
    for batch in 0..100_u32 {
        let name = |at: u32| {
            let mut text = [0; 12];
            let name = format!("city {}", (at * at + batch) % 5000);
            text[..name.len()].copy_from_slice(name.as_bytes());
            text
        };
        let texts: Vec<[u8; 12]> = (0..1000).map(name).collect();
        let codes = dictionary.encode(&texts);
        let decoded = codes.iter().map(|code| dictionary.texts[*code as usize]);
        assert!(decoded.eq(texts.iter().copied()));
        rows += codes.len();
    }
    println!("{rows} rows, {} texts", dictionary.texts.len());
}
