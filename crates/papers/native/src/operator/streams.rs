//! Streams of probes over a table of records.

use workahead_study::engine::EngineError;
use workahead_workloads::keys::{self, Pick, Probes, UniqueKeys};

/// Row ids of `len` probes over `records` records: in memory order or random order, every record
/// equally often. Small tables are repeated many times, in a new order each time, so that a run is
/// long enough to be timed.
pub(crate) fn rids(records: usize, len: usize, clustered: bool, seed: u64) -> Vec<u32> {
    let records = records as u32;
    if clustered {
        return (0..records).cycle().take(len).collect();
    }
    let passes = (0..).flat_map(|pass| keys::permutation(records, seed.wrapping_add(2 + pass)));
    passes.take(len).collect()
}

/// Keys from 1 to `largest`, drawn by Zipf's law.
pub(crate) fn skewed(
    rows: usize,
    largest: usize,
    exponent: f64,
    seed: u64,
) -> Result<Vec<u32>, EngineError> {
    let ranks = UniqueKeys::<u32>::new(largest as u64, seed).map_err(EngineError::failed)?;
    let probes = Probes { rows, hit_rate: 1.0, pick: Pick::Zipf(exponent), seed };
    let drawn: Vec<u32> = probes.keys(&ranks).map_err(EngineError::failed)?;
    let position: std::collections::HashMap<u32, u32> = ranks.iter().zip(1..).collect();
    Ok(drawn.into_iter().map(|key| position[&key]).collect())
}
