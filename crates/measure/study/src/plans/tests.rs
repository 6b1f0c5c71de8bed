//! Real plans, taken from PostgreSQL 15, MariaDB, DuckDB and DataFusion, and their trees,
//! fingerprints and differences.

use super::*;

/// A recorded plan, by `planner/file`.
fn plan(path: &str) -> PlanText {
    let file = manifest_folder().join("fixtures/plans").join(path);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    let planner = match path.split('/').next() {
        Some("postgres") => Planner::Postgres,
        Some("mariadb") => Planner::Mariadb,
        Some("duckdb") => Planner::Duckdb,
        _ => Planner::Datafusion,
    };
    PlanText::new(planner, text)
}

fn shape(path: &str) -> String {
    plan(path).tree().unwrap_or_else(|error| panic!("{path}: {error}")).shape()
}

/// Results may be somebody else's; a plan of 12,000 levels overflowed the stack.
#[test]
fn a_plan_that_is_too_deep_is_refused() {
    let indented = |levels: usize| -> String {
        (0..levels).map(|level| format!("{}FilterExec\n", " ".repeat(level))).collect()
    };
    let boxes = |levels: usize| "┌───┐\n│ A │\n└───┘\n".repeat(levels);
    for drawn in [indented, boxes] {
        let read = |levels| PlanText::new(Planner::Datafusion, drawn(levels)).tree();
        assert!(read(512).is_ok());
        let refused = read(513).unwrap_err().to_string();
        assert!(refused.contains("below each other"), "{refused}");
    }
}

/// A plan of one operator above all others, in every format.
fn wide_plans(operators: usize) -> [PlanText; 6] {
    let below = |one: &str, left_out: usize| vec![one; operators - left_out].join(",");
    let nodes = below(r#"{"Node Type":"B"}"#, 1);
    let postgres = format!(r#"[{{"Plan":{{"Node Type":"A","Plans":[{nodes}]}}}}]"#);
    let tables = below(r#"{"table":{}}"#, 2);
    let mariadb = format!(r#"{{"query_block":{{"nested_loop":[{tables}]}}}}"#);
    let children = below(r#"{"name":"B"}"#, 1);
    let duckdb = format!(r#"[{{"name":"A","children":[{children}]}}]"#);
    let indented = format!("A\n{}", " B\n".repeat(operators - 1));
    let boxes = ["┌───┐", "│ B │", "└───┘"].map(|line| line.repeat(operators - 1)).join("\n");
    let drawn = format!("┌───┐\n│ A │\n└───┘\n{boxes}");
    [
        PlanText::new(Planner::Postgres, postgres.clone()),
        PlanText::new(Planner::Mariadb, mariadb),
        PlanText::new(Planner::Duckdb, duckdb),
        PlanText::new(Planner::Datafusion, postgres),
        PlanText::new(Planner::Datafusion, indented),
        PlanText::new(Planner::Datafusion, drawn),
    ]
}

/// Two plans of 40,000 operators took 6 GB to compare.
#[test]
fn a_plan_of_too_many_operators_is_refused() {
    for plan in wide_plans(4_096) {
        let read = plan.tree().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.operators(), 4_096, "{:?}", plan.planner);
    }
    for plan in wide_plans(4_097) {
        let refused = plan.tree().unwrap_err().to_string();
        assert!(refused.contains("more than 4096 operators"), "{refused}");
        assert_eq!(plan.fingerprint().len(), 16, "it has a name all the same");
    }
}

#[test]
fn a_long_text_is_refused_before_it_is_read() {
    let long = format!("[{}0]", "0,".repeat(2 << 20));
    for planner in [Planner::Postgres, Planner::Mariadb, Planner::Duckdb, Planner::Datafusion] {
        let refused = PlanText::new(planner, long.as_str()).tree().unwrap_err().to_string();
        assert!(refused.contains("more than 4 MiB"), "{refused}");
    }
    // Each of these took the square of its length.
    let edge = format!("┌{}", "─".repeat(1_000_000));
    let lines = format!("┌───┐\n│ A │\n{}", "│a│\n".repeat(400_000));
    let blank = format!("{}\n{}", "┌─┐".repeat(4_000), "\n".repeat(4_000_000));
    let read = |text: String| PlanText::new(Planner::Datafusion, text).tree();
    assert!(read(edge).is_err());
    assert!(read(lines).is_ok() && read(blank).is_err());
}

#[test]
fn shapes_of_the_papers_queries() {
    assert_eq!(
        shape("postgres/utpcc.json"),
        "Aggregate\n\
         \x20 Bitmap Heap Scan on t1 [Recheck Cond: ((a2 > ?) AND (a2 < ?))]\n\
         \x20   Bitmap Index Scan using t1_a2 [Index Cond: ((a2 > ?) AND (a2 < ?))]\n"
    );
    assert_eq!(
        shape("postgres/uss_sort.json"),
        "Unique\n\
         \x20 Sort [Sort Key: a3]\n\
         \x20   Seq Scan on t1 [Filter: ((a2 > ?) AND (a2 < ?))]\n"
    );
    let nested = plan("postgres/unj_nested.json").tree().unwrap().serial_shape();
    assert_eq!(
        nested,
        "Aggregate\n\
         \x20 Nested Loop\n\
         \x20   Seq Scan on t1 [Filter: ((a2 > ?) AND (a2 < ?))]\n\
         \x20   Index Only Scan on t2 using t2_pkey [Index Cond: (a1 = t1.a1)]\n",
        "the paper's plan"
    );
    assert_eq!(
        shape("mariadb/unj.json"),
        "Query\n\
         \x20 Nested Loop\n\
         \x20   Table Scan (ALL) on t1 [attached_condition: t1.a2 > ? and t1.a2 < ?]\n\
         \x20   Unique Lookup (eq_ref) Index Only on t2 using PRIMARY [ref: w.t1.a1]\n"
    );
    assert_eq!(
        shape("duckdb/unj.json"),
        "PROJECTION\n\
         \x20 UNGROUPED_AGGREGATE [Aggregates: sum(#0) AND count_star()]\n\
         \x20   PROJECTION\n\
         \x20     HASH_JOIN [Join Type: INNER; Conditions: a1 = a1]\n\
         \x20       SEQ_SCAN on t1 [Filters: ((a2 > ?) AND (a2 < ?))]\n\
         \x20       SEQ_SCAN on t2\n"
    );
    assert_eq!(
        shape("datafusion/unj1.txt"),
        "AggregateExec [gby: []; aggr: [avg(t1.a3)]]\n\
         \x20 HashJoinExec [mode: CollectLeft; join_type: Inner; on: [(a1, a1)]]\n\
         \x20   DataSourceExec on t2.parquet\n\
         \x20   FilterExec [predicate: a2 > ? AND a2 < ?]\n\
         \x20     DataSourceExec on t1.parquet [predicate: a2 > ? AND a2 < ? AND DynamicFilter]\n"
    );
}

#[test]
fn more_of_mariadb() {
    assert_eq!(
        shape("mariadb/uss.json"),
        "Query\n\
         \x20 Filesort [sort_key: t1.a3]\n\
         \x20   Temporary Table\n\
         \x20     Nested Loop\n\
         \x20       Table Scan (ALL) on t1 [attached_condition: t1.a2 > ? and t1.a2 < ?]\n"
    );
    let union = shape("mariadb/union.json");
    for part in ["Union", "One Row (const) on t2", "Materialise", "Index Range (range) on t2"] {
        assert!(union.contains(part), "{part}: {union}");
    }
}

#[test]
fn literals_parameters_and_figures_make_no_other_plan() {
    let same = [
        ("postgres/utpcc.json", "postgres/utpcc_other_bounds.json"),
        ("postgres/utpcc.json", "postgres/utpcc_prepared.json"),
        ("postgres/utpcc.json", "postgres/utpcc_analyze.json"),
        ("postgres/sum_parallel2.json", "postgres/sum_parallel4.json"),
        ("postgres/sum_parallel2.json", "postgres/sum_parallel_analyze.json"),
        ("mariadb/utpcc.json", "mariadb/utpcc_analyze.json"),
        ("mariadb/unj.json", "mariadb/unj_analyze.json"),
        ("duckdb/utpcc.json", "duckdb/utpcc_other_bounds.json"),
        ("duckdb/unj.json", "duckdb/unj_analyze.json"),
        ("datafusion/utpcc.txt", "datafusion/utpcc_other_bounds.txt"),
        ("datafusion/unj2.txt", "datafusion/unj4.txt"),
        ("datafusion/unj2.txt", "datafusion/unj2_analyze.txt"),
    ];
    for (one, other) in same {
        let label = plan(one).against(&plan(other));
        assert_eq!(label, Label::Same, "{one}\n{}{other}\n{}", shape(one), shape(other));
    }
}

#[test]
fn running_in_parallel_is_distinguished_from_another_plan() {
    let label = |one: &str, other: &str| plan(one).against(&plan(other));
    let parallel = ("postgres/sum_serial.json", "postgres/sum_parallel2.json");
    assert_eq!(label(parallel.0, parallel.1), Label::SameInParallel);
    let parallel = ("datafusion/unj1.txt", "datafusion/unj2.txt");
    assert_eq!(label(parallel.0, parallel.1), Label::SameInParallel);
    for (one, other) in [
        ("postgres/unj_hash.json", "postgres/unj_nested.json"),
        ("postgres/uss.json", "postgres/uss_sort.json"),
        ("mariadb/utpcc.json", "mariadb/uss.json"),
    ] {
        assert_eq!(label(one, other), Label::Changed, "{one} {other}");
    }
    assert_eq!(Label::Changed.text(), "plan changed");
}

#[test]
fn figures_are_read_beside_the_shape() {
    let tree = plan("postgres/sum_parallel_analyze.json").tree().unwrap();
    let mut scans = Vec::new();
    tree.visit(0, &mut |_, node| {
        if node.operator == "Seq Scan" {
            scans.push((node.role, node.rows.unwrap(), node.time_ms.is_some()));
        }
    });
    let [(Role::Parallel, rows, true)] = scans[..] else { panic!("{scans:?}") };
    // About half of 100,000 rows, by all workers together; each says a rounded mean.
    assert!((45_000.0..55_000.0).contains(&rows), "{rows}");
    let rows_of = |path: &str, operator: &str| {
        let mut found = None;
        plan(path).tree().unwrap().visit(0, &mut |_, node| {
            if node.operator == operator {
                found = node.rows.map(|rows| (rows, node.time_ms.unwrap()));
            }
        });
        found.unwrap_or_else(|| panic!("{path} {operator}"))
    };
    assert_eq!(
        rows_of("mariadb/unj_analyze.json", "Unique Lookup (eq_ref) Index Only").0,
        20_197.0
    );
    assert_eq!(rows_of("duckdb/unj_analyze.json", "HASH_JOIN").0, 19_815.0);
    let (rows, time_ms) = rows_of("datafusion/unj2_analyze.txt", "HashJoinExec");
    assert_eq!((rows, time_ms), (19_820.0, 24.4));
    let estimated = plan("duckdb/unj.json").tree().unwrap();
    let join = &estimated.inputs[0].inputs[0].inputs[0];
    assert!(join.rows_estimated.is_some() && join.rows.is_none(), "{join:?}");
}

#[test]
fn trees_that_are_drawn() {
    let drawn = plan("datafusion/unj2_tree.txt").tree().unwrap();
    let indented = plan("datafusion/unj2.txt").tree().unwrap();
    let operators = |tree: &Node| {
        let mut all = Vec::new();
        tree.visit(0, &mut |depth, node| all.push((depth, node.operator.clone(), node.role)));
        all
    };
    assert_eq!(operators(&drawn), operators(&indented));
    let filter = &drawn.inputs[0].inputs[0].inputs[0].inputs[1];
    assert_eq!(filter.line(), "FilterExec [predicate: a2 > ? AND a2 < ?]");
    let json = plan("datafusion/unj_pgjson.json").tree().unwrap().shape();
    assert!(json.contains("Inner Join [Join Keys: t1.a1 = t2.a1]"), "{json}");
    assert!(json.contains("TableScan on t1"), "{json}");
}

#[test]
fn two_plans_side_by_side() {
    let tree = |path: &str| plan(path).tree().unwrap();
    let rows = diff(&tree("postgres/sum_serial.json"), &tree("postgres/sum_parallel2.json"));
    let operator = |side: &Option<Side>| {
        side.as_ref().map(|side| side.line.split(" [").next().unwrap_or_default().to_owned())
    };
    let lines: Vec<_> =
        rows.iter().map(|row| (operator(&row.left), operator(&row.right), row.same)).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        lines,
        [
            (some("Aggregate"), some("Finalize Aggregate"), false),
            (None, some("Gather"), false),
            (None, some("Partial Aggregate"), false),
            (some("Seq Scan on t1"), some("Parallel Seq Scan on t1"), false),
        ]
    );
    let rows = diff(&tree("postgres/unj_hash.json"), &tree("postgres/unj_nested.json"));
    let beside = rows.iter().find(|row| {
        operator(&row.left).is_some_and(|line| line.starts_with("Bitmap Heap Scan on t1"))
    });
    let right = operator(&beside.unwrap().right);
    assert!(right.is_some_and(|line| line.ends_with("Seq Scan on t1")), "{rows:?}");
    let join = rows.iter().find(|row| operator(&row.left).as_deref() == Some("Hash Join")).unwrap();
    assert_eq!(operator(&join.right).as_deref(), Some("Nested Loop"));
    let alike = diff(&tree("duckdb/uss.json"), &tree("duckdb/uss.json"));
    assert!(alike.iter().all(|row| row.same));
}

#[test]
fn very_large_plans_stand_one_below_the_other() {
    let scans = |name: &str| Node { inputs: vec![Node::new(name); 4_000], ..Node::new("Append") };
    let rows = diff(&scans("Seq Scan"), &scans("Index Scan"));
    let (gone, new) = rows.split_at(4_001);
    assert!(gone.iter().all(|row| row.left.is_some() && row.right.is_none() && !row.same));
    assert!(new.iter().all(|row| row.left.is_none() && row.right.is_some() && !row.same));
    assert_eq!(new.len(), 4_001);
    let rows = diff(&scans("Seq Scan"), &Node::new("Append"));
    assert!(rows[0].right.is_some(), "{:?}", rows[0]);
}

/// Every operator of both stands in the rows once, in its order, whatever the plans.
#[test]
fn nothing_is_lost_between_any_two_plans() {
    let directory = manifest_folder().join("fixtures/plans");
    let mut plans = Vec::new();
    for planner in ["postgres", "mariadb", "duckdb", "datafusion"] {
        for file in std::fs::read_dir(directory.join(planner)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            plans.push(plan(&format!("{planner}/{name}")).tree().unwrap());
        }
    }
    assert!(plans.len() > 25, "{}", plans.len());
    let lines = |tree: &Node| {
        let mut lines = Vec::new();
        tree.visit(0, &mut |_, node| lines.push(node.line()));
        lines
    };
    for one in &plans {
        for other in &plans {
            let rows = diff(one, other);
            let side = |of: fn(&Row) -> &Option<Side>| -> Vec<String> {
                rows.iter().filter_map(|row| Some(of(row).as_ref()?.line.clone())).collect()
            };
            assert_eq!(side(|row| &row.left), lines(one));
            assert_eq!(side(|row| &row.right), lines(other));
        }
    }
}

#[test]
fn a_text_that_is_not_a_plan_is_named_after_its_words() {
    for planner in [Planner::Postgres, Planner::Mariadb, Planner::Duckdb, Planner::Datafusion] {
        for text in ["", "   ", "[]", "{}", "[{\"Plan\": 3}]", "{\"query_block\": 1}", "┌──", "┌─┐"]
        {
            let plan = PlanText::new(planner, text);
            if let Err(error) = plan.tree() {
                let message = error.to_string();
                assert!(message.contains("EXPLAIN") && !message.contains('\n'), "{message}");
            }
            assert_eq!(plan.fingerprint().len(), 16);
        }
    }
    let words = |text: &str| PlanText::new(Planner::Postgres, text);
    assert_eq!(words("scan of 5 rows").against(&words("scan of 7 rows")), Label::Same);
    assert_eq!(words("scan").against(&words("seek")), Label::Changed);
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}

#[test]
fn whose_plan_it_is_shows() {
    for path in ["postgres/sum_serial.json", "datafusion/unj1.txt"] {
        let plan = plan(path);
        assert_eq!(PlanText::of_any(plan.text.as_str()).unwrap().planner, plan.planner, "{path}");
    }
    let planner = |text: &str| PlanText::of_any(text).unwrap().planner;
    assert_eq!(planner(r#"{"query_block": {}}"#), Planner::Mariadb);
    assert_eq!(planner(r#"[{"name": "SEQ_SCAN", "children": []}]"#), Planner::Duckdb);
    for text in ["", "{}", "hello", "select 1"] {
        assert!(PlanText::of_any(text).is_err(), "{text}");
    }
}

#[test]
fn plans_say_what_memory_they_went_through() {
    let tree = plan("postgres/sum_parallel_analyze.json").tree().unwrap();
    assert!(tree.memory.row_bytes.is_some_and(|bytes| bytes > 0.0), "{:?}", tree.memory);
    let text = "HashJoinExec: mode=CollectLeft, metrics=[output_rows=2.0 K, build_mem_used=1.5 MB]";
    let join = PlanText::new(Planner::Datafusion, text).tree().unwrap();
    assert_eq!((join.rows, join.memory.table_bytes), (Some(2_000.0), Some(1.5 * 1_048_576.0)));
}

/// A server's names are its own, and a line of ours that seems to be said by us is not.
#[test]
fn names_are_on_one_line_however_a_plan_has_them() {
    let name = "\u{2028} a\n\r\n error:\tb \u{85}";
    let json = serde_json::to_string(name).unwrap();
    let postgres = format!(
        r#"[{{"Plan":{{"Node Type":{json},"Relation Name":{json},"Index Name":{json},
            "Hash Cond":{json},"Subplan Name":{json}}}}}]"#
    );
    let mariadb = format!(
        r#"{{"query_block":{{"nested_loop":[{{"table":{{"access_type":{json},"table_name":{json},
            "key":{json},"attached_condition":{json},"ref":[{json}]}}}},
            {{"table":{{"message":{json}}}}}]}}}}"#
    );
    let duckdb = format!(
        r#"[{{"name":{json},"extra_info":{{"Table":{json},"Conditions":[{json}]}},
            "children":[]}}]"#
    );
    let indented = "A: predicate=a \u{2028} b, file_groups={1 group: [[x/\u{2028}y]]}".to_owned();
    let plans = [
        (Planner::Postgres, postgres.clone()),
        (Planner::Mariadb, mariadb),
        (Planner::Duckdb, duckdb),
        (Planner::Datafusion, postgres),
        (Planner::Datafusion, indented),
    ];
    for (planner, text) in plans {
        let tree = PlanText::new(planner, text).tree().unwrap();
        tree.visit(0, &mut |_, node| {
            let line = node.line();
            assert!(!line.contains(|c: char| c.is_whitespace() && c != ' '), "{line:?}");
            assert!(!line.contains("  ") && line.trim() == line, "{line:?}");
        });
    }
    let blank = r#"[{"Plan":{"Node Type":"A","Relation Name":"\n","Index Name":" "}}]"#;
    assert_eq!(PlanText::new(Planner::Postgres, blank).tree().unwrap().line(), "A");
}

#[test]
fn figures_of_a_plan_are_numbers_that_it_may_count() {
    let figure = |planner, text: &str| PlanText::new(planner, text).tree().unwrap();
    let postgres = |rows: &str, loops: &str| {
        let plan = format!(
            r#"[{{"Plan":{{"Node Type":"A","Actual Rows":{rows},"Actual Loops":{loops}}}}}]"#
        );
        figure(Planner::Postgres, &plan).rows
    };
    assert_eq!(postgres("2", "3"), Some(6.0));
    for (rows, loops, read) in [
        ("-1e308", "1e308", 0.0),
        ("-2", "-3", 0.0),
        ("1e308", "1e308", 1e15),
        ("1e15", "1e15", 1e15),
        ("0", "1e308", 0.0),
    ] {
        assert_eq!(postgres(rows, loops), Some(read), "{rows} × {loops}");
    }
    for (rows, read) in [("NaN", 0.0), ("inf", 1e15), ("-inf", 0.0), ("1e999", 1e15), ("-5", 0.0)] {
        let plan = format!(r#"[{{"name":"A","extra_info":{{"Estimated Cardinality":"{rows}"}}}}]"#);
        assert_eq!(figure(Planner::Duckdb, &plan).rows_estimated, Some(read), "{rows}");
    }
    let many = format!("A: metrics=[output_rows={}, build_mem_used=9.9 GB]", "9".repeat(400));
    assert_eq!(figure(Planner::Datafusion, &many).rows, Some(1e15));
}
