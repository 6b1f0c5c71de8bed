//! The four phases of the hash join, seen in a trace (ledger rows A35, S4.20).

use std::collections::HashSet;

use super::*;
use crate::place::Intent;
use crate::random::Random;
use crate::record::{OneLine, Payload};
use crate::schedule::{Lanes, Pause, Schedule};
use crate::traced::{Kind, Regions, Spot, Traced};
use crate::walk::Rows;

const ROWS: u32 = 400;

/// Two tables of few keys, so that there are chains, hash codes that differ in one, and misses.
struct Tables<P: Payload> {
    build: Vec<Record<P>>,
    probe: Vec<Record<P>>,
    rids: Vec<u32>,
    chains: Chains,
}

impl<P: Payload> Tables<P> {
    fn drawn() -> Self {
        let random = &mut Random::of(35);
        // Anywhere in 32 bits: small numbers would spread too well to share a bucket.
        let keys: Vec<u32> = (0..500).map(|_| random.number() as u32).collect();
        let mut side = |of| -> Vec<Record<P>> {
            let mut key = || keys[random.below(of) as usize];
            (0..ROWS).map(|row| Record::new(key(), row, row)).collect()
        };
        let (build, probe) = (side(300), side(500));
        let rids = random.permutation(ROWS);
        let chains = Chains::build(build.iter().map(|row| row.key), Pages::Small).unwrap();
        Self { build, probe, rids, chains }
    }

    /// The accesses of a drive over `rows`, by the names of the paper.
    fn trace(&self, width: usize, rows: Rows) -> Vec<Spot> {
        let probes = Unclustered { records: &self.probe, rids: &self.rids, row_stage: true };
        let mut walk = HashJoin::new(&self.chains, &self.build, probes);
        let mut memory = Traced::thread(0);
        let (mut rows, mut hits) = (rows, Vec::new());
        let pause = Lanes::new(width).drive(&mut walk, &mut rows, &mut memory, &mut hits);
        assert_eq!(pause, Pause::Drained);
        let regions = Regions::none().with("rids", &self.rids);
        let regions = regions.and_then(|regions| regions.with("probe rows", &self.probe));
        let regions = regions.and_then(|regions| regions.with("buckets", &self.chains.heads));
        let regions = regions.and_then(|regions| regions.with("cells", &self.chains.cells));
        let regions = regions.and_then(|regions| regions.with("build rows", &self.build));
        memory.finish().relative_to(&regions.unwrap()).unwrap()
    }

    /// The phases of a row by the paper's words, over two plain lists.
    fn by_the_paper(&self, at: u32) -> Vec<String> {
        let record_bytes = size_of::<Record<P>>();
        let mut said = Vec::new();
        let mut announce = |region: &str, first: usize, bytes: usize| {
            (0..bytes).step_by(64).for_each(|line| {
                let (first, bytes) = (first + line, (bytes - line).min(64));
                said.push(format!("fetch {region}+{first} {bytes}"));
            });
            said.split_off(0)
        };
        let rid = self.rids[at as usize] as usize;
        let key = self.probe[rid].key;
        let bucket = |key: u32| (hash_u32(key) >> self.chains.shift) as usize;
        // A probe row is announced as one place, which a hint covers.
        let mut all = vec![format!("fetch probe rows+{} {record_bytes}", rid * record_bytes)];
        // Phase 1: hash the key, issue the bucket.
        all.push(format!("hot rids+{} 4", at * 4));
        all.push(format!("read probe rows+{} {record_bytes}", rid * record_bytes));
        all.extend(announce("buckets", bucket(key) * 4, 4));
        // Phase 2: visit the bucket, and issue its first cell.
        all.push(format!("read buckets+{} 4", bucket(key) * 4));
        for row in (0..self.build.len()).rev() {
            if bucket(self.build[row].key) != bucket(key) {
                continue;
            }
            all.extend(announce("cells", row * 16, 16));
            // Phase 3: visit the cell, compare hash codes; if equal, issue the build row.
            all.push(format!("read cells+{} 16", row * 16));
            if hash_u32(self.build[row].key) == hash_u32(key) {
                all.extend(announce("build rows", row * record_bytes, record_bytes));
                // Phase 4: compare keys, emit.
                all.push(format!("read build rows+{} {record_bytes}", row * record_bytes));
                all.push(format!("read probe rows+{} {record_bytes}", rid * record_bytes));
            }
        }
        all
    }
}

fn shows_the_phases<P: Payload>() {
    let tables = Tables::<P>::drawn();
    let (mut longest, mut filtered) = (0, 0);
    for row in 0..ROWS {
        let trace = tables.trace(1, Rows::range(row..row + 1));
        let lines: Vec<String> = trace.iter().map(ToString::to_string).collect();
        assert_eq!(lines, tables.by_the_paper(row), "row {row}, {} B", P::RECORD_BYTES);
        let reads = |region: &str| lines.iter().filter(|line| line.starts_with(region)).count();
        longest = longest.max(reads("read cells"));
        filtered += reads("read cells") - reads("read build rows");
    }
    assert!(filtered > 0, "phase 3 goes on where hash codes differ");
    assert!(longest > 2, "phases 3 and 4 repeat to the end of a list");
}

#[test]
fn a_row_shows_the_papers_four_phases_in_order() {
    shows_the_phases::<OneLine>();
    shows_the_phases::<[u32; 62]>();
}

#[test]
fn rows_in_flight_touch_the_same_and_each_place_after_it_was_issued() {
    let tables = Tables::<OneLine>::drawn();
    let all = Rows::range(0..ROWS);
    let touched = |trace: &[Spot]| {
        let touches = trace.iter().filter(|spot| !matches!(spot.kind, Kind::Fetch(_)));
        let mut lines: Vec<String> = touches.map(ToString::to_string).collect();
        lines.sort_unstable();
        lines
    };
    let in_turn = tables.trace(1, all);
    let alone = touched(&in_turn);
    for width in [2, 7, 64, 1024] {
        let trace = tables.trace(width, all);
        assert_eq!(touched(&trace), alone, "{width} rows in flight");
        assert_ne!(trace, in_turn, "phases of different rows alternate");
        let mut issued = HashSet::new();
        for spot in &trace {
            match spot.kind {
                Kind::Fetch(Intent::Read) => drop(issued.insert((spot.region, spot.offset))),
                // The first rows of a drive have had nobody before them to announce their input.
                Kind::Read if spot.region == "probe rows" => {}
                Kind::Read => assert!(issued.contains(&(spot.region, spot.offset)), "{spot}"),
                Kind::HotRead => assert_eq!(spot.region, "rids"),
                Kind::Write | Kind::Fetch(Intent::Write) => panic!("a probe writes: {spot}"),
            }
        }
    }
}
