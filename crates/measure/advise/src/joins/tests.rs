//! Joins of small plans, by hand, on a machine of three sizes.

use proptest::prelude::*;
use workahead_machine::limits::{CacheSizes, LatencyPoint, LinesPoint, Siblings};
use workahead_study::spec::Spec;

use super::*;

/// 2 ns a line in caches up to 1 MB, waited for or not; beyond it 100 ns, or 10 among others.
fn limits() -> Limits {
    let (mut latency, mut lines) = (Vec::new(), Vec::new());
    for (bytes, ns, among_others_ns) in
        [(1_000, 2.0, 2.0), (1_000_000, 2.0, 2.0), (2_000_000, 100.0, 10.0)]
    {
        latency.push(LatencyPoint { bytes, pages: Pages::Huge, ns, median_ns: ns });
        let per_s = 1e9 / among_others_ns;
        lines.push(LinesPoint {
            bytes,
            threads: 1,
            pages: Pages::Huge,
            plain_per_s: per_s,
            prefetch_l1_per_s: per_s,
            prefetch_l2_per_s: per_s,
        });
    }
    Limits {
        version: workahead_machine::limits::VERSION,
        machine: "0".to_owned(),
        processor: Some("Abacus".to_owned()),
        taken_unix_s: 0,
        seconds: 1.0,
        quick: false,
        latency,
        lines,
        bandwidth: Vec::new(),
        instruction_sets: Vec::new(),
        pause_ns: 10.0,
        siblings: Siblings::default(),
        cache_sizes: CacheSizes::default(),
        huge_share: Some(1.0),
        presence: 1.0,
        limitations: Vec::new(),
    }
}

fn answer(planner: Planner, text: &str) -> JoinsAnswer {
    let plans = [("Q3".to_owned(), PlanText::new(planner, text))];
    JoinsAnswer::of_plans(&plans, &limits()).unwrap()
}

/// A million probes of a table of a hundred thousand rows.
fn postgres(table_kb: u32, join_ms: f64) -> String {
    format!(
        r#"[{{"Plan": {{"Node Type": "Hash Join", "Hash Cond": "(a.x = b.x)",
            "Actual Total Time": {join_ms}, "Actual Rows": 1000000, "Actual Loops": 1, "Plans": [
            {{"Node Type": "Seq Scan", "Relation Name": "a", "Actual Total Time": 100.0,
              "Actual Rows": 1000000, "Actual Loops": 1}},
            {{"Node Type": "Hash", "Peak Memory Usage": {table_kb}, "Actual Total Time": 50.0,
              "Actual Rows": 100000, "Actual Loops": 1, "Plans": [
              {{"Node Type": "Seq Scan", "Relation Name": "b", "Actual Total Time": 20.0,
                "Actual Rows": 100000, "Actual Loops": 1}}]}}]}}}}]"#
    )
}

#[test]
fn a_table_beyond_the_caches_is_waited_for() {
    let answer = answer(Planner::Postgres, &postgres(8_000, 1_000.0));
    // Two lines of each probe and one of each row in it; 100 ns alone, 10 among others.
    let saved_ms = 2_100_000.0 * 90.0 / 1e6;
    assert!((answer.saved_ms - saved_ms).abs() < 0.01, "{}", answer.saved_ms);
    assert_eq!(answer.total_ms, Some(1_000.0));
    let [join] = &answer.joins[..] else { panic!("{:?}", answer.joins) };
    assert_eq!((join.lines, join.bytes, join.through_index), (2.1e6, 8_192_000.0, false));
    // Its own time and that of the node which makes the table.
    assert_eq!(join.time_ms, Some(880.0));
    assert_eq!(
        answer.sentence,
        "Joins wait for memory for up to 19 % of the statement's time: working ahead would save at \
         most 189 ms of 1.00 s, 189 ms of it in Hash Join [a.x = b.x] (Q3)."
    );
    assert!(answer.notes[0].starts_with("Modelled") && answer.notes[0].contains("Abacus"));
}

#[test]
fn a_table_in_the_caches_is_not() {
    let answer = answer(Planner::Postgres, &postgres(900, 1_000.0));
    assert_eq!(answer.saved_ms, 0.0);
    assert_eq!(
        answer.sentence,
        "No hash join waits for memory: working ahead would save at most 0.0 % of the statement's \
         time."
    );
}

#[test]
fn no_join_saves_more_than_it_takes() {
    let answer = answer(Planner::Postgres, &postgres(8_000, 200.0));
    assert_eq!(answer.saved_ms, 80.0, "of 200 ms the scans take 120");
}

#[test]
fn a_plan_that_was_not_run_has_no_share() {
    let text = r#"[{"Plan": {"Node Type": "Hash Join", "Plan Rows": 1000000, "Plans": [
        {"Node Type": "Seq Scan", "Plan Rows": 1000000, "Plan Width": 8},
        {"Node Type": "Hash", "Plan Rows": 1000000, "Plan Width": 8}]}}]"#;
    let answer = answer(Planner::Postgres, text);
    assert_eq!(answer.total_ms, None);
    assert_eq!(answer.joins[0].bytes, 8e6);
    assert!(answer.sentence.contains("at most 270 ms") && answer.sentence.contains("ANALYZE"));
}

#[test]
fn every_engine_builds_where_it_does() {
    let duckdb = r#"[{"operator_name": "HASH_JOIN", "operator_timing": 1.0,
        "operator_cardinality": 5, "children": [
        {"operator_name": "SEQ_SCAN", "operator_timing": 0.1, "operator_cardinality": 3000000,
         "result_set_size": 24000000, "children": []},
        {"operator_name": "SEQ_SCAN", "operator_timing": 0.1, "operator_cardinality": 200000,
         "result_set_size": 3200000, "children": []}]}]"#;
    let answer_of = answer(Planner::Duckdb, duckdb);
    assert_eq!((answer_of.joins[0].bytes, answer_of.joins[0].lines), (3.2e6, 6.2e6));
    assert_eq!(answer_of.total_ms, Some(1_200.0));
    let datafusion = "HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(a@0, b@0)], \
        metrics=[output_rows=5, elapsed_compute=1.0s, build_mem_used=4.0 MB]\n  \
        DataSourceExec: metrics=[output_rows=200.0 K, elapsed_compute=1ms]\n  \
        DataSourceExec: metrics=[output_rows=3.0 M, elapsed_compute=1ms]\n";
    let answer_of = answer(Planner::Datafusion, datafusion);
    assert_eq!((answer_of.joins[0].bytes, answer_of.joins[0].lines), (4_194_304.0, 6.2e6));
    let mariadb = r#"{"query_block": {"r_total_time_ms": 200, "nested_loop": [
        {"table": {"table_name": "a", "access_type": "ALL", "r_rows": 9, "r_loops": 1}},
        {"table": {"table_name": "b", "access_type": "eq_ref", "key": "PRIMARY", "r_loops": 9000,
         "r_rows": 1, "r_table_time_ms": 90, "r_other_time_ms": 1,
         "r_engine_stats": {"pages_accessed": 27000}}}]}}"#;
    let answer_of = answer(Planner::Mariadb, mariadb);
    let [join] = &answer_of.joins[..] else { panic!("{:?}", answer_of.joins) };
    assert!(join.through_index);
    assert_eq!((join.bytes, join.lines), (27_000.0 * 16_384.0, 54_000.0));
    assert_eq!((answer_of.saved_ms, answer_of.total_ms), (0.0, Some(200.0)));
    assert!((answer_of.saved_in_indexes_ms - 4.86).abs() < 0.01);
    assert!(answer_of.sentence.contains("a plan does not say"), "{}", answer_of.sentence);
}

#[test]
fn lookups_of_postgres_are_those_of_their_own_pages() {
    let text = r#"[{"Plan": {"Node Type": "Nested Loop", "Actual Total Time": 90.0,
        "Actual Rows": 5, "Actual Loops": 1, "Shared Hit Blocks": 1700, "Plans": [
        {"Node Type": "Seq Scan", "Relation Name": "a", "Actual Total Time": 1.0,
         "Actual Rows": 500, "Actual Loops": 1, "Shared Hit Blocks": 200},
        {"Node Type": "Index Scan", "Relation Name": "b", "Index Name": "b_pkey",
         "Actual Total Time": 0.1, "Actual Rows": 1, "Actual Loops": 500,
         "Shared Hit Blocks": 1400, "Shared Read Blocks": 100}]}}]"#;
    let answer = answer(Planner::Postgres, text);
    let [join] = &answer.joins[..] else { panic!("{:?}", answer.joins) };
    assert_eq!((join.bytes, join.time_ms), (1_500.0 * 8_192.0, Some(50.0)));
}

#[test]
fn no_join_is_said_so() {
    let answer = answer(Planner::Postgres, r#"[{"Plan": {"Node Type": "Result"}}]"#);
    assert_eq!(answer.sentence, "There is no join in it that looks anything up.");
    let plans = [("x".to_owned(), PlanText::new(Planner::Postgres, "{}"))];
    assert!(JoinsAnswer::of_plans(&plans, &limits()).is_err());
}

#[test]
fn its_study_runs_every_statement_alone() {
    let asks = |engine: &str| JoinsRequest {
        engine: engine.to_owned(),
        statements: vec!["select 'a' from t".to_owned(), "select 2".to_owned()],
        tpch: None,
    };
    let study = asks("postgres").study().unwrap();
    let spec = Spec::parse(JOINS_STUDY, &study).unwrap();
    let cells = workahead_study::run_plan::RunPlan::new(&spec).cells;
    assert_eq!(cells.len(), 2, "{study}");
    let spec = Spec::parse(JOINS_STUDY, &asks("datafusion").study().unwrap()).unwrap();
    assert_eq!(workahead_study::run_plan::RunPlan::new(&spec).cells.len(), 4, "stock and ours");
    let tpch = JoinsRequest { tpch: Some(0.1), statements: Vec::new(), ..asks("duckdb") };
    let spec = Spec::parse(JOINS_STUDY, &tpch.study().unwrap()).unwrap();
    assert_eq!(workahead_study::run_plan::RunPlan::new(&spec).cells.len(), 22);
    assert!(JoinsRequest { statements: Vec::new(), ..asks("duckdb") }.study().is_err());
}

/// A number as a plan may have it: any at all, or one of those at the ends.
fn number() -> impl Strategy<Value = f64> {
    let ends = [0.0, -0.0, 1.0, -1.0, 1e-308, 1e15, 1e154, -1e154, 1e308, -1e308, f64::MAX];
    prop_oneof![
        prop::sample::select(ends.to_vec()),
        prop::num::f64::POSITIVE | prop::num::f64::NEGATIVE,
        -1e6..1e9f64
    ]
}

/// Plans with a join and a lookup of each engine; `#` stands for a figure.
const PLANS: [(Planner, &str); 5] = [
    (
        Planner::Postgres,
        r##"[{"Plan": {"Node Type": "Nested Loop", "Actual Loops": #, "Actual Total Time": #,
        "Shared Hit Blocks": #, "Plans": [
        {"Node Type": "Hash Join", "Hash Cond": "(a = b)", "Actual Rows": #, "Actual Loops": #,
         "Actual Total Time": #, "Plans": [
         {"Node Type": "Seq Scan", "Actual Rows": #, "Actual Loops": #, "Actual Total Time": #},
         {"Node Type": "Hash", "Actual Rows": #, "Actual Loops": #, "Plan Width": #,
          "Actual Total Time": #, "Plans": [{"Node Type": "Seq Scan", "Plan Rows": #}]}]},
        {"Node Type": "Index Scan", "Actual Loops": #, "Actual Total Time": #,
         "Shared Hit Blocks": #, "Shared Read Blocks": #, "Plans": [
         {"Node Type": "Result", "Shared Hit Blocks": #, "Shared Read Blocks": #}]}]}}]"##,
    ),
    (
        Planner::Postgres,
        r##"[{"Plan": {"Node Type": "Hash Join", "Plans": [{"Node Type": "A", "Plan Rows": #},
        {"Node Type": "Hash", "Plan Rows": #, "Peak Memory Usage": #}]}}]"##,
    ),
    (
        Planner::Mariadb,
        r##"{"query_block": {"r_total_time_ms": #, "nested_loop": [
        {"table": {"access_type": "ALL", "r_rows": #, "r_loops": #}},
        {"table": {"access_type": "eq_ref", "r_rows": #, "r_loops": #, "r_table_time_ms": #,
         "r_other_time_ms": #, "r_engine_stats": {"pages_accessed": #}}}]}}"##,
    ),
    (
        Planner::Duckdb,
        r##"[{"operator_name": "HASH_JOIN", "operator_timing": #, "children": [
        {"operator_name": "A", "operator_timing": #, "extra_info": {"Estimated Cardinality": "#"}},
        {"operator_name": "B", "operator_timing": #, "operator_cardinality": #,
         "result_set_size": #}]}]"##,
    ),
    (
        Planner::Datafusion,
        "HashJoinExec: on=[(a, b)], metrics=[elapsed_compute=#s, build_mem_used=# GB]\n  \
         A: metrics=[output_rows=# K, elapsed_compute=#ns]\n  \
         B: metrics=[output_rows=# B, elapsed_compute=#s], statistics=[Rows=Exact(#)]\n",
    ),
];

/// Every figure of an answer is one that can be waited for, and its words have no other.
fn check_figures(key: &str, value: &serde_json::Value) -> Result<(), TestCaseError> {
    use serde_json::Value;
    match value {
        Value::Null => prop_assert!(["total_ms", "time_ms", "gain"].contains(&key), "{key}"),
        Value::Number(number) => {
            let figure = number.as_f64().unwrap();
            prop_assert!(figure.is_finite() && figure.is_sign_positive(), "{key}: {figure}");
        }
        Value::String(words) => {
            let is_none = |word: &str| ["NaN", "inf", "-inf"].contains(&word);
            prop_assert!(!words.split([' ', ',', '.']).any(is_none), "{words}");
        }
        Value::Array(values) => values.iter().try_for_each(|value| check_figures(key, value))?,
        Value::Object(of) => of.iter().try_for_each(|(key, value)| check_figures(key, value))?,
        Value::Bool(_) => {}
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_figure_of_a_plan_makes_an_answer_of_no_number(
        figures in prop::collection::vec(number(), 20)
    ) {
        for (planner, plan) in PLANS {
            let mut pieces = plan.split('#');
            let mut text = pieces.next().unwrap().to_owned();
            for (piece, figure) in pieces.zip(figures.iter().cycle()) {
                // Digits alone where no JSON is read.
                text += &match planner {
                    Planner::Datafusion => format!("{figure}"),
                    _ => format!("{figure:e}"),
                };
                text += piece;
            }
            let answer = answer(planner, &text);
            prop_assert!(!answer.joins.is_empty(), "{text}");
            check_figures("", &serde_json::to_value(&answer).unwrap())?;
        }
    }
}

#[test]
fn rows_of_no_number_are_none() {
    let scan = r#"{"Node Type": "Seq Scan", "Actual Rows": -1e308, "Actual Loops": 1e308}"#;
    let hash = r#"{"Node Type": "Hash", "Actual Rows": 1e308, "Actual Loops": 1e308,
        "Plan Width": 0}"#;
    let plan = format!(r#"[{{"Plan": {{"Node Type": "Hash Join", "Plans": [{scan}, {hash}]}}}}]"#);
    let answer = answer(Planner::Postgres, &plan);
    assert_eq!((answer.joins[0].bytes, answer.joins[0].lines), (0.0, 1e15));
    assert!(!answer.sentence.contains("NaN"), "{}", answer.sentence);
}

#[test]
fn a_sentence_is_one_line_whatever_the_names_are() {
    let lines = "x\n\nerror: your disk is on fire";
    let plan = postgres(8_000, 1_000.0);
    let name = serde_json::to_string(lines).unwrap();
    let named = format!(r#""Hash Join", "Relation Name": {name}, "Index Name": {name},"#);
    let plan = plan.replace(r#""Hash Join","#, &named).replace("(a.x = b.x)", r"(a.x\n = b.x)");
    let plans = [(format!("select 1\n{lines}"), PlanText::new(Planner::Postgres, plan))];
    let answer = JoinsAnswer::of_plans(&plans, &limits()).unwrap();
    assert!(answer.sentence.contains("on fire [a.x = b.x] (select 1 x error:"), "{answer:?}");
    assert!(!answer.sentence.contains('\n') && !answer.joins[0].join.contains('\n'), "{answer:?}");
}
