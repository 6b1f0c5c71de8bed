//! What is said of statements that were run.

use std::path::PathBuf;

use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Value, json};
use workahead_sql::session::{Joiner, Joins, Options};

use crate::output;

/// Of one statement.
pub(crate) struct Facts {
    pub(crate) name: Option<String>,
    pub(crate) rows: u64,
    pub(crate) seconds: f64,
    pub(crate) joins: Joins,
    /// The file, and its bytes.
    pub(crate) out: Option<(PathBuf, u64)>,
    /// How often it was begun: more than once when a cluster lost an executor.
    pub(crate) runs: usize,
}

/// Who ran them.
pub(crate) struct By<'a> {
    pub(crate) options: &'a Options,
    /// The cluster that did, if one did.
    pub(crate) cluster: Option<&'a str>,
}

#[derive(Serialize)]
struct Report<'a> {
    joiner: &'static str,
    cluster: Option<&'a str>,
    /// Of this process: what a cluster's executors have is theirs.
    threads: Option<usize>,
    memory_limit_bytes: Option<usize>,
    seconds: f64,
    statements: Vec<Value>,
}

/// For programs all of it on standard output; for people a line each on standard error, where rows
/// are on standard output.
pub(crate) fn print(by: &By<'_>, all: Vec<Facts>, json: bool) -> anyhow::Result<()> {
    let By { options, cluster } = *by;
    let seconds = all.iter().map(|facts| facts.seconds).sum();
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
            statements: all.iter().map(Facts::json).collect(),
        });
    }
    let shown = all.last().is_some_and(|last| last.out.is_none()) && all.len() == 1;
    let mut lines: Vec<String> = all.iter().map(Facts::line).collect();
    if all.len() > 1 {
        let by = match cluster {
            Some(url) => format!("by {url}"),
            None => format!("threads: {}", options.threads),
        };
        lines.push(format!("{} statements in {seconds:.3} s, {by}", all.len()));
    }
    let text = lines.join("\n");
    if shown {
        eprintln!("{text}");
        return Ok(());
    }
    output::text(&text)
}

impl Facts {
    fn json(&self) -> Value {
        let Joins { ours, stock, spilled, spill_files, spilled_bytes } = self.joins;
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
        if self.runs > 1 {
            line += &format!(", begun {} times, for executors were lost", self.runs);
        }
        if let Some((path, bytes)) = &self.out {
            line += &format!("; written {}, {}", path.display(), HumanBytes(*bytes));
        }
        line
    }
}
