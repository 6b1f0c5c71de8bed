//! Operators on modelled machines: the oracle's answers, and the effect of each setting.

use workahead_study::engine::{Engine, EngineError, Sample, Stop};
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use crate::engine::ModelledEngine;

/// Runs every cell of a study once, one after the other on one engine.
fn run(workload: &str, axes: &str) -> Result<Vec<(String, Sample)>, String> {
    let text = format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"modelled\"\nseed = 7\n\
         workload = {{ {workload}, pages = \"small\" }}\n[axes]\n{axes}\n"
    );
    let spec = Spec::parse("test", &text).map_err(|error| error.to_string())?;
    let run_plan = RunPlan::new(&spec);
    let (mut engine, stop) = (ModelledEngine::default(), Stop::new());
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

fn samples(workload: &str, axes: &str) -> Vec<Sample> {
    let samples = run(workload, axes).unwrap_or_else(|error| panic!("{error}"));
    samples.into_iter().map(|(_, sample)| sample).collect()
}

const PENTIUM: &str = "machine = \"p4-ht-512k\"";

/// The engine itself compares every run with the oracle.
#[test]
fn every_kind_of_helper_leaves_answers_as_they_are() {
    let axes = r#"
        operator = ["hash_join", "csb_tree", "join_index", "columnar"]
        set = ["software", "hardware"]
        technique = ["work-ahead", "work-ahead:dedupe=helper", "work-ahead:dedupe=post",
                     "work-ahead:direction=forward,wait=none", "direct-helper:size=64"]
    "#;
    let samples = samples(&format!("{PENTIUM}, rows = 1000, probe_rows = 3000"), axes);
    assert_eq!(samples.len(), 4 * 2 * 5);
    assert!(samples.iter().all(|sample| sample.answer.rows > 0 && sample.wall_s > 0.0));
    assert!(samples.iter().all(|sample| sample.measures["helper_entries"] > 0.0));
}

#[test]
fn unsupported_settings_are_refused_with_the_reason() {
    let refused =
        |setting: &str| run(&format!("{PENTIUM}, probe_rows = 1500, {setting}"), "set_size = [64]");
    for (setting, reason) in [
        (
            "operator = \"hash_join\", rows = 500, technique = \"work-ahead:guard=mutex\"",
            "locked instruction",
        ),
        (
            "operator = \"hash_join\", rows = 500, technique = \"work-ahead:wait=sleep\"",
            "operating system",
        ),
        ("operator = \"hash_join\", rows = 500, results = \"whole\"", "merging"),
        ("operator = \"hash_join\", rows = 500, threads = \"bi:2,split=morsels\"", "free first"),
        (
            "operator = \"hash_join\", rows = 500, technique = \"work-ahead:wait=serialize\"",
            "not modelled",
        ),
        ("operator = \"interference\"", "choose another"),
        ("operator = \"hash_join\", rows = 500, siblings = \"half\"", "off"),
    ] {
        let error = refused(setting).unwrap_err();
        assert!(error.contains(reason) && !error.contains('\n'), "{setting}: {error}");
    }
}

/// The race ends when the first operator has done all of its rows, and the rows that each had done
/// by then are the same in every cell and process.
#[test]
fn two_operators_share_a_machine() {
    let workload = format!(
        "{PENTIUM}, operator = \"heterogeneous\", rows = 2000, probe_rows = 3000, tree_rows = 3000"
    );
    let axes = "threads = [1, \"independent:2\", \"bi:2\"]";
    let first = samples(&workload, axes);
    let amounts = |sample: &Sample| (sample.measures["join_rows"], sample.measures["tree_rows"]);
    let (join, tree) = amounts(&first[0]);
    assert!((join == 3000.0) != (tree == 3000.0), "{join} {tree}");
    assert!(join > 0.0 && tree > 0.0);
    assert!(first.iter().all(|sample| amounts(sample) == (join, tree)));
    assert!(first[1].wall_s < first[0].wall_s, "side by side is faster than one after the other");
    // Measures per row are those of the mean row of both.
    let instructions = |sample: &Sample| sample.measures["instructions_per_tuple"];
    let few = 0.01 * instructions(&first[0]);
    assert!(first.iter().all(|one| (instructions(one) - instructions(&first[0])).abs() < few));
    let again = samples(&workload, axes);
    let outcomes = |samples: &[Sample]| -> Vec<_> {
        samples.iter().map(|sample| (sample.wall_s, sample.measures.clone())).collect()
    };
    assert_eq!(outcomes(&first), outcomes(&again));
}

/// A hardware set clears no pipeline and takes the misses all the same.
#[test]
fn hardware_clears_nothing() {
    let workload = format!(
        "{PENTIUM}, operator = \"hash_join\", rows = 20000, probe_rows = 5000, technique = \"work-ahead\""
    );
    let samples = samples(&workload, "set = [\"software\", \"hardware\"]");
    let [software, hardware] = &samples[..] else { panic!("two cells") };
    let clears = |sample: &Sample| sample.measures["memory_order_clears_per_tuple"];
    assert!(clears(software) > 0.0);
    assert_eq!(clears(hardware), 0.0);
    let missed =
        |sample: &Sample, who: &str| sample.measures[&format!("l2_load_misses_per_tuple_{who}")];
    assert!(missed(hardware, "helper") > missed(hardware, "main"));
    assert!(hardware.wall_s < software.wall_s);
}

/// A halted sibling leaves its share: one thread is as fast as on a core without siblings.
#[test]
fn halted_siblings_leave_their_share() {
    let times = |workload: &str, axes: &str| -> Vec<f64> {
        samples(workload, axes).iter().map(|sample| sample.wall_s).collect()
    };
    let workload = format!("{PENTIUM}, operator = \"csb_tree\", rows = 20000, probe_rows = 3000");
    let [on, off] = times(&workload, "siblings = [\"on\", \"off\"]")[..] else { panic!("two") };
    assert_eq!(on, off);
    let [kept, left] = times(&workload, "\"model.core.halts\" = [false, true]")[..] else {
        panic!("two")
    };
    assert!(kept > left);
    // On four cores: two threads on one core, or on two, each with the whole core.
    let workload = workload.replace("p4-ht-512k", "e3-1240");
    let axes = "siblings = [\"off\", \"on\"]\nplacement = [\"compact\", \"scatter\"]\n\
                threads = [\"bi:2\"]";
    let [_, off, doubled, apart] = times(&workload, axes)[..] else { panic!("four cells") };
    assert_eq!(apart, off);
    assert!(doubled > apart);
}

/// Threads that share their input also share its table, whatever was run before.
#[test]
fn threads_of_one_table_have_one_table() {
    let workload = format!("{PENTIUM}, operator = \"csb_tree\", rows = 20000, probe_rows = 3000");
    let alone = samples(&workload, "threads = [\"bi:2\"]");
    let after = samples(&workload, "threads = [\"independent:2\", \"bi:2\"]");
    assert_eq!(alone[0].measures, after[1].measures);
}

/// Figures don't depend on earlier work of this process or on its addresses: all that a walk reads
/// is on pages of its own.
#[test]
fn figures_do_not_depend_on_the_heap() {
    let axes = r#"
        operator = ["hash_join", "csb_tree", "join_index", "columnar"]
        probes = ["clustered", "unclustered"]
    "#;
    let workload = format!("{PENTIUM}, rows = 700, probe_rows = 900, technique = \"work-ahead\"");
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut measures = |bytes: usize| -> Vec<_> {
        kept.extend((0..64).map(|_| vec![1; bytes]));
        samples(&workload, axes).into_iter().map(|sample| sample.measures).collect()
    };
    let first = measures(0);
    for bytes in [24, 1000, 40_008] {
        assert_eq!(measures(bytes), first, "after {bytes} bytes more");
    }
}

/// The threads of a group run together on two CPUs that each have others to run; the loops
/// continue, and answers stay the same. A master publishes the group that it aggregates, so a
/// single join is not helped.
#[test]
fn a_scheduler_brings_main_and_helper_together() {
    let workload = format!(
        "{PENTIUM}, operator = \"hash_join\", rows = 4000, probe_rows = 20000, \
         technique = \"work-ahead\", loops = 3, loop_bytes = 16384, time_scale = 400"
    );
    let samples = |scheduler: &str, threads: &str| {
        let axes = format!("scheduler = [{scheduler}]\nthreads = [\"independent:{threads}\"]");
        samples(&workload, &axes)
    };
    let alone = samples("\"cfs\", \"itas\", \"gang\"", "1");
    let co_run = |sample: &Sample| sample.measures["co_run_share"];
    assert_eq!(alone[0].measures, alone[1].measures);
    assert!(co_run(&alone[2]) > co_run(&alone[0]), "{} {}", co_run(&alone[2]), co_run(&alone[0]));
    let samples = samples("\"tas\", \"itas\"", "2");
    let (tas, itas) = (&samples[0].measures, &samples[1].measures);
    assert!(itas["co_run_share"] > 1.1 * tas["co_run_share"], "{tas:?} {itas:?}");
    for said in [tas, itas] {
        assert!(said["loop_cpu_s"] > 0.0 && said["helper_entries"] > 0.0);
        assert!(said.contains_key("computation_share") && !said.contains_key("bus_utilisation"));
    }
    // The loops' time is not the walks'.
    for sample in &samples {
        let (cpu, loops) = (sample.cpu_s.unwrap(), sample.measures["loop_cpu_s"]);
        assert!(
            cpu + loops <= 2.0 * sample.wall_s * 1.001,
            "{cpu} and {loops} of {}",
            sample.wall_s
        );
    }
}

#[test]
fn settings_of_a_scheduler_need_one() {
    let workload = format!("{PENTIUM}, rows = 500, probe_rows = 1500");
    let refused = |more: &str| run(&format!("{workload}, {more}"), "set_size = [64]").unwrap_err();
    let alone = refused("operator = \"hash_join\", loops = 3");
    assert!(alone.contains("loops"), "{alone}");
    let guests = refused("operator = \"hash_join\", scheduler = \"cfs\", guests = 2");
    assert!(guests.contains("guests"), "{guests}");
    let two = refused("operator = \"heterogeneous\", tree_rows = 500, scheduler = \"cfs\"");
    assert!(two.contains("`scheduler`"), "{two}");
}
