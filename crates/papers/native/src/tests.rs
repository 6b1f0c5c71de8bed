//! Every operator with every technique, on little data, against the oracle.

use workahead_counters::instrumented::Tool;
use workahead_study::engine::{Engine, EngineContext, EngineError, Sample, Stop};
use workahead_study::instrument::Instrumentation;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use crate::engine::Native;

/// Runs every cell of a study once; returns labels and samples.
fn run(text: &str) -> Result<Vec<(String, Sample)>, String> {
    let mut engine = Native::default();
    let spec = Spec::parse("test", text).map_err(|error| error.to_string())?;
    let run_plan = RunPlan::new(&spec);
    let stop = Stop::new();
    let mut samples = Vec::new();
    for cell in &run_plan.cells {
        let label = cell.label(&run_plan.axes);
        let mut sample = || {
            engine.check(cell)?;
            engine.prepare(cell, &stop)?;
            engine.run(cell, &stop)
        };
        let sample = sample().map_err(|error: EngineError| format!("{label}: {error}"))?;
        samples.push((label, sample));
    }
    Ok(samples)
}

const TECHNIQUES: &str = r#"
    technique = ["sequential", "staged:width=7", "group:width=64", "amac:width=32",
                 "amac:width=1,hint=l2", "rounds:width=100,hint=none", "distance:rows=8",
                 "work-ahead:size=64", "work-ahead:size=64,direction=forward,wait=none",
                 "work-ahead:size=16,guard=mutex", "work-ahead:size=64,dedupe=post",
                 "work-ahead:size=64,dedupe=helper", "work-ahead:size=64,helper=off",
                 "direct-helper:size=64"]
"#;

fn study(workload: &str, axes: &str) -> String {
    format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"native\"\nseed = 7\n\
         workload = {{ {workload} }}\n[axes]\n{axes}\n"
    )
}

#[test]
fn every_operator_gives_the_oracles_answer_under_every_technique() {
    for workload in [
        "operator = \"hash_join\", rows = 5000, probe_rows = 12000",
        "operator = \"hash_join\", rows = 500, probe_rows = 3000, skew = 1.1",
        "operator = \"csb_tree\", rows = 5000, probe_rows = 12000",
        "operator = \"join_index\", rows = 3000, probe_rows = 9000",
        "operator = \"join_index\", rows = 3000, probe_rows = 9000, join = \"left-outer\"",
        "operator = \"join_index\", rows = 3000, probe_rows = 9000, references = \"apart\"",
        "operator = \"columnar\", rows = 3000, probe_rows = 9000",
        "operator = \"hash_join\", rows = 3000, probe_rows = 9000, record_bytes = 32",
        "operator = \"hash_join\", rows = 3000, probe_rows = 9000, record_bytes = 256",
        "operator = \"join_index\", rows = 3000, probe_rows = 9000, record_bytes = 128",
        "operator = \"join_index\", rows = 3000, probe_rows = 9000, record_bytes = 256, join = \"left-outer\"",
        "operator = \"csb_tree\", rows = 3000, probe_rows = 5000, node_bytes = 64, search = \"simd\", upper_levels = \"at-once\"",
        "operator = \"csb_tree\", rows = 5000, probe_rows = 12000, tree = \"growing\"",
        "operator = \"csb_tree\", rows = 3000, probe_rows = 5000, tree = \"growing\", upper_levels = \"at-once\"",
    ] {
        let axes = format!("probes = [\"clustered\", \"unclustered\"]\n{TECHNIQUES}");
        let samples = run(&study(workload, &axes)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(samples.len(), 2 * 14);
        for (label, sample) in samples {
            assert!(sample.answer.rows > 0, "{workload}: {label}: nothing was found");
            assert!(sample.wall_s > 0.0 && sample.cpu_s.unwrap() > 0.0, "{label}");
        }
    }
}

#[test]
fn threads_share_or_repeat_the_work() {
    let threads = r#"
        operator = ["hash_join", "csb_tree", "join_index", "columnar", "bucket"]
        technique = ["sequential", "amac:width=32"]
        threads = [1, "independent:2", "independent:3", "bi:2", "bi:4", "bi:2,split=morsels"]
    "#;
    let workload = "rows = 20000, probe_rows = 50000";
    let samples = run(&study(workload, threads)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(samples.len(), 5 * 2 * 6);
    for (label, sample) in samples {
        let copies = match label.split_once("independent:") {
            Some((_, copies)) => copies.parse().unwrap(),
            None => 1,
        };
        assert_eq!(sample.tuples, 50_000 * copies, "{label}");
    }
}

#[test]
fn keys_that_miss_and_keys_that_are_popular_are_probed_too() {
    let workload = "operator = \"bucket\", rows = 4000, probe_rows = 20000, load_percent = 70";
    let axes = "hit_rate = [0.0, 0.25, 1.0]\nskew = [0, 1.1]\n\
                technique = [\"sequential\", \"distance:rows=16\", \"rounds:width=64\", \
                             \"work-ahead\"]";
    for (label, sample) in run(&study(workload, axes)).unwrap_or_else(|error| panic!("{error}")) {
        let rate: f64 = label.split(" / ").next().unwrap().parse().unwrap();
        assert_eq!(sample.answer.rows, (rate * 20_000.0) as u64, "{label}");
    }
}

#[test]
fn whole_results_are_merged_and_ordered_and_that_is_charged() {
    let workload =
        "operator = \"hash_join\", rows = 20000, probe_rows = 50000, results = \"whole\"";
    let axes = "probes = [\"clustered\", \"unclustered\"]\n\
                threads = [1, \"bi:2\", \"bi:2,split=morsels\"]";
    for (label, sample) in run(&study(workload, axes)).unwrap_or_else(|error| panic!("{error}")) {
        let measure = |name: &str| sample.measures[name];
        assert!(measure("merge_s") > 0.0 && measure("order_s") > 0.0, "{label}");
        assert!(measure("merged_mtuples_per_s") < sample.mtuples_per_s(), "{label}");
        assert!(measure("ordered_mtuples_per_s") < sample.mtuples_per_s(), "{label}");
    }
}

#[test]
fn two_operators_race_and_every_cell_repeats_their_amounts() {
    let workload =
        "operator = \"heterogeneous\", rows = 30000, probe_rows = 200000, tree_rows = 200000";
    let axes = "how = [1]";
    let cases = r#"
        [[cases]]
        name = "one after the other"
        technique = "sequential"
        [[cases]]
        name = "side by side"
        threads = "independent:2"
        [[cases]]
        name = "bi-threaded"
        threads = "bi:2"
        [[cases]]
        name = "with a helper"
        technique = "work-ahead:size=128"
        [[cases]]
        name = "side by side, sized"
        technique = "work-ahead"
        threads = "independent:2"
        l2_share = 0.25
    "#;
    let text = study(workload, axes).replace("[axes]\nhow = [1]\n", cases);
    let samples = run(&text).unwrap_or_else(|error| panic!("{error}"));
    let amounts =
        |sample: &Sample| ["join_rows", "tree_rows"].map(|name| sample.measures[name] as usize);
    for (label, sample) in &samples {
        assert_eq!(amounts(sample), amounts(&samples[0].1), "{label}");
        let [join, tree] = amounts(sample);
        assert_eq!(sample.tuples as usize, join + tree, "{label}");
        assert!(join == 200_000 || tree == 200_000, "{label}: one of them has finished");
    }
}

#[test]
fn interference_gives_the_speeds_of_the_model() {
    let workload = "operator = \"interference\", probe_rows = 20000";
    let axes =
        "technique = [\"work-ahead:size=64,wait=none\", \"work-ahead:size=64,direction=forward\"]";
    for (label, sample) in run(&study(workload, axes)).unwrap_or_else(|error| panic!("{error}")) {
        for name in ["m_mlines_per_s", "h_mlines_per_s", "observed_mlines_per_s"] {
            assert!(sample.measures[name] > 0.0, "{label}: {name}");
        }
    }
    let without = run(&study("operator = \"interference\"", "technique = [\"sequential\"]"));
    assert!(without.unwrap_err().contains("between a main thread and its helper"));
}

#[test]
fn an_instrumented_cell_needs_the_command_to_run_it() {
    let instrumentation =
        Instrumentation { tool: Tool::Callgrind, caches: "pentium-pro-1m".to_owned() };
    let context =
        EngineContext { instrumentation: Some(instrumentation), ..EngineContext::default() };
    let error = Native::open(&context).map(drop).unwrap_err().to_string();
    assert!(error.contains("`workahead study run`") && error.contains("native"), "{error}");
}

#[test]
fn what_is_misspelt_is_refused_with_the_nearest_name() {
    for (workload, axes, says) in [
        ("operator = \"hash_jion\", rows = 10", "", "unknown operator `hash_jion`"),
        ("operator = \"hash_join\", row = 10", "", "a size is missing"),
        ("operator = \"hash_join\", rows = 10, pgaes = \"huge\"", "", "did you mean `pages`"),
        (
            "operator = \"hash_join\", rows = 10, node_bytes = 64",
            "",
            "unknown setting `node_bytes`",
        ),
        ("operator = \"hash_join\", rows = -1", "", "`-1` is not a whole number"),
        (
            "operator = \"hash_join\", rows = 10, record_bytes = 96",
            "",
            "choose one of `32`, `64`, `128`, `256`",
        ),
        (
            "operator = \"hash_join\", rows = 10, record_bytes = 128, results = \"whole\"",
            "",
            "for 64 bytes only",
        ),
        (
            "operator = \"join_index\", rows = 10, record_bytes = 32, references = \"apart\"",
            "",
            "for 64 bytes only",
        ),
        (
            "operator = \"columnar\", rows = 10, record_bytes = 64",
            "",
            "unknown setting `record_bytes`",
        ),
        ("rows = 10", "", "`operator` is missing"),
        (
            "operator = \"hash_join\", rows = 10, technique = \"amca\"",
            "",
            "unknown technique `amca`",
        ),
        ("operator = \"hash_join\", rows = 10, threads = 2", "", "none of 1, independent:N"),
        (
            "operator = \"hash_join\", rows = 10, technique = \"work-ahead\", threads = \"bi:2\"",
            "",
            "has a helper",
        ),
        ("operator = \"csb_tree\", rows = 20_000_000", "", "not distinguishable"),
        (
            "operator = \"csb_tree\", rows = 10, tree = \"growing\", node_bytes = 64",
            "",
            "nodes and a search of its own",
        ),
        (
            "operator = \"csb_tree\", rows = 10, tree = \"growing\", pages = \"small\"",
            "",
            "what the allocator gives",
        ),
        ("operator = \"hash_join\", rows = 10, size = \"knee\"", "", "leave one out"),
    ] {
        let message = run(&study(workload, axes)).expect_err(workload);
        assert!(message.contains(says), "{workload}: {message}");
    }
}
