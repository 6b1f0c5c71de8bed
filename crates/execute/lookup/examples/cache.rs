//! A cache in front of something slow: a batch of requests is looked up at once, and what is
//! missing is made and inserted together.
//!
//! `cargo run --release -p workahead-lookup --example cache`

use workahead_lookup::HashIndex;

/// Results by request, dropped all together when they are too many.
struct Cache {
    results: HashIndex<u64, u64>,
    entries_max: usize,
    made: usize,
}

impl Cache {
    fn new(entries_max: usize) -> Self {
        Self { results: HashIndex::with_capacity(entries_max), entries_max, made: 0 }
    }

    /// The result of each request.
    fn get(&mut self, requests: &[u64]) -> Vec<u64> {
        let mut is_there = vec![false; requests.len()];
        self.results.contains_many(requests, &mut is_there);
        let missing = requests.iter().zip(is_there).filter(|(_, is_there)| !is_there);
        let mut missing: Vec<u64> = missing.map(|(request, _)| *request).collect();
        missing.sort_unstable();
        missing.dedup();
        self.made += missing.len();
        if self.results.len() + missing.len() > self.entries_max {
            self.results.clear();
            missing = requests.to_vec();
        }
        self.results.insert_many(missing.into_iter().map(|request| (request, slow(request))));
        let mut results = vec![None; requests.len()];
        self.results.get_many(requests, &mut results);
        results.into_iter().map(|result| *result.expect("it was just inserted")).collect()
    }
}

/// Stands for a query of a database: the number of steps of the Collatz sequence.
fn slow(request: u64) -> u64 {
    let step = |n: &u64| (*n > 1).then(|| if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 });
    std::iter::successors(Some(request), step).count() as u64
}

fn main() {
    let mut cache = Cache::new(10_000);
    let mut answered = 0;
    for batch in 0..200_u64 {
        let requests: Vec<u64> = (0..256).map(|at| (batch * 31 + at * at) % 9973 + 1).collect();
        let results = cache.get(&requests);
        assert!(requests.iter().zip(&results).all(|(request, result)| slow(*request) == *result));
        answered += results.len();
    }
    println!("{answered} requests answered, {} results made", cache.made);
}
