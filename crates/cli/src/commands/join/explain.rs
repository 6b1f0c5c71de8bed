//! `--explain`: the plan of a join and its reasons, from the files' metadata. No row is read.

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use workahead_join::{BuildStatistics, HashJoin, Plan, TableLayout};

use super::execution::Execution;
use super::input::Input;
use crate::output;

/// The plan of a join.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    #[serde(rename = "type")]
    join_type: &'static str,
    build_side: &'static str,
    build_side_why: String,
    build_rows: Option<u64>,
    probe_rows: Option<u64>,
    keys: &'static str,
    filter: Option<String>,
    layout: &'static str,
    layout_why: String,
    table_bytes: Option<usize>,
    table_cache: Option<String>,
    payload_bytes: usize,
    peak_memory_bytes: Option<usize>,
    memory_limit_bytes: Option<usize>,
    will_spill: Option<bool>,
    threads: usize,
    columns: Vec<String>,
}

impl Explanation {
    pub(crate) fn new(
        execution: &Execution<'_>,
        join: &HashJoin,
        (build, build_keys): (&Input, &[&str]),
        probe: &Input,
    ) -> Self {
        let rows = build.rows();
        let bytes = build.row_bytes();
        let known = rows.unwrap_or(0).max(1);
        let statistics = BuildStatistics {
            rows: known as usize,
            row_bytes: bytes.div_ceil(known) as usize,
            key_spans: build_keys.iter().map(|key| build.span(key)).collect(),
        };
        let Plan { keys, table_bytes, payload_bytes, peak_bytes, layout_choice } =
            join.plan(&statistics);
        let (layout, layout_why) = match rows {
            Some(_) => (layout_choice.layout, layout_choice.why),
            None => (execution.layout, layout_of_unknown_rows(execution.layout).to_owned()),
        };
        let limit = execution.budget.limit();
        let schema = join.schema();
        let columns = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
        Self {
            join_type: execution.join_type.name(),
            build_side: execution.sides.build.name(),
            build_side_why: execution.sides.why.clone(),
            build_rows: rows,
            probe_rows: probe.rows(),
            keys,
            filter: execution.filter.clone(),
            layout: layout.name(),
            layout_why,
            table_bytes: rows.map(|_| table_bytes),
            table_cache: rows.map(|_| join.caches().describe_fit(table_bytes)),
            payload_bytes,
            peak_memory_bytes: rows.map(|_| peak_bytes),
            memory_limit_bytes: limit,
            will_spill: match limit {
                None => Some(false),
                Some(limit) => rows.map(|_| peak_bytes > limit),
            },
            threads: execution.threads.get(),
            columns: columns.collect(),
        }
    }

    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        output::show(json, self, || self.render())
    }

    fn render(&self) -> String {
        let rows = |rows: Option<u64>| match rows {
            Some(rows) => format!("{} rows", HumanCount(rows)),
            None => "unknown number of rows".to_owned(),
        };
        let bytes = |bytes: usize| HumanBytes(bytes as u64).to_string();
        let memory = match (self.peak_memory_bytes, self.memory_limit_bytes, self.will_spill) {
            (Some(peak), Some(limit), Some(true)) => {
                format!("{} estimated of {}: will spill", bytes(peak), bytes(limit))
            }
            (Some(peak), Some(limit), _) => {
                format!("{} estimated of {}: should not spill", bytes(peak), bytes(limit))
            }
            (None, Some(limit), _) => format!("spills beyond {}", bytes(limit)),
            (Some(peak), None, _) => format!("{} estimated, unlimited", bytes(peak)),
            (None, None, _) => "unlimited".to_owned(),
        };
        let table = match (self.table_bytes, &self.table_cache) {
            (Some(table), Some(cache)) => {
                let payload = bytes(self.payload_bytes);
                format!("{}, and {payload} of rows; {cache}", bytes(table))
            }
            _ => "unknown before the join".to_owned(),
        };
        let filter = self.filter.as_ref().map_or(String::new(), |text| {
            format!("\n  filter    {text}: evaluated on rows with equal keys")
        });
        format!(
            "{} join, not run\n  build     {}, {}: {}\n  probe     {}, {} thread{}\n  \
             keys      {}{filter}\n  layout    {}: {}\n  \
             table     {table}\n  memory    {memory}\n  columns   {}",
            self.join_type,
            self.build_side,
            rows(self.build_rows),
            self.build_side_why,
            rows(self.probe_rows),
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.keys,
            self.layout,
            self.layout_why,
            self.columns.join(", "),
        )
    }
}

/// The reason for a table's layout when the number of rows is unknown.
fn layout_of_unknown_rows(layout: TableLayout) -> &'static str {
    match layout {
        TableLayout::Auto => {
            "decided when all keys are read: a slot for each integer of their range if that is \
             smaller than buckets"
        }
        _ => "as requested, if the keys allow it",
    }
}
