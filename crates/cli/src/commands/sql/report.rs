//! The report of the statements, as text and as JSON.

use std::path::PathBuf;

use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Value, json};
use workahead_sql::session::{Joiner, Joins, Options};

use crate::output;

/// The report of one statement.
pub(crate) struct StatementReport {
    pub(crate) name: Option<String>,
    pub(crate) rows: u64,
    pub(crate) seconds: f64,
    pub(crate) joins: Joins,
    /// The output file, and its bytes.
    pub(crate) out: Option<(PathBuf, u64)>,
    /// How often it was started: more than once if a cluster lost a worker.
    pub(crate) runs: usize,
}

/// The session of the statements.
pub(crate) struct SessionInfo<'a> {
    pub(crate) options: &'a Options,
    /// The URL of the cluster, if one ran them.
    pub(crate) cluster: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    joiner: &'static str,
    cluster: Option<&'a str>,
    /// Threads of this process; none for a cluster.
    threads: Option<usize>,
    memory_limit_bytes: Option<usize>,
    seconds: f64,
    statements: Vec<Value>,
}

/// Prints JSON on standard output; or a line for each statement, on standard error if rows are on
/// standard output.
pub(crate) fn print(
    session: &SessionInfo<'_>,
    all: Vec<StatementReport>,
    json: bool,
) -> anyhow::Result<()> {
    let SessionInfo { options, cluster } = session;
    let cluster = cluster.as_deref();
    let seconds = all.iter().map(|report| report.seconds).sum();
    if json {
        return output::json(&Report {
            joiner: match options.joiner {
                Joiner::Ours => "workahead",
                Joiner::Stock => "datafusion",
            },
            cluster,
            threads: cluster.is_none().then_some(options.threads.get()),
            memory_limit_bytes: options.memory_limit,
            seconds,
            statements: all.iter().map(StatementReport::json).collect(),
        });
    }
    let rows_are_printed = all.last().is_some_and(|last| last.out.is_none()) && all.len() == 1;
    let mut lines: Vec<String> = all.iter().map(StatementReport::line).collect();
    if all.len() > 1 {
        let by = match cluster {
            Some(url) => format!("by {url}"),
            None => format!("threads: {}", options.threads),
        };
        lines.push(format!("{} statements in {seconds:.3} s, {by}", all.len()));
    }
    let text = lines.join("\n");
    if rows_are_printed {
        output::note(&text);
        return Ok(());
    }
    output::text(&text)
}

impl StatementReport {
    fn json(&self) -> Value {
        let Joins { ours, stock, spilled, spill_files, spilled_bytes, exchanged_bytes } =
            self.joins;
        json!({
            "name": self.name,
            "rows": self.rows,
            "runs": self.runs,
            "seconds": self.seconds,
            "joins": ours,
            "joins_left_to_datafusion": stock,
            "joins_spilled": spilled,
            "spill_files": spill_files,
            "spilled_bytes": spilled_bytes,
            "exchanged_bytes": exchanged_bytes,
            "out": self.out.as_ref().map(|(path, _)| path),
            "out_bytes": self.out.as_ref().map(|(_, bytes)| bytes),
        })
    }

    fn line(&self) -> String {
        let Self { rows, seconds, joins, .. } = self;
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name:<3}  "));
        let mut line = format!("{name}{rows} rows in {seconds:.3} s");
        if joins.ours > 0 {
            line += &format!(", {} joins by Workahead", joins.ours);
        }
        if joins.stock > 0 {
            line += &format!(", {} by DataFusion", joins.stock);
        }
        if joins.spilled > 0 {
            let bytes = HumanBytes(joins.spilled_bytes as u64);
            line += &format!(", {} spilled {bytes} to {} files", joins.spilled, joins.spill_files);
        }
        if joins.exchanged_bytes > 0 {
            line += &format!(", {} exchanged", HumanBytes(joins.exchanged_bytes as u64));
        }
        if self.runs > 1 {
            line += &format!(", started {} times because workers were lost", self.runs);
        }
        if let Some((path, bytes)) = &self.out {
            line += &format!("; written {}, {}", path.display(), HumanBytes(*bytes));
        }
        line
    }
}
