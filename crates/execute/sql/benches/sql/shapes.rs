//! Joins of one shape each, after the description of DataFusion's own benchmark of hash joins
//! (`dfbench hj`): how densely the build side's keys lie in their range, how many probe rows hit,
//! duplicates, semi and anti joins; and a key with very many matches that a filter halves
//! (apache/datafusion #23237).
//!
//! ```text
//! tiny   25 rows     dim  100,000 rows     fact  6 M rows × scale, ids of dim at random
//! groups 32,000 rows of 415 texts          events 2.3 M rows × scale of one of those texts
//! ```
//!
//! Each returns the number and the sum of its rows' keys, so that arms can be held against each
//! other and next to nothing but the join is timed.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

const TINY_ROWS: i64 = 25;
const DIM_ROWS: i64 = 100_000;
pub(crate) const FACT_ROWS: f64 = 6e6;
const GROUP_ROWS: i64 = 32_000;
const GROUPS: i64 = 415;
const EVENT_ROWS: f64 = 2.3e6;
const BATCH_ROWS: i64 = 8192;

/// How keys of a build side of `id`s are made, and those of probe rows that hit nothing.
struct Keys {
    density: &'static str,
    hit: &'static str,
    miss: &'static str,
}

const KEYS: [Keys; 6] = [
    Keys { density: "1", hit: "id", miss: "id + 1000000" },
    Keys { density: "0.75", hit: "id * 4 / 3", miss: "id * 4 / 3 / 4 * 4 + 3" },
    Keys { density: "0.5", hit: "id * 2", miss: "id * 2 + 1" },
    Keys { density: "0.2", hit: "id * 5", miss: "id * 5 + 1" },
    Keys { density: "0.1", hit: "id * 10", miss: "id * 10 + 1" },
    Keys { density: "0.01", hit: "id * 100", miss: "id * 100 + 1" },
];

/// Name and text of a shape.
pub(crate) type Shape = (String, String);

/// All of them.
pub(crate) fn all() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (density, step) in [("1", 1), ("0.026", 40)] {
        let probe = format!("select id % {TINY_ROWS} * {step} as k from fact");
        let build = format!("select id * {step} as k from tiny");
        shapes.push((format!("tiny, density {density}, all hit"), joined(&probe, &build)));
    }
    for keys in &KEYS {
        for tenth in [false, true] {
            let build = format!("select {} as k from dim", keys.hit);
            let name = format!("density {}, {}", keys.density, hits(tenth));
            shapes.push((name, joined(&probe(keys, tenth), &build)));
        }
    }
    let dups = "select case when id <= 80000 then id * 25 / 4 else (id - 80000) * 25 / 4 end as k \
                from dim";
    let probe_of_dups = "select (id % 80000 + 1) * 25 / 4 \
                         + case when id % 10 = 0 then 0 else 1 end as k from fact";
    shapes.push(("density 0.2, 10 % hit, 20 % duplicates".to_owned(), joined(probe_of_dups, dups)));
    for (kind, word, keys, tenth) in [
        ("semi", "exists", &KEYS[0], false),
        ("semi", "exists", &KEYS[0], true),
        ("semi", "exists", &KEYS[4], true),
        ("anti", "not exists", &KEYS[0], false),
        ("anti", "not exists", &KEYS[0], true),
        ("anti", "not exists", &KEYS[4], true),
    ] {
        let name = format!("{kind}, density {}, {}", keys.density, hits(tenth));
        let (probe, build) = (probe(keys, tenth), format!("select {} as k from dim", keys.hit));
        shapes.push((
            name,
            format!(
                "select count(*), sum(l.k) from ({probe}) l \
                 where {word} (select 1 from ({build}) s where s.k = l.k)"
            ),
        ));
    }
    let probe_of_semi = format!(
        "select count(*), sum(l.k) from ({probe_of_dups}) l \
         where exists (select 1 from ({dups}) s where s.k = l.k)"
    );
    shapes.push(("semi, 20 % duplicates, 10 % hit".to_owned(), probe_of_semi));
    shapes.push((
        "a text of 77 rows, of which a filter leaves half".to_owned(),
        "select count(*), sum(e.id) from events e join groups g on e.name = g.name and g.id < e.id"
            .to_owned(),
    ));
    shapes
}

fn hits(tenth: bool) -> &'static str {
    if tenth { "10 % hit" } else { "all hit" }
}

fn probe(keys: &Keys, tenth: bool) -> String {
    let Keys { hit, miss, .. } = keys;
    match tenth {
        true => format!("select case when id % 10 = 0 then {hit} else {miss} end as k from fact"),
        false => format!("select {hit} as k from fact"),
    }
}

fn joined(probe: &str, build: &str) -> String {
    format!("select count(*), sum(l.k) from ({probe}) l join ({build}) s on l.k = s.k")
}

/// The tables, in batches.
pub(crate) fn tables(scale: f64) -> Vec<(&'static str, Vec<RecordBatch>)> {
    let facts = (FACT_ROWS * scale) as i64;
    let events = (EVENT_ROWS * scale) as i64;
    let name = |group: i64| format!("a text that names group {group:04}");
    let groups = move |row: i64| (row / GROUPS, Some(name(row % GROUPS)));
    vec![
        ("tiny", batches(TINY_ROWS, |row| (row, None))),
        ("dim", batches(DIM_ROWS, |row| (row + 1, None))),
        ("fact", batches(facts, |row| (random(row) % DIM_ROWS + 1, None))),
        ("groups", batches(GROUP_ROWS, groups)),
        ("events", batches(events, |row| (random(row) % (GROUP_ROWS / GROUPS), Some(name(7))))),
    ]
}

fn batches(rows: i64, row: impl Fn(i64) -> (i64, Option<String>)) -> Vec<RecordBatch> {
    let batch = |start: i64| {
        let end = (start + BATCH_ROWS).min(rows);
        let (ids, names): (Vec<i64>, Vec<Option<String>>) = (start..end).map(&row).unzip();
        let mut columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::new(Int64Array::from(ids)))];
        if names.iter().any(Option::is_some) {
            columns.push(("name", Arc::new(StringArray::from(names))));
        }
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    (0..rows.max(1)).step_by(BATCH_ROWS as usize).map(batch).collect()
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), without the sign.
pub(crate) fn random(seed: i64) -> i64 {
    let mut word = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) >> 1) as i64
}
