//! Metrics of a join: DataFusion's names where it has one, and our own.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion_common::JoinType;
use datafusion_physical_plan::metrics::{
    BaselineMetrics, Count, CustomMetricValue, ExecutionPlanMetricsSet, Gauge, Metric,
    MetricBuilder, MetricCategory, MetricType, MetricValue, RatioMetrics, Time,
};
use parking_lot::Mutex;
use workahead_join::{JoinTable, ProbeMetrics};

/// Metrics of one partition.
#[derive(Debug, Clone)]
pub(crate) struct JoinMetrics {
    pub(crate) baseline: BaselineMetrics,
    /// Reading keys and making the table, without waiting for the input.
    pub(crate) build_time: Time,
    pub(crate) build_input_batches: Count,
    pub(crate) build_input_rows: Count,
    pub(crate) build_mem_used: Gauge,
    /// Lookup and output.
    pub(crate) join_time: Time,
    pub(crate) input_batches: Count,
    pub(crate) input_rows: Count,
    pub(crate) probe_hit_rate: RatioMetrics,
    /// Matches per matched probe row, for join types that return matches.
    pub(crate) avg_fanout: RatioMetrics,
    /// Bytes that probes touch.
    pub(crate) table_bytes: Gauge,
    pub(crate) layout: Arc<NameMetric>,
    pub(crate) build_side: Arc<NameMetric>,
    pub(crate) spill_count: Count,
    pub(crate) spilled_bytes: Count,
    pub(crate) spilled_rows: Count,
}

impl JoinMetrics {
    pub(crate) fn new(partition: usize, set: &ExecutionPlanMetricsSet) -> Self {
        let rows = |name: &'static str| {
            MetricBuilder::new(set).with_category(MetricCategory::Rows).counter(name, partition)
        };
        let time = |name: &'static str| MetricBuilder::new(set).subset_time(name, partition);
        let ratio = |name: &'static str| {
            MetricBuilder::new(set).with_type(MetricType::Summary).ratio_metrics(name, partition)
        };
        let names = |name: &'static str| {
            let names = Arc::new(NameMetric::default());
            let (name, value) = (Cow::Borrowed(name), Arc::clone(&names) as _);
            let metric = MetricBuilder::new(set).with_partition(partition);
            metric.build(MetricValue::Custom { name, value });
            names
        };
        Self {
            baseline: BaselineMetrics::new(set, partition),
            build_time: time("build_time"),
            build_input_batches: rows("build_input_batches"),
            build_input_rows: rows("build_input_rows"),
            build_mem_used: MetricBuilder::new(set).peak_memory_usage("build_mem_used", partition),
            join_time: time("join_time"),
            input_batches: rows("input_batches"),
            input_rows: rows("input_rows"),
            probe_hit_rate: ratio("probe_hit_rate"),
            avg_fanout: ratio("avg_fanout"),
            table_bytes: MetricBuilder::new(set).gauge("table_bytes", partition),
            layout: names("layout"),
            build_side: names("build_side"),
            spill_count: MetricBuilder::new(set).spill_count(partition),
            spilled_bytes: MetricBuilder::new(set).spilled_bytes(partition),
            spilled_rows: MetricBuilder::new(set).spilled_rows(partition),
        }
    }

    /// Adds a table's figures, once: all its probers share them.
    pub(crate) fn close_table(&self, table: &JoinTable) {
        let spilled = table.spill_metrics();
        self.spill_count.add(spilled.files as usize);
        self.spilled_bytes.add(spilled.bytes as usize);
        self.spilled_rows.add(spilled.rows as usize);
        self.build_mem_used.set_max(table.peak_memory_bytes());
    }

    /// Adds a prober's figures.
    pub(crate) fn add(&self, done: ProbeMetrics, join_type: JoinType) {
        let (probed, matched) = (done.probe_rows as usize, done.matched_rows as usize);
        self.probe_hit_rate.add_part(matched);
        self.probe_hit_rate.add_total(probed);
        let unmatched = match join_type {
            JoinType::Inner | JoinType::Left => 0,
            JoinType::Right | JoinType::Full => probed - matched,
            _ => return,
        };
        self.avg_fanout.add_part(done.output_rows as usize - unmatched);
        self.avg_fanout.add_total(matched);
    }

    /// Adds build and probe time to the operator's compute time. Once, at the end of a stream.
    pub(crate) fn close(&self) {
        self.baseline.elapsed_compute().add(&self.build_time);
        self.baseline.elapsed_compute().add(&self.join_time);
        self.baseline.done();
    }
}

/// A metric whose value is a name; several names when partitions differ.
#[derive(Debug, Default)]
pub(crate) struct NameMetric(Mutex<BTreeSet<String>>);

impl NameMetric {
    pub(crate) fn add(&self, name: &str) {
        self.0.lock().insert(name.to_owned());
    }

    /// Of a join that is left to DataFusion.
    pub(crate) fn left_alone(why: &str) -> Arc<Metric> {
        let names = Self::default();
        names.add(why);
        let value = Arc::new(names);
        Arc::new(Metric::new(MetricValue::Custom { name: "left_alone".into(), value }, None))
    }
}

impl fmt::Display for NameMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.lock().iter().cloned().collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join("+"))
    }
}

impl CustomMetricValue for NameMetric {
    fn new_empty(&self) -> Arc<dyn CustomMetricValue> {
        Arc::new(Self::default())
    }

    fn aggregate(&self, other: Arc<dyn CustomMetricValue + 'static>) {
        if let Some(other) = other.as_any().downcast_ref::<Self>() {
            let names = other.0.lock().clone();
            self.0.lock().extend(names);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_eq(&self, other: &Arc<dyn CustomMetricValue>) -> bool {
        // Never two locks at a time: the other metric may be this one.
        let other = other.as_any().downcast_ref::<Self>().map(|other| other.0.lock().clone());
        other.is_some_and(|names| *self.0.lock() == names)
    }
}
