//! The plan of a join, before it runs: for `--explain` and for planners.

use workahead_walks::bucket::Table;

use crate::batch::batch_bytes_max;
use crate::bloom_filter::SharedBloomFilter;
use crate::join_type::SideOutput;
use crate::keys::EncodingKind;
use crate::memory_estimate::{KEY_BYTES, MemoryEstimate, OutputSize, ProbeBatchSize, RowSize};
use crate::table_layout::{NO_INTEGERS, dense_bytes};
use crate::{JoinSpec, LayoutChoice, Side, TableLayout};

/// Assumed bytes of a key's string or row.
const FULL_KEY_BYTES: usize = 2 * KEY_BYTES;
/// Rows of a probe batch.
const PROBE_BATCH_ROWS: usize = 8192;

/// The reason for buckets if the key range is unknown.
const UNKNOWN_RANGE: &str = "the keys' range is unknown: dense if a slot for each of its integers \
                             turns out to be smaller";

/// The plan of a join. Sizes are estimates, as if all build keys are distinct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Describes how keys are looked up.
    pub keys: &'static str,
    /// Bytes of the table that probes touch.
    pub table_bytes: usize,
    /// Bytes of the build side's columns.
    pub payload_bytes: usize,
    /// Peak of memory: building, then every prober with a batch.
    pub peak_bytes: usize,
    /// The layout of the hash table, and the reason for it.
    pub layout_choice: LayoutChoice,
}

/// Statistics of a build side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildStatistics {
    /// Number of rows.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Highest minus lowest value of each key column, if known; may be empty.
    pub key_spans: Vec<Option<u64>>,
}

impl JoinSpec {
    /// Plans this join for a build side with these statistics.
    #[must_use]
    pub fn plan(&self, statistics: &BuildStatistics) -> Plan {
        let BuildStatistics { rows, row_bytes, ref key_spans } = *statistics;
        let reader = self.keys(self.build_side);
        let encoding = reader.fixed_encoding();
        let span = reader.span(key_spans);
        let (keys, key_bytes) = match encoding {
            Some(EncodingKind::Identity) => ("the key itself, a 64-bit word: a hit is a match", 0),
            Some(EncodingKind::Packed(_)) | None if span.is_some() => {
                ("all keys packed into a 64-bit word: a hit is a match", 0)
            }
            Some(EncodingKind::Packed(_)) | None => (
                "all keys packed into a 64-bit word if the build side's ranges allow it: a hit is \
                 a match; else a hash of them, compared at each hit",
                reader.ranges().len() * KEY_BYTES,
            ),
            Some(EncodingKind::Hashed) => {
                ("a 64-bit hash of the keys' bytes, compared at each hit", FULL_KEY_BYTES)
            }
        };
        // A footer may state any number of rows.
        let payload_bytes = rows.saturating_mul(row_bytes);
        let full_key_bytes = rows.saturating_mul(key_bytes);
        let columns = self.schema_of(self.build_side).fields().len().max(1);
        let mut estimate = MemoryEstimate {
            keyed: rows,
            rows,
            distinct: rows,
            key_bytes: full_key_bytes,
            widest_bytes: payload_bytes / columns,
            table_bytes: None,
            existence_only: span.is_some() && self.asks_existence_only(),
            load: self.load(),
            batch_rows: PROBE_BATCH_ROWS,
            match_bitmap: self.output_rules().build != SideOutput::Never,
        };
        let mut planned = self.choose_table_layout(estimate.entries(), span);
        let hashed = matches!(encoding, Some(EncodingKind::Hashed));
        if planned.why == NO_INTEGERS && !hashed {
            planned.why = UNKNOWN_RANGE.to_owned();
        }
        let dense = span.filter(|_| planned.layout == TableLayout::Dense);
        let dense = dense.and_then(|span| dense_bytes(span, estimate.existence_only));
        let buckets =
            || Table::bytes_for(estimate.entries(), self.load()).unwrap_or(usize::MAX / 2);
        let table_bytes = dense.unwrap_or_else(buckets).saturating_add(full_key_bytes);
        estimate.table_bytes = dense;
        let row = RowSize { average: row_bytes, widest: 0 };
        let bytes_max = batch_bytes_max(self.memory.share(), self.probers);
        let output = OutputSize { rows: self.batch_rows, bytes_max };
        let prober = ProbeBatchSize { rows: PROBE_BATCH_ROWS, row }.bytes(output, row);
        let probing = self.probers.saturating_mul(prober);
        let peak_bytes = payload_bytes.saturating_add(estimate.bytes()).saturating_add(probing);
        let mut layout_choice = planned.unless_hashed(hashed);
        if let (TableLayout::Buckets, false, Some(hits)) =
            (layout_choice.layout, hashed, SharedBloomFilter::hits_max(self, table_bytes))
        {
            layout_choice.why +=
                &format!("; a Bloom filter before them if at most {hits} of 100 probes hit");
        }
        Plan { keys, table_bytes, payload_bytes, peak_bytes, layout_choice }
    }

    /// The side that the hash table is built from.
    #[must_use]
    pub fn build_side(&self) -> Side {
        self.build_side
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::{HashJoin, JoinTable, JoinType, Pool};

    const ROWS: usize = 100_000;

    fn batch() -> RecordBatch {
        let column = |of: fn(i64) -> i64| -> ArrayRef {
            Arc::new((0..ROWS as i64).map(|row| Some(of(row))).collect::<Int64Array>())
        };
        let text = |row| Some(format!("a key of its own {row}"));
        let texts: ArrayRef = Arc::new((0..ROWS).map(text).collect::<StringArray>());
        let close = column(|row| (row * 7) % ROWS as i64);
        let pages = column(|row| row / 100);
        let lines = column(|row| row % 100);
        let columns = [
            ("wide", column(|row| row * 30)),
            ("text", texts),
            ("close", close),
            ("page", pages),
            ("line", lines),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// The plan, and the table.
    fn both(on: &[&str], spans: &[u64], layout: TableLayout) -> (Plan, JoinTable, Arc<Pool>) {
        let (batch, pool) = (batch(), Pool::unlimited());
        let on: Vec<_> = on.iter().map(|on| (*on, *on)).collect();
        let join = HashJoin::by_names(batch.schema(), batch.schema(), &on, JoinType::Inner);
        let join = join.unwrap().with_memory(pool.clone()).with_table_layout(layout);
        let statistics = BuildStatistics {
            rows: ROWS,
            row_bytes: batch.get_array_memory_size() / ROWS,
            key_spans: spans.iter().copied().map(Some).collect(),
        };
        let plan = join.plan(&statistics);
        let mut build = join.build();
        build.push(batch).unwrap();
        (plan, build.finish().unwrap(), pool)
    }

    #[test]
    fn plans_are_near_the_actual_join() {
        let last = ROWS as u64 - 1;
        for (on, spans, layout, says) in [
            (&["wide"][..], &[30 * last][..], TableLayout::Auto, "the key itself"),
            (&["text"], &[], TableLayout::Auto, "a 64-bit hash"),
            (&["close"], &[last], TableLayout::Auto, "the key itself"),
            (&["close"], &[last], TableLayout::Buckets, "the key itself"),
            (&["close"], &[last], TableLayout::Bloom, "the key itself"),
            (&["wide"], &[30 * last], TableLayout::Dense, "the key itself"),
            (&["page", "line"], &[ROWS as u64 / 100 - 1, 99], TableLayout::Auto, "all keys packed"),
        ] {
            let (plan, table, pool) = both(on, spans, layout);
            assert!(plan.keys.starts_with(says), "{}", plan.keys);
            let near = |planned: usize, actual: usize| {
                assert!(planned <= 2 * actual && actual <= 2 * planned, "{planned}, not {actual}");
            };
            near(plan.table_bytes, table.table_bytes());
            near(plan.peak_bytes, pool.peak_bytes());
            let (layout_choice, actual) = (&plan.layout_choice, table.layout_choice());
            assert_eq!(layout_choice.layout, actual.layout, "{on:?}");
        }
    }

    #[test]
    fn rows_that_no_memory_has_room_for_are_planned() {
        let batch = batch();
        for on in ["wide", "text"] {
            let (schema, on) = (batch.schema(), [(on, on)]);
            let join = HashJoin::by_names(schema.clone(), schema, &on, JoinType::Left).unwrap();
            for row_bytes in [100, usize::MAX] {
                let statistics = BuildStatistics { rows: 1 << 62, row_bytes, key_spans: vec![] };
                let plan = join.plan(&statistics);
                assert_eq!((plan.payload_bytes, plan.peak_bytes), (usize::MAX, usize::MAX));
                assert!(plan.table_bytes >= usize::MAX / 2, "{}", plan.table_bytes);
            }
        }
    }

    #[test]
    fn reasons_depend_on_the_statistics() {
        let last = ROWS as u64 - 1;
        for (on, spans, says) in [
            (&["close"][..], &[last][..], "a slot for each of the 100,000 integers between"),
            (&["wide"], &[30 * last], "; a Bloom filter before them if at most 15 of 100 probes"),
            (&["wide"], &[], "the keys' range is unknown: dense if a slot for each"),
            (&["wide"], &[u64::MAX], "the keys lie too far apart for a slot each"),
            (&["text"], &[], "the keys are not integers"),
            (&["page", "line"], &[last, 99], "where a slot for each of the 10,000,000 integers"),
        ] {
            let (plan, ..) = both(on, spans, TableLayout::Auto);
            assert!(plan.layout_choice.why.contains(says), "{}", plan.layout_choice.why);
        }
    }
}
