//! Inputs of joins: two key columns, from uniform to skewed, from unique to repeated, from no hit
//! to nothing but hits, with a naive oracle.

use std::collections::HashMap;

use proptest::prelude::*;
use workahead_walks::Row;
use workahead_walks::random::Random;

/// How many cases a property is tried with, unless `PROPTEST_CASES` says otherwise: checkers that
/// slow the code down ask for fewer.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_set { default.cases } else { usual }, ..default }
}

/// The keys of two sides, and the order in which the second probes the first.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) build: Vec<u32>,
    pub(crate) probe: Vec<u32>,
    /// Which probe row is the `i`-th to probe.
    pub(crate) rids: Vec<u32>,
}

/// The source of a case: few numbers, so that a failing case shrinks to a small one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) build_rows: u32,
    pub(crate) probe_rows: u32,
    /// Distinct keys of the build side at most: below the rows they repeat.
    pub(crate) keys: u32,
    /// The power a uniform number is raised to: 1 is uniform, at 8 a few keys take most rows.
    pub(crate) skew: i32,
    pub(crate) hit_percent: u32,
    pub(crate) seed: u64,
}

/// Repeats of one key at most, on average; the bucket table refuses more than some hundreds.
const REPEATS: u32 = 12;

impl Draft {
    pub(crate) fn draw(self) -> Case {
        let Draft { build_rows, probe_rows, keys, skew, hit_percent, seed } = self;
        let random = &mut Random::of(seed);
        let keys = keys.max(build_rows / REPEATS).max(1);
        // Keys are spread over all numbers, zero among them.
        let spread = |number: u32| number.wrapping_mul(0x0101_0101);
        let mut skewed = |keys: u32| {
            let uniform = f64::from(random.below(1 << 30)) / f64::from(1 << 30);
            (uniform.powi(skew) * f64::from(keys)) as u32
        };
        let build: Vec<u32> = (0..build_rows).map(|_| spread(skewed(keys))).collect();
        let probe = (0..probe_rows).map(|_| skewed(keys)).collect::<Vec<_>>().into_iter();
        // A miss is a key that no row of the build side can have.
        let miss = |number: u32| spread(number + keys);
        let probe: Vec<u32> = probe
            .map(|number| {
                let hit = random.below(100) < hit_percent && build_rows > 0;
                if hit { build[random.below(build_rows) as usize] } else { miss(number) }
            })
            .collect();
        let rids = (0..probe_rows).map(|_| random.below(probe_rows)).collect();
        Case { build, probe, rids }
    }
}

impl Case {
    /// Keys in the order in which they probe.
    pub(crate) fn probing(&self, clustered: bool) -> Vec<u32> {
        if clustered {
            return self.probe.clone();
        }
        self.rids.iter().map(|rid| self.probe[*rid as usize]).collect()
    }

    /// Every (probe position, build row) with equal keys.
    pub(crate) fn pairs(&self, clustered: bool) -> Vec<(Row, u32)> {
        let mut rows = HashMap::<u32, Vec<u32>>::new();
        for (row, key) in (0..).zip(&self.build) {
            rows.entry(*key).or_default().push(row);
        }
        let probing = self.probing(clustered);
        let of = |key: &u32| rows.get(key).into_iter().flatten();
        (0..).zip(&probing).flat_map(|(at, key)| of(key).map(move |row| (at, *row))).collect()
    }
}

/// Cases of every kind, up to a given number of rows a side.
pub(crate) fn drafts(most: u32) -> impl Strategy<Value = Draft> {
    let rows = move || prop_oneof![1 => 0..3_u32, 5 => 0..most];
    let skew = prop_oneof![Just(1), 2..5, Just(8)];
    let hit_percent = prop_oneof![Just(0_u32), Just(100), 0..=100_u32];
    (rows(), rows(), 1..most, skew, hit_percent, any::<u64>()).prop_map(
        |(build_rows, probe_rows, keys, skew, hit_percent, seed)| Draft {
            build_rows,
            probe_rows,
            keys,
            skew,
            hit_percent,
            seed,
        },
    )
}

#[test]
fn drafts_give_what_they_say() {
    let draft =
        Draft { build_rows: 500, probe_rows: 400, keys: 300, skew: 1, hit_percent: 100, seed: 1 };
    let hits = |draft: Draft| {
        let case = draft.draw();
        let mut rows: Vec<Row> = case.pairs(true).iter().map(|pair| pair.0).collect();
        rows.dedup();
        rows.len()
    };
    assert_eq!(hits(draft), 400);
    assert_eq!(hits(Draft { hit_percent: 0, ..draft }), 0);
    assert!((120..280).contains(&hits(Draft { hit_percent: 50, ..draft })));
    let most = |draft: Draft| {
        let mut counts = HashMap::<u32, u32>::new();
        draft.draw().build.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
        counts.into_values().max().unwrap()
    };
    assert!(most(draft) < 15, "uniform");
    assert!(most(Draft { skew: 8, ..draft }) > 100, "skewed");
}
