//! The papers' tables filled from streams made by hand.

use super::*;
use crate::published::{Metric, hassanein, keeton};
use workahead_counters::event::Privilege;
use workahead_counters::metric;
use workahead_counters::metrics::{MetricValue, Metrics};
use workahead_counters::stream::Stream;

fn metrics(file: &str) -> Metrics {
    Metrics::of(&stream(file))
}

fn stream(file: &str) -> Stream {
    let path = manifest_folder().join("recordings").join(file);
    let bytes = std::fs::read(path).expect("it is kept");
    Stream::read(&mut bytes.as_slice()).expect("a recording")
}

fn cell<'a>(tables: &'a [PaperTable], id: &str, row: &str, column: &str) -> &'a Cell {
    let table = tables.iter().find(|table| table.id == id).expect("a table");
    let column = table.columns.iter().position(|name| name == column).expect("a column");
    &table.rows.iter().find(|of| of.name == row).expect("a row").cells[column]
}

/// Answers every metric with a half.
struct Half;

impl Source for Half {
    fn figure(&self, _: &str, _: &Configuration) -> Result<Figure, String> {
        Ok(Figure { value: 0.5, noisy: true, instead: Some("a half".to_owned()) })
    }
}

#[test]
fn every_metric_that_the_papers_name_is_known() {
    for paper in [keeton(), hassanein()] {
        let rows = paper.tables().iter().flat_map(|table| &table.rows).map(|row| &row.metric);
        for name in rows.filter_map(Metric::name) {
            let of_catalogue = metric::named(name).is_ok();
            assert!(of_catalogue != derived(name).is_some(), "{name}");
        }
    }
    for derived in DERIVED {
        assert!(derived.inputs.iter().all(|input| metric::named(input).is_ok()));
        assert_eq!(derived.of.is_some(), !derived.inputs.is_empty());
    }
}

#[test]
fn tables_keep_their_shape_and_units() {
    for paper in [keeton(), hassanein()] {
        let tables = fill(paper, &Half);
        assert_eq!(tables.len(), paper.tables().len());
        for (ours, theirs) in tables.iter().zip(paper.tables()) {
            assert_eq!((&ours.id, ours.rows.len()), (&theirs.id, theirs.rows.len()));
            for (row, of) in ours.rows.iter().zip(&theirs.rows) {
                assert_eq!(row.cells.len(), ours.columns.len());
                for cell in &row.cells {
                    let expected = match (of.metric.name(), of.unit.starts_with('%')) {
                        (None, _) => None,
                        (Some(_), true) => Some(50.0),
                        (Some(_), false) => Some(0.5),
                    };
                    assert_eq!(cell.ours, expected, "{}, {}", ours.id, row.name);
                    assert_eq!(cell.why.is_some(), expected.is_none());
                }
            }
        }
    }
    let tables = fill(keeton(), &Half);
    let cpi = cell(&tables, "Table 10", "Measured, CPI", "DB");
    assert_eq!((cpi.paper.as_deref(), cpi.noisy), (Some("2.52"), true));
    let blank = cell(&tables, "Table 2", "Outstanding bus transactions, uniprocessor", "Third");
    assert_eq!(blank.paper, None);
    let na = cell(&tables, "Table 17", "0-µop retire, % inst.", "OS");
    assert_eq!(na.paper.as_deref(), Some("n/a"));
}

#[test]
fn what_was_counted_stands_where_the_papers_base_stands() {
    let metrics = metrics("intel-skylake-sp.jsonl");
    let ours = StreamFigures { metrics: &metrics, processors: Some(4) };
    let tables = fill(keeton(), &ours);
    let value = |name, privilege| metrics.get(name, privilege, None).unwrap().value.unwrap();
    for (column, privilege) in
        [("DB", Privilege::User), ("OS", Privilege::Kernel), ("Overall", Privilege::Both)]
    {
        let of = |row| cell(&tables, "Table 10", row, column).ours.unwrap();
        assert_eq!(of("Measured, CPI"), value("cpi", privilege));
        let parts = ["Resource stalls, CPI", "Instruction-related stalls, CPI", "Computation, CPI"];
        let sum: f64 = parts.map(of).iter().sum();
        assert!((of("Computed, CPI") - sum).abs() < 1e-9);
        let uops = value("uops_per_instruction", privilege);
        assert!((of("Computed, CPµ") * uops - sum).abs() < 1e-9);
        assert!((of("Resource stalls, CPµ") * uops - of("Resource stalls, CPI")).abs() < 1e-9);
        let stalled = cell(&tables, "Figure 2", "Stalls", column).ours.unwrap();
        let stalls = of("Resource stalls, CPI") + of("Instruction-related stalls, CPI");
        assert!((stalled - 100.0 * stalls / of("Measured, CPI")).abs() < 1e-9);
    }
    // Uops in wider cycles are not in the paper's three rows.
    let of = |row| cell(&tables, "Table 17", row, "Overall").ours.unwrap();
    let shares = ["1-µop retire, % inst.", "2-µop retire, % inst.", "3-µop retire, % inst."];
    let sum: f64 = shares.map(of).iter().sum();
    assert!(sum > 10.0 && sum < 100.0, "{sum}");
    assert!(
        (of("0-µop retire, % cycles") - 100.0 * value("retire_0", Privilege::Both)).abs() < 1e-9
    );
    let accesses = cell(&tables, "Table 11", "Instruction fetches", "1 MB").ours.unwrap();
    let ratio = value("l1i_miss_ratio", Privilege::Both);
    assert!((accesses * ratio - value("l1i_mpki", Privilege::Both)).abs() < 1e-9);
}

#[test]
fn what_a_machine_cant_vary_is_empty_and_says_so() {
    let metrics = metrics("intel-sapphire-rapids.jsonl");
    let tables = fill(keeton(), &StreamFigures { metrics: &metrics, processors: Some(2) });
    let why = |id, row, column| {
        let cell = cell(&tables, id, row, column);
        assert_eq!(cell.ours, None, "{id}, {row}, {column}");
        cell.why.clone().unwrap()
    };
    assert!(why("Table 11", "Overall L2 misses", "256 KB").contains("a modelled machine can"));
    assert!(why("Table 4", "Measured CPI", "1 bus req.").contains("a modelled machine can"));
    assert!(why("Table 7", "1 MB", "1 P").contains("no run on 1 processor was"));
    assert!(why("Table 7", "256 KB", "2 P").contains("L2"));
    assert!(why("Table 6", "1 MB", "4 P").contains("no bus is shared"));
    assert!(why("Figure 8", "Measured CPI of the non-overlapped total", "1 MB").contains("penal"));
    assert!(cell(&tables, "Table 7", "1 MB", "2 P").ours.is_some());
    let base = cell(&tables, "Table 7", "1 MB", "4 P");
    assert!(base.instead.as_ref().unwrap().contains("counted on 2 processors"));
    // The table's own reason.
    let row = "L1 I-cache miss ratio";
    assert!(why("Table 11", row, "1 MB").contains("accesses to L1I are not counted"));
    // Lower bounds say what they are, and so does what is made of them.
    let row = "Computed, CPI";
    let computed = cell(&tables, "Table 10", row, "DB");
    assert!(computed.instead.as_ref().unwrap().contains("lower bound"));
    assert!(why_not(&metrics, "uTPC-C").contains("uTPC-C"));
}

fn why_not(metrics: &Metrics, workload: &str) -> String {
    let ours = StreamFigures { metrics, processors: None };
    let at = Configuration { workload: Some(workload.to_owned()), ..Configuration::default() };
    ours.figure("load_share", &at).unwrap_err()
}

#[test]
fn a_metric_that_was_not_requested_names_its_group() {
    let metrics = metrics("amd-zen4.jsonl");
    let is_cpi = |valued: &&MetricValue| valued.metric.name == "cpi";
    let metrics: Metrics = metrics.values().iter().filter(is_cpi).cloned().collect();
    let both_only = |privilege| Configuration { privilege, ..Configuration::default() };
    let ours = StreamFigures { metrics: &metrics, processors: None };
    let why = ours.figure("l2_mpki", &both_only(None)).unwrap_err();
    assert!(why.contains("--metrics l2"), "{why}");
    let is_both = |valued: &&MetricValue| valued.privilege == Privilege::Both;
    let metrics: Metrics = metrics.values().iter().filter(is_both).cloned().collect();
    let ours = StreamFigures { metrics: &metrics, processors: None };
    assert!(ours.figure("cpi", &both_only(None)).is_ok());
    let why = ours.figure("cpi", &both_only(Some(Privilege::User))).unwrap_err();
    assert!(why.contains("--sides"), "{why}");
    assert!(ours.figure("no_such", &both_only(None)).is_err());
}

#[test]
fn processors_are_the_cores_that_were_counted() {
    let mut stream = stream("intel-sapphire-rapids.jsonl");
    let processors = |stream: &Stream| StreamFigures::of(stream, &Metrics::of(stream)).processors;
    assert_eq!(processors(&stream), Some(4));
    // Two siblings are one processor, and one that nothing ran on is none.
    stream.header.cores = vec![vec![0, 1], vec![2], vec![3, 4], vec![9]];
    assert_eq!(processors(&stream), Some(3));
    stream.header.cores.clear();
    assert_eq!(processors(&stream), None);
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
