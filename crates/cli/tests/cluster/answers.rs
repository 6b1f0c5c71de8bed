//! Answers from workers are those of one process.

use std::fs;

use arrow_ipc::writer::FileWriter;

use crate::process::{Place, read, text};
use crate::running::{Cluster, QUERIES, URL, alone, answer, data, number, table, there};

#[test]
fn the_queries_of_tpch_have_the_rows_and_the_joins_of_one_process() {
    let place = Place::new();
    let wanted: Vec<_> = (1..=QUERIES).map(|query| alone(&place, query)).collect();
    for workers in [1, 2] {
        let _cluster = Cluster::of_size(&place, workers);
        let mut joins = 0;
        for (query, (wanted, of_one)) in (1..).zip(&wanted) {
            let name = query.to_string();
            let words = ["--tpch", &name, "--data", data(), "--out", "there.csv"];
            let (found, facts) = answer(&place, &there(&words));
            assert_eq!(found, *wanted, "q{query} on {workers}");
            for fact in ["rows", "joins", "joins_left_to_datafusion"] {
                assert_eq!(number(&facts, fact), number(of_one, fact), "q{query}: {facts}");
            }
            assert_eq!(number(&facts, "runs"), 1);
            assert!(number(&facts, "exchanged_bytes") > 0, "q{query} did not run on {workers}");
            joins += number(&facts, "joins");
        }
        assert!(joins > 50, "{joins} joins");
    }
}

#[test]
fn filters_across_stages_leave_a_third_of_what_is_exchanged() {
    let place = Place::new();
    let _cluster = Cluster::two(&place);
    // Forward (q4, q18, q20) and in reverse (q21).
    for query in ["4", "17", "18", "20", "21"] {
        let words = ["--tpch", query, "--data", data(), "--out", "rows.csv"];
        let unfiltered = [&["--set", "cluster.filter_wait_seconds=0"], &words[..]].concat();
        let (wanted, without) = answer(&place, &there(&unfiltered));
        let (rows, with) = answer(&place, &there(&words));
        assert_eq!(rows, wanted, "q{query}");
        let [with, without] = [with, without].map(|facts| number(&facts, "exchanged_bytes"));
        assert!(3 * with < without, "q{query}: {with} of {without} bytes");
    }
    // A query that drops no rows loses none either.
    let [lines, orders] = [table("l", "lineitem"), table("o", "orders")];
    let query = "select count(*) as n, sum(l_linenumber) as s from l join o \
                 on l_orderkey = o_orderkey where o_totalprice > 0";
    let words = [query, "--table", &lines, "--table", &orders, "--out"];
    let (wanted, _) = answer(&place, &[&["sql"], &words[..], &["here.csv"]].concat());
    assert_eq!(answer(&place, &there(&[&words[..], &["there.csv"]].concat())).0, wanted);
}

#[test]
fn a_cluster_on_this_machine_runs_queries_here_unless_it_is_set() {
    let place = Place::new();
    let _cluster = Cluster::two(&place);
    // Which workers would not read.
    let elsewhere = Place::new();
    fs::write(elsewhere.path("t.csv"), "a\n1\n2\n3\n").unwrap();
    let csv = format!("t={}", elsewhere.path("t.csv").display());
    let lines = table("l", "lineitem");
    let query = "select count(*) as n from t join l on a = l_linenumber";
    let shown = |run: &[&str]| {
        let explain = format!("explain {query}");
        let words = ["sql", "--cluster", URL, &explain, "--table", &csv, "--table", &lines];
        text(&place.run(&[&words[..], run].concat()).stdout)
    };
    let plan = shown(&[]);
    assert!(plan.contains("here: the workers are on this machine"), "{plan}");
    assert!(plan.contains("WorkaheadJoinExec"), "{plan}");
    let plan = shown(&["--set", "cluster.run=here"]);
    assert!(plan.contains("here, as set"), "{plan}");
    for (run, why) in [("here", "here, as set"), ("workers", "on 2 workers of 2 threads, as set")] {
        let run = format!("cluster.run={run}");
        let explain = "explain analyze verbose select count(*) from l group by l_linenumber";
        let words = ["sql", "--cluster", URL, "--set", &run, explain, "--table", &lines];
        let plan = text(&place.run(&words).stdout);
        assert!(plan.contains(why) && plan.contains("output_rows"), "{plan}");
        // A line for each worker.
        let times = plan.split("CPU time by worker").nth(1).unwrap_or_default();
        assert_eq!(times.matches("127.0.0.1:").count(), if run.ends_with("here") { 0 } else { 2 });
    }
    let words = ["sql", "--cluster", URL, query, "--table", &csv, "--table", &lines];
    let (rows, _) = answer(&place, &[&words[..], &["--out", "here.csv"]].concat());
    assert!(rows.starts_with("n\n") && rows.lines().count() == 2, "{rows}");
    let workers = ["--set", "cluster.run=workers"];
    let said = place.fails(&[&words[..], &workers].concat(), 2);
    assert!(said.contains("is not below a worker's --data directories"), "{said}");
    let said = place.fails(&[&words[..], &["--set", "cluster.run=there"]].concat(), 2);
    assert!(said.contains("cluster.run is auto, here or workers"), "{said}");
}

#[test]
fn the_only_worker_runs_all_of_a_query_as_one_stage() {
    let place = Place::new();
    let _cluster = Cluster::of_size(&place, 1);
    let lines = table("l", "lineitem");
    let shown = |query: &str| {
        let explain = format!("explain analyze {query}");
        let words = ["sql", "--cluster", URL, "--set", "cluster.run=workers", &explain];
        text(&place.run(&[&words[..], &["--table", &lines]].concat()).stdout)
    };
    let plan = shown("select count(*) from l join l m using (l_orderkey)");
    assert!(plan.contains("on 1 worker") && plan.contains("table_bytes"), "{plan}");
    assert!(plan.contains("Stage 1") && !plan.contains("Stage 2"), "{plan}");
    // It can't read the rows of a statement.
    let plan = shown("select count(*) from l join (values (1), (2)) v(x) on x = l_linenumber");
    assert!(plan.contains("on 1 worker") && plan.contains("Stage 2"), "{plan}");
    assert!(shown("select 1").contains("here: it has nothing to divide"));
}

/// Statements of other shapes than TPC-H's, each with all orders given.
const SHAPES: [&str; 22] = [
    "select l_orderkey, l_linenumber, l_comment from l order by 1, 2",
    "select count(*) from l, generate_series(1, 3)",
    "select x, count(*) from (values (1), (2)) v(x) join l on x = l_linenumber group by x order by x",
    "with recursive r as (select 1 as x union all select x + 1 from r where x < 5) \
     select x, count(*) from r join l on x = l_linenumber group by x order by x",
    "select unnest([1, 2, 3]) as u, count(*) from l group by 1 order by 1",
    "select l_orderkey, l_linenumber, row_number() over (partition by l_suppkey order by \
     l_orderkey, l_linenumber) from l order by 1, 2",
    "select l_suppkey, sum(sum(l_quantity)) over (order by l_suppkey) from l group by 1 order by 1",
    "select l_comment from l where false",
    "select l_orderkey from l order by l_orderkey limit 3 offset 7",
    "select median(l_quantity), count(distinct l_suppkey), min(l_comment), max(l_shipdate) from l",
    "select n_name, count(l_tax) from l full join n on l_linenumber = n_nationkey and \
     l_comment < n_comment group by 1 order by 1",
    "select n_name from n where not exists (select 1 from l where l_linenumber = n_nationkey) \
     order by 1",
    "select n_name from n where n_nationkey not in (select l_linenumber from l) order by 1",
    "select n_name from n where n_nationkey in (select l_linenumber from l) order by 1",
    "select count(*) from l left join n on l_linenumber = n_nationkey and l_tax < 0.02",
    "select count(*) from l right join n on l_linenumber = n_nationkey and l_tax < 0.02",
    "select l_linenumber as k from l union select n_nationkey from n order by 1",
    "select l_linenumber as k from l union all select n_nationkey from n order by 1",
    "select l_linenumber as k from l intersect select n_nationkey from n order by 1",
    "select n_nationkey as k from n except select l_linenumber from l order by 1",
    "select l_returnflag, l_linestatus, count(*) from l group by cube (l_returnflag, l_linestatus) order by 1, 2",
    "create table m as select * from n; select n_name, count(*) from m join l on n_nationkey = \
     l_linenumber group by 1 order by 1",
];

#[test]
fn statements_of_other_shapes_have_the_rows_and_the_joins_of_one_process() {
    let place = Place::new();
    let (lines, nations) = (table("l", "lineitem"), table("n", "nation"));
    let mut wrong = Vec::new();
    for workers in [1, 2] {
        let _cluster = Cluster::of_size(&place, workers);
        for statement in SHAPES {
            let words = [statement, "--table", &lines, "--table", &nations, "--out"];
            let (wanted, of_one) = answer(&place, &[&["sql"], &words[..], &["here.csv"]].concat());
            let (found, facts) = answer(&place, &[&there(&words)[..], &["there.csv"]].concat());
            if found != wanted {
                wrong.push(format!("on {workers}, the rows of {statement}"));
            }
            for fact in ["rows", "joins", "joins_left_to_datafusion"] {
                let (found, wanted) = (number(&facts, fact), number(&of_one, fact));
                if found != wanted {
                    wrong.push(format!("on {workers}, {found} {fact}, not {wanted}: {statement}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_of_every_kind_and_name_are_read() {
    let place = Place::new();
    let _cluster = Cluster::two(&place);
    let orders = table("o", "orders");
    let names = ["plain", "a b", "a%20b", "ä #1 ~x", "per%cent"];
    fs::create_dir(place.path("many")).unwrap();
    let mut kinds = Vec::new();
    for name in names {
        for kind in ["csv", "json", "parquet"] {
            let file = format!("{name}.{kind}");
            let words = ["sql", "select * from o where o_orderkey < 20000", "--table", &orders];
            place.json(&[&words[..], &["--out", &file]].concat());
            kinds.push(file);
        }
        let batches = read(&place.path(&format!("{name}.parquet")));
        let arrow = format!("{name}.arrow");
        let file = fs::File::create(place.path(&arrow)).unwrap();
        let mut writer = FileWriter::try_new(file, &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        kinds.push(arrow);
    }
    for part in ["one.parquet", "two.parquet"] {
        fs::copy(place.path("plain.parquet"), place.path("many").join(part)).unwrap();
    }
    kinds.push("many".to_owned());
    let query = "select count(*) as n, sum(a.o_custkey) as s, max(b.o_comment) as c \
                 from t a join t b on a.o_orderkey = b.o_orderkey";
    let mut wrong = Vec::new();
    for file in &kinds {
        let table = format!("t={file}");
        let words = [query, "--table", &table, "--out"];
        let (wanted, _) = answer(&place, &[&["sql"], &words[..], &["of-one.csv"]].concat());
        let output = place.run(&[&there(&words)[..], &["of-workers.csv"]].concat());
        let found = fs::read_to_string(place.path("of-workers.csv")).unwrap_or_default();
        if !output.status.success() || found != wanted {
            wrong.push(format!("{file}: {found}{}", text(&output.stderr)));
        }
        let _ = fs::remove_file(place.path("of-workers.csv"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
