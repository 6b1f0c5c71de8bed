//! What a join would do, before it does anything: for `--explain` and for planners.

use workahead_operators::bucket::{Load, Table};

use crate::join_type::Alone;
use crate::keys::MappingKind;
use crate::needs::{Needs, WORD_BYTES};
use crate::prober::Probed;
use crate::{Choice, HashJoin, Side};

/// Bytes of a key's text or row, where nothing is known of it.
const KEY_BYTES: usize = 2 * WORD_BYTES;
/// Rows of a probe batch.
const PROBED_ROWS: usize = 8192;

/// What is foreseen of a join: sizes are estimates, every build row with a key of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How keys are looked up, in words.
    pub keys: &'static str,
    /// Bytes of the table that probes touch.
    pub table_bytes: usize,
    /// Bytes of the build side's columns.
    pub payload_bytes: usize,
    /// The most memory at a time: building, then every prober with a batch.
    pub peak_bytes: usize,
    /// The strategy, and why.
    pub choice: Choice,
}

impl HashJoin {
    /// What this join would do with a build side of so many rows, and so many bytes a row.
    #[must_use]
    pub fn plan(&self, rows: usize, row_bytes: usize) -> Plan {
        let reader = self.keys(self.build_side);
        let (keys, key_bytes) = match reader.fixed_mapping() {
            Some(MappingKind::Identity) => ("the key itself, a 64-bit word: a hit is a match", 0),
            Some(MappingKind::Packed(_)) | None => (
                "all keys packed into a 64-bit word if the build side's ranges allow it: a hit is \
                 a match; else a hash of them, compared at each hit",
                reader.ranges().len() * WORD_BYTES,
            ),
            Some(MappingKind::Hashed) => {
                ("a 64-bit hash of the keys' bytes, compared at each hit", KEY_BYTES)
            }
        };
        let payload_bytes = rows * row_bytes;
        let columns = self.schema_of(self.build_side).fields().len().max(1);
        let needs = Needs {
            keyed: rows,
            rows,
            distinct: rows,
            key_bytes: rows * key_bytes,
            widest_bytes: payload_bytes / columns,
            table_bytes: 0,
            batch_rows: PROBED_ROWS,
            flags: self.emits().build != Alone::Never,
        };
        let table = Table::bytes_for(needs.entries(), Load::HALF).unwrap_or(usize::MAX / 2);
        let table_bytes = table + rows * key_bytes;
        let prober = Probed { rows: PROBED_ROWS, row_bytes }.bytes(self, row_bytes);
        let peak_bytes = payload_bytes + needs.bytes() + self.probers * prober;
        let choice = self.strategy.choose(table_bytes, self.caches);
        Plan { keys, table_bytes, payload_bytes, peak_bytes, choice }
    }

    /// The side that goes into the table.
    #[must_use]
    pub fn build_side(&self) -> Side {
        self.build_side
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use crate::{HashJoin, JoinType, Pool};

    #[test]
    fn what_is_foreseen_is_near_what_comes() {
        let rows = 100_000;
        let numbers: ArrayRef =
            Arc::new((0..rows).map(|row| Some(row * 7)).collect::<Int64Array>());
        let text = |row| Some(format!("a key of its own {row}"));
        let texts: ArrayRef = Arc::new((0..rows).map(text).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("a", numbers), ("b", texts)]).unwrap();
        for (on, says) in [("a", "the key itself"), ("b", "a 64-bit hash")] {
            let pool = Pool::unlimited();
            let join =
                HashJoin::by_names(batch.schema(), batch.schema(), &[(on, on)], JoinType::Inner)
                    .unwrap()
                    .with_memory(pool.clone());
            let plan = join.plan(rows as usize, batch.get_array_memory_size() / rows as usize);
            assert!(plan.keys.starts_with(says), "{}", plan.keys);
            let mut build = join.build();
            build.push(batch.clone()).unwrap();
            let table = build.finish().unwrap();
            let near = |foreseen: usize, came: usize| {
                assert!(foreseen <= 2 * came && came <= 2 * foreseen, "{foreseen}, not {came}");
            };
            near(plan.table_bytes, table.table_bytes());
            near(plan.peak_bytes, pool.most());
        }
    }
}
