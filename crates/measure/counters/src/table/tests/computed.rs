//! Metrics computed from counts made up by hand: the formulas mean what their names say.

use super::*;

fn value(table: &Table, metric: &str, counts: &[(&str, f64)]) -> f64 {
    let Some(Definition::Formula(formula)) = table.metric(metric) else {
        panic!("{} has no {metric}", table.name)
    };
    let count = |name: &str| counts.iter().find(|(event, _)| *event == name).map(|(_, n)| *n);
    formula
        .eval(&count)
        .unwrap_or_else(|unavailable| panic!("{} {metric}: {unavailable}", table.name))
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-9, "{what}: {found} instead of {expected}");
}

/// Keeton et al. (1998), table 17, all of the workload: cycles by uops retired, and its uCPI.
#[test]
fn the_retire_profile_is_that_of_the_paper() {
    let table = table("intel/sapphire-rapids");
    let slots = 15.6 + 2.0 * 7.0 + 3.0 * 11.3;
    let counts = [
        ("CPU_CLK_UNHALTED.THREAD", 99.9),
        ("UOPS_RETIRED.SLOTS", slots),
        ("UOPS_RETIRED.SLOTS:c1", 15.6 + 7.0 + 11.3),
        ("UOPS_RETIRED.SLOTS:c2", 7.0 + 11.3),
        ("UOPS_RETIRED.SLOTS:c3", 11.3),
        ("UOPS_RETIRED.SLOTS:c4", 0.0),
    ];
    for (metric, expected) in
        [("retire_0", 66.0), ("retire_1", 15.6), ("retire_2", 7.0), ("retire_3", 11.3)]
    {
        near(value(table, metric, &counts), expected / 99.9, metric);
    }
    // 0.33 f3 + 0.5 f2 + f1 over uops is the same as cycles that retire something, per uop.
    let weighted = (15.6 / slots) + (14.0 / slots) / 2.0 + (33.9 / slots) / 3.0;
    near(value(table, "computation_ucpi", &counts), weighted, "computation");
    assert!((weighted - 0.533).abs() < 0.001, "the paper's profile gives 0.533: {weighted}");
}

/// The four parts of top-down are a whole, on every machine that has them.
#[test]
fn the_first_level_of_top_down_adds_up() {
    let counts = [
        ("TOPDOWN.SLOTS", 6000.0),
        ("PERF_METRICS.RETIRING", 1500.0),
        ("PERF_METRICS.BAD_SPECULATION", 600.0),
        ("PERF_METRICS.FRONTEND_BOUND", 900.0),
        ("PERF_METRICS.BACKEND_BOUND", 3000.0),
        ("PERF_METRICS.FETCH_LATENCY", 600.0),
        ("PERF_METRICS.BRANCH_MISPREDICTS", 500.0),
        ("PERF_METRICS.MEMORY_BOUND", 2400.0),
        ("PERF_METRICS.HEAVY_OPERATIONS", 300.0),
        ("INT_MISC.UOP_DROPPING", 60.0),
        ("INT_MISC.CLEARS_COUNT", 12.0),
        ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 100.0),
        ("BR_MISP_RETIRED.ALL_BRANCHES", 9.0),
        ("MACHINE_CLEARS.COUNT", 3.0),
        ("CYCLE_ACTIVITY.STALLS_MEM_ANY", 400.0),
        ("CYCLE_ACTIVITY.STALLS_TOTAL", 500.0),
        ("EXE_ACTIVITY.BOUND_ON_STORES", 50.0),
        ("EXE_ACTIVITY.1_PORTS_UTIL", 80.0),
        ("EXE_ACTIVITY.2_PORTS_UTIL", 40.0),
        ("UOPS_RETIRED.SLOTS", 1500.0),
        ("UOPS_ISSUED.ANY", 2000.0),
        ("IDQ.MS_UOPS", 100.0),
        ("IDQ.MITE_UOPS", 400.0),
        ("UOPS_DECODED.DEC0", 60.0),
        ("UOPS_DECODED.DEC0:c1", 40.0),
        ("ls_not_halted_cyc", 1000.0),
        ("ex_ret_ops", 1500.0),
        ("ex_ret_ucode_ops", 300.0),
        ("de_src_op_disp.all", 2100.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 840.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend:c6", 90.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend:c8", 90.0),
        ("de_no_dispatch_per_slot.backend_stalls", 2900.0),
        ("de_no_dispatch_per_slot.smt_contention", 160.0),
        ("ex_no_retire.load_not_complete", 300.0),
        ("ex_no_retire.not_complete", 400.0),
        ("ex_ret_brn_misp", 9.0),
        ("resyncs_or_nc_redirects", 3.0),
        ("bp_redirects.resync", 3.0),
    ];
    let sum = |table: &Table, parts: &[&str]| -> f64 {
        parts.iter().map(|part| value(table, part, &counts)).sum()
    };
    let parts = [
        ("frontend_bound", ["fetch_latency", "fetch_bandwidth"]),
        ("bad_speculation", ["branch_mispredicts", "machine_clears"]),
        ("backend_bound", ["memory_bound", "core_bound"]),
        ("retiring", ["heavy_operations", "light_operations"]),
    ];
    let first = ["frontend_bound", "bad_speculation", "backend_bound", "retiring"];
    for (name, wide) in [
        ("intel/icelake-sp", 1.0),
        ("intel/sapphire-rapids", 1.0),
        ("intel/granite-rapids", 1.0),
        ("amd/zen4", (840.0 + 600.0 + 2900.0 + 1500.0) / 6000.0),
        ("amd/zen5", (840.0 + 600.0 + 2900.0 + 1500.0) / 8000.0),
    ] {
        let table = table(name);
        near(sum(table, &first), wide, name);
        for (whole, parts) in parts {
            near(sum(table, &parts), value(table, whole, &counts), &format!("{name} {whole}"));
        }
    }
    near(value(table("amd/zen4"), "smt_contention", &counts), 160.0 / 6000.0, "contention");
}

#[test]
fn rates_are_per_thousand_instructions_and_per_access() {
    let counts = [
        ("INST_RETIRED.ANY", 4000.0),
        ("CPU_CLK_UNHALTED.THREAD", 10_000.0),
        ("MEM_LOAD_RETIRED.L2_HIT", 60.0),
        ("MEM_LOAD_RETIRED.L2_MISS", 20.0),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", 3.0),
        ("MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM", 1.0),
        ("CYCLE_ACTIVITY.STALLS_L2_MISS", 900.0),
        ("CYCLE_ACTIVITY.STALLS_L3_MISS", 400.0),
        ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 10.0),
        ("CPU_CLK_UNHALTED.REF_XCLK_ANY", 80.0),
        ("OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", 5000.0),
        ("OFFCORE_REQUESTS.DEMAND_DATA_RD", 25.0),
    ];
    for (metric, expected) in [
        ("cpi", 2.5),
        ("l2_load_mpki", 5.0),
        ("l2_load_miss_ratio", 0.25),
        ("dirty_mpki", 1.0),
        ("dirty_miss_share", 0.2),
        ("l3_bound", 0.05),
        ("smt_2t_utilization", 0.75),
        ("memory_latency_cycles", 200.0),
    ] {
        near(value(table("intel/skylake-sp"), metric, &counts), expected, metric);
    }
}
