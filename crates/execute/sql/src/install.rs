//! Workahead's rules among those of a session.

use std::sync::Arc;

use datafusion::common::config::OptimizerOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use workahead_datafusion::{WorkaheadJoins, WorkaheadOptions, insert_rules};

use crate::local_files::{self, CachedReads};
use crate::morsels::{ArrowRanges, ScanMorsels};
use crate::reuse::ReusedSubplans;

/// Build sides up to this many bytes are read into one table, by all threads, rather than
/// exchanged between them with their probe sides.
const SHARED_BUILD_BYTES: usize = 64 << 20;
/// Where a planner knows rows only: their least bytes.
const SHARED_ROW_BYTES: usize = 64;

/// Lets a session do its hash joins with Workahead.
///
/// It raises `datafusion.optimizer.hash_join_single_partition_threshold`, and the same in rows,
/// where they are DataFusion's defaults: our tables are built and probed by all threads, so an
/// exchange of both sides gains nothing while the build side is small.
#[must_use]
pub fn install(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_default();
    if config.options().extensions.get::<WorkaheadOptions>().is_none() {
        config.options_mut().extensions.insert(WorkaheadOptions::default());
    }
    let (optimizer, default) = (&mut config.options_mut().optimizer, OptimizerOptions::default());
    let bytes = &mut optimizer.hash_join_single_partition_threshold;
    if *bytes == default.hash_join_single_partition_threshold {
        *bytes = SHARED_BUILD_BYTES;
    }
    let rows = &mut optimizer.hash_join_single_partition_threshold_rows;
    if *rows == default.hash_join_single_partition_threshold_rows {
        *rows = SHARED_BUILD_BYTES / SHARED_ROW_BYTES;
    }
    install_files(builder.runtime_env().get_or_insert_default());
    let rules = &mut builder.physical_optimizers().get_or_insert_with(PhysicalOptimizer::new).rules;
    insert_rules(rules);
    // Before filters of joins are pushed down, which `WorkaheadJoins` precedes.
    let joins = rules.iter().rposition(|rule| rule.name() == WorkaheadJoins::default().name());
    let at = joins.map_or(rules.len(), |at| at + 1);
    // Subplans are compared with the ranges that their scans have.
    rules.splice(at..at, [Arc::new(ScanMorsels) as _, Arc::new(ReusedSubplans) as _]);
    bound_reads(builder)
}

/// Lets no scan hold all of an Arrow file.
pub(crate) fn bound_reads(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let rules = &mut builder.physical_optimizers().get_or_insert_with(PhysicalOptimizer::new).rules;
    rules.push(Arc::new(ArrowRanges));
    builder
}

/// Reads local files as [`install`] does: what is in the page cache without a change of threads,
/// and footers of Parquet's only once they were looked through.
pub fn install_files(environment: &RuntimeEnv) {
    local_files::install(environment, CachedReads::Here);
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;

    use super::*;

    #[test]
    fn thresholds_that_somebody_set_stay() {
        let optimizer = |config| {
            let state = install(SessionStateBuilder::new().with_config(config)).build();
            let optimizer = &state.config_options().optimizer;
            let bytes = optimizer.hash_join_single_partition_threshold;
            (bytes, optimizer.hash_join_single_partition_threshold_rows)
        };
        let ours = (SHARED_BUILD_BYTES, SHARED_BUILD_BYTES / SHARED_ROW_BYTES);
        assert_eq!(optimizer(SessionConfig::new()), ours);
        let mut config = SessionConfig::new();
        config.options_mut().optimizer.hash_join_single_partition_threshold = 5;
        config.options_mut().optimizer.hash_join_single_partition_threshold_rows = 0;
        assert_eq!(optimizer(config), (5, 0));
    }
}
