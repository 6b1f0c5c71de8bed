//! Parquet files are read in morsels (Leis et al., SIGMOD 2014): more parts than there are streams,
//! each taken by the stream that is free.
//!
//! ```text
//! bytes of a file       0 ───────────────────────────────────────────────────────► size
//! row groups            │   0   │   1   │   2   │   3   │   4   │   5   │   6   │
//! DataFusion, 2 parts   ├────────── 0 1 2 3 ────────────┼──────── 4 5 6 ────────┤
//! here, a queue         ├─ 0 ──┼─ 1 ──┼─ 2 ──┼─ 3 ──┼─ 4 ──┼─ 5 ──┼─ 6 ──┼ none ┤
//! ```
//!
//! DataFusion cuts a file into as many ranges of bytes as there are streams. A row group is read
//! with the range that it begins in, so one stream of two may have seven of twelve row groups, and
//! the other waits. Its streams do take ranges from one queue
//! (`datafusion.execution.enable_file_stream_work_stealing`), if there are more of them.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    ArrowSource, FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use workahead_datafusion::WorkaheadOptions;

/// Of a scan's bytes for each of its streams: the last ones to end wait for an eighth of their work
/// at most, where row groups are as small.
const MORSELS: u64 = 8;
/// Opening a range costs as much as decoding some tens of kilobytes, and few row groups are smaller
/// than this.
const LEAST_BYTES: u64 = 4 << 20;

/// Cuts the Parquet files of scans into morsels.
#[derive(Debug, Default)]
pub(crate) struct ScanMorsels;

impl PhysicalOptimizerRule for ScanMorsels {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = WorkaheadOptions::of(config).enabled;
        if !wanted || !config.execution.enable_file_stream_work_stealing {
            return Ok(plan);
        }
        cut_all(plan, in_morsels)
    }

    fn name(&self) -> &str {
        "ScanMorsels"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Cuts the ranges of Arrow's files: DataFusion reads all batches that begin in one at once.
#[derive(Debug, Default)]
pub(crate) struct ArrowRanges;

impl PhysicalOptimizerRule for ArrowRanges {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        cut_all(plan, in_ranges)
    }

    fn name(&self) -> &str {
        "ArrowRanges"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A scan with more files, or ranges of files; none if it would have as many.
type Cut = fn(&Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>>;

fn cut_all(plan: Arc<dyn ExecutionPlan>, cut: Cut) -> Result<Arc<dyn ExecutionPlan>> {
    let cut = |plan: Arc<dyn ExecutionPlan>| {
        Ok(match cut(&plan) {
            Some(cut) => Transformed::yes(cut),
            None => Transformed::no(plan),
        })
    };
    Ok(plan.transform_up(cut)?.data)
}

/// The scan with ranges of a few megabytes, if it has ranges of Arrow's files.
fn in_ranges(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    config.file_source().downcast_ref::<ArrowSource>()?;
    with_files(scan, config, |file| match file.range {
        Some(_) => cut(file, LEAST_BYTES),
        None => vec![file.clone()],
    })
}

/// The scan with these for each of its files, if they are more.
fn with_files(
    scan: &DataSourceExec,
    config: &FileScanConfig,
    pieces: impl Fn(&PartitionedFile) -> Vec<PartitionedFile>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let cut = |group: &FileGroup| group.iter().flat_map(&pieces).collect();
    let groups: Vec<FileGroup> = config.file_groups.iter().map(cut).collect();
    let files = |groups: &[FileGroup]| groups.iter().map(FileGroup::len).sum::<usize>();
    if files(&groups) == files(&config.file_groups) {
        return None;
    }
    let config = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).build();
    Some(Arc::new(scan.clone().with_data_source(Arc::new(config))))
}

/// The scan in morsels, if it has streams that may share them and they would be more.
fn in_morsels(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    config.file_source().downcast_ref::<ParquetSource>()?;
    let streams = config.file_groups.len();
    if streams < 2 || config.preserve_order || config.output_partitioning.is_some() {
        return None;
    }
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let bytes = files.map(PartitionedFile::effective_size).fold(0, u64::saturating_add);
    let morsel = (bytes / (streams as u64 * MORSELS)).max(LEAST_BYTES);
    with_files(scan, config, |file| cut(file, morsel))
}

/// A file, or a range of one, in pieces of a morsel at most.
fn cut(file: &PartitionedFile, morsel: u64) -> Vec<PartitionedFile> {
    let (start, end) = file.range();
    let pieces = end.saturating_sub(start).div_ceil(morsel);
    if pieces < 2 {
        return vec![file.clone()];
    }
    let part = |piece| u128::from(end - start) * u128::from(piece) / u128::from(pieces);
    let edge = |piece: u64| start as i64 + part(piece) as i64;
    (0..pieces).map(|piece| file.clone().with_range(edge(piece), edge(piece + 1))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::arrow::ipc::writer::FileWriter;
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::datasource::file_format::options::ArrowReadOptions;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::WriterProperties;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

    use super::*;

    const ROWS: i64 = 2_000_000;
    const QUERY: &str = "select count(*), sum(id) from t";

    /// 16 MB in row groups of 1.6 MB, which does not divide the size that ranges are cut to.
    fn write(path: &Path) {
        let ids = Int64Array::from_iter_values((0..ROWS).map(|row| row ^ (row << 20)));
        let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(200_000))
            .set_dictionary_enabled(false);
        let file = File::create(path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    async fn session(path: &Path, settings: &[&str]) -> SessionContext {
        let config = SessionConfig::new().with_target_partitions(2);
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let context = SessionContext::new_with_state(crate::install(builder).build());
        for setting in settings {
            context.sql(&format!("set {setting}")).await.unwrap();
        }
        let path = path.to_str().unwrap();
        context.register_parquet("t", path, ParquetReadOptions::default()).await.unwrap();
        context
    }

    /// Ranges of the query's scan, and its answer.
    async fn ran(context: &SessionContext, query: &str) -> (Vec<usize>, (i64, i64)) {
        let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
        let mut ranges = Vec::new();
        plan.apply(|node| {
            let scan = node.downcast_ref::<DataSourceExec>();
            if let Some(config) =
                scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>())
            {
                ranges.extend(config.file_groups.iter().map(FileGroup::len));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        let batches = collect(plan, context.task_ctx()).await.unwrap();
        let number = |at: usize| batches[0].column(at).as_primitive::<Int64Type>().value(0);
        (ranges, (number(0), number(1)))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_is_read_once_in_more_ranges_than_streams() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("t.parquet");
        write(&path);
        let sum = (0..ROWS).map(|row| row ^ (row << 20)).sum();
        let context = session(&path, &[]).await;
        assert_eq!(ran(&context, QUERY).await, (vec![2, 2], (ROWS, sum)));
        // Those that may not be shared, and those whose rows come in order, stay whole.
        for setting in [
            "datafusion.execution.enable_file_stream_work_stealing = false",
            "workahead.enabled = false",
        ] {
            let context = session(&path, &[setting]).await;
            assert_eq!(ran(&context, QUERY).await, (vec![1, 1], (ROWS, sum)));
        }
        let context = session(&path, &[]).await;
        let table = format!(
            "create external table ordered stored as parquet with order (id) location '{}'",
            path.display()
        );
        context.sql(&table).await.unwrap();
        let ordered = "select count(n), max(id) from \
                       (select id, row_number() over (order by id) as n from ordered) s";
        let (ranges, _) = ran(&context, ordered).await;
        assert!(ranges.iter().all(|ranges| *ranges == 1), "{ranges:?}");
    }

    /// Under any session: it is for memory, not for speed.
    #[tokio::test(flavor = "multi_thread")]
    async fn ranges_of_arrow_are_a_few_megabytes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("t.arrow");
        let batch = |rows: std::ops::Range<i64>| {
            let ids = Int64Array::from_iter_values(rows);
            RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap()
        };
        let mut writer =
            FileWriter::try_new(File::create(&path).unwrap(), &batch(0..1).schema()).unwrap();
        for start in (0..ROWS).step_by(50_000) {
            writer.write(&batch(start..start + 50_000)).unwrap();
        }
        writer.finish().unwrap();
        for is_ours in [true, false] {
            let config = SessionConfig::new().with_target_partitions(2);
            let builder = SessionStateBuilder::new().with_config(config).with_default_features();
            let builder = match is_ours {
                true => crate::install(builder),
                false => crate::install::bound_reads(builder),
            };
            let context = SessionContext::new_with_state(builder.build());
            let path = path.to_str().unwrap();
            context.register_arrow("t", path, ArrowReadOptions::default()).await.unwrap();
            assert_eq!(ran(&context, QUERY).await, (vec![2, 2], (ROWS, ROWS * (ROWS - 1) / 2)));
        }
    }

    #[test]
    fn ranges_cover_a_file() {
        let file = PartitionedFile::new("a", 1_000_003);
        for (morsel, pieces) in [(1 << 20, 1), (1_000_002, 2), (4 << 10, 245), (1, 1_000_003)] {
            let ranges = cut(&file, morsel);
            assert_eq!(ranges.len(), pieces);
            assert_eq!(ranges[0].range().0, 0);
            assert_eq!(ranges[pieces - 1].range().1, 1_000_003);
            let meet = |pair: &[PartitionedFile]| pair[0].range().1 == pair[1].range().0;
            assert!(ranges.windows(2).all(meet));
        }
        let ranges = cut(&PartitionedFile::new("a", 100).with_range(10, 30), 10);
        assert_eq!(
            ranges.iter().map(PartitionedFile::range).collect::<Vec<_>>(),
            [(10, 20), (20, 30)]
        );
    }
}
