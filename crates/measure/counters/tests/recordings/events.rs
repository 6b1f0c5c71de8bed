//! How often each event happens per instruction, out of the quantities of a side. Events of one
//! slot and CPU are of the same quantities, so that what must add up does.

use super::sides::Side;

/// Events with their rates.
pub(crate) type Events = Vec<(String, f64)>;

/// Of Intel's cores from Skylake on; some names are of one generation only.
pub(crate) fn intel(side: &Side, width: f64) -> Events {
    let mut events = core(side);
    events.extend(caches(side));
    events.extend(loads(side));
    events.extend(stalls(side));
    events.extend(top_down(side, width));
    events.extend(retiring(side, &["UOPS_RETIRED.SLOTS", "UOPS_RETIRED.RETIRE_SLOTS"]));
    events
}

fn named<const EVENTS: usize>(events: [(&str, f64); EVENTS]) -> Events {
    events.map(|(name, rate)| (name.to_owned(), rate)).into()
}

/// Clocks, branches, and walks.
fn core(side: &Side) -> Events {
    let of = |name| side.of(name);
    let reference = of("cpi") / of("clock");
    let alone = of("alone");
    let walks = |name: &'static str| of(name) * of("walk");
    named([
        ("INST_RETIRED.ANY", 1.0),
        ("CPU_CLK_UNHALTED.THREAD", of("cpi")),
        ("CPU_CLK_UNHALTED.REF_TSC", reference),
        ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", alone * reference / 20.0),
        ("CPU_CLK_UNHALTED.REF_DISTRIBUTED", (1.0 + alone) / 2.0 * reference / 20.0),
        ("CPU_CLK_UNHALTED.REF_XCLK_ANY", reference / 20.0),
        ("ITLB_MISSES.WALK_COMPLETED", of("itlb")),
        ("DTLB_LOAD_MISSES.WALK_ACTIVE", walks("dtlb_loads")),
        ("DTLB_LOAD_MISSES.WALK_COMPLETED", of("dtlb_loads")),
        ("DTLB_STORE_MISSES.WALK_ACTIVE", walks("dtlb_stores")),
        ("DTLB_STORE_MISSES.WALK_COMPLETED", of("dtlb_stores")),
        ("BACLEARS.ANY", of("branches") * of("resteered")),
        ("BR_INST_RETIRED.ALL_BRANCHES", of("branches")),
        ("BR_MISP_RETIRED.ALL_BRANCHES", of("branches") * of("mispredicted")),
        ("MACHINE_CLEARS.COUNT", of("clears")),
        ("MACHINE_CLEARS.MEMORY_ORDERING", of("order_clears")),
        ("UOPS_ISSUED.ANY", of("uops") * of("issued")),
        ("MEM_INST_RETIRED.ALL_LOADS", of("loads")),
        ("MEM_INST_RETIRED.ALL_STORES", of("stores")),
    ])
}

/// L1I, L2, L3, and what is beyond L2.
fn caches(side: &Side) -> Events {
    let of = |name| side.of(name);
    let (l1d, rfo, l1i) = (of("l1d"), of("rfo"), of("l1i"));
    let (data_miss, rfo_miss) = (l1d * of("data_missed"), rfo * of("rfo_missed"));
    let code_miss = l1i * of("code_missed");
    let demand_miss = data_miss + rfo_miss + code_miss;
    let outstanding = 1.4 * data_miss * of("latency");
    named([
        ("OFFCORE_REQUESTS.DEMAND_DATA_RD", data_miss),
        ("OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", data_miss * of("latency")),
        ("OFFCORE_REQUESTS_OUTSTANDING.DATA_RD", outstanding),
        ("OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD", outstanding),
        ("OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DATA_RD", outstanding / of("parallel")),
        ("L2_RQSTS.ALL_CODE_RD", l1i),
        ("L2_RQSTS.ALL_DEMAND_DATA_RD", l1d),
        ("L2_RQSTS.ALL_RFO", rfo),
        ("L2_RQSTS.ALL_DEMAND_REFERENCES", l1i + l1d + rfo),
        ("L2_RQSTS.ALL_DEMAND_MISS", demand_miss),
        ("L2_RQSTS.CODE_RD_MISS", code_miss),
        ("L2_RQSTS.DEMAND_DATA_RD_MISS", data_miss),
        ("L2_RQSTS.RFO_MISS", rfo_miss),
        ("LONGEST_LAT_CACHE.REFERENCE", demand_miss * of("prefetched")),
        ("LONGEST_LAT_CACHE.MISS", demand_miss * of("l3_missed") * of("prefetch_missed")),
        ("ICACHE_64B.IFTAG_MISS", l1i),
        ("ICACHE_64B.IFTAG_HIT", of("fetches")),
    ])
}

/// Loads that retire, by where they were served.
fn loads(side: &Side) -> Events {
    let of = |name| side.of(name);
    let l2_miss = of("l1d") * of("data_missed");
    let l3_miss = l2_miss * of("l3_missed");
    let l3_hit = l2_miss - l3_miss;
    let modified = 1.0 - of("snoop_none") - of("snoop_miss") - of("snoop_clean");
    let local = 1.0 - of("remote") - of("remote_clean") - of("remote_modified");
    named([
        ("MEM_LOAD_RETIRED.FB_HIT", of("buffer_hits")),
        ("MEM_LOAD_RETIRED.L1_MISS", of("l1d")),
        ("MEM_LOAD_RETIRED.L2_HIT", of("l1d") - l2_miss),
        ("MEM_LOAD_RETIRED.L2_MISS", l2_miss),
        ("MEM_LOAD_RETIRED.L3_HIT", l3_hit),
        ("MEM_LOAD_RETIRED.L3_MISS", l3_miss),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_NONE", l3_hit * of("snoop_none")),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_MISS", l3_hit * of("snoop_miss")),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_NO_FWD", l3_hit * of("snoop_clean")),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_HIT", l3_hit * of("snoop_clean")),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD", l3_hit * modified),
        ("MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", l3_hit * modified),
        ("MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM", l3_miss * local),
        ("MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM", l3_miss * of("remote")),
        ("MEM_LOAD_L3_MISS_RETIRED.REMOTE_FWD", l3_miss * of("remote_clean")),
        ("MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM", l3_miss * of("remote_modified")),
    ])
}

/// Cycles that wait.
fn stalls(side: &Side) -> Events {
    let share = |name| side.of("cpi") * side.of(name);
    let awaited = share("load_bound");
    let beyond_l1 = awaited * side.of("beyond_l1");
    let beyond_l2 = beyond_l1 * side.of("beyond_l2");
    let beyond_l3 = beyond_l2 * side.of("beyond_l3");
    named([
        ("ICACHE_16B.IFDATA_STALL", share("line_stalls")),
        ("ICACHE_DATA.STALLS", share("line_stalls")),
        ("ICACHE_TAG.STALLS", share("tag_stalls")),
        ("RESOURCE_STALLS.ANY", share("resources")),
        ("RESOURCE_STALLS.SB", share("stores_full")),
        ("RESOURCE_STALLS.SCOREBOARD", share("serialising")),
        ("EXE_ACTIVITY.BOUND_ON_LOADS", awaited),
        ("EXE_ACTIVITY.BOUND_ON_STORES", share("store_bound")),
        ("L1D_PEND_MISS.FB_FULL:c1", side.of("buffers_full")),
        ("CYCLE_ACTIVITY.STALLS_MEM_ANY", awaited),
        ("CYCLE_ACTIVITY.STALLS_L1D_MISS", beyond_l1),
        ("CYCLE_ACTIVITY.STALLS_L2_MISS", beyond_l2),
        ("CYCLE_ACTIVITY.STALLS_L3_MISS", beyond_l3),
        ("MEMORY_ACTIVITY.STALLS_L1D_MISS", beyond_l1),
        ("MEMORY_ACTIVITY.STALLS_L2_MISS", beyond_l2),
        ("MEMORY_ACTIVITY.STALLS_L3_MISS", beyond_l3),
    ])
}

/// Slots of Intel's PERF_METRICS: four that add up to all, and a part of each.
fn top_down(side: &Side, width: f64) -> Events {
    let of = |name| side.of(name);
    let slots = width * of("cpi");
    let retiring = of("uops");
    let frontend = of("frontend") * slots;
    let bad = of("uops") * (of("issued") - 1.0) * 2.0;
    let backend = slots - retiring - frontend - bad;
    named([
        ("TOPDOWN.SLOTS", slots),
        ("PERF_METRICS.RETIRING", retiring),
        ("PERF_METRICS.BAD_SPECULATION", bad),
        ("PERF_METRICS.FRONTEND_BOUND", frontend),
        ("PERF_METRICS.BACKEND_BOUND", backend),
        ("PERF_METRICS.HEAVY_OPERATIONS", retiring * of("heavy")),
        ("PERF_METRICS.BRANCH_MISPREDICTS", bad * of("wrong_branches")),
        ("PERF_METRICS.FETCH_LATENCY", frontend * of("frontend_latency")),
        ("PERF_METRICS.MEMORY_BOUND", backend * of("memory")),
        ("INT_MISC.UOP_DROPPING", of("dropped") * frontend),
    ])
}

/// Uops that retire, and cycles in which at least that number does.
fn retiring(side: &Side, names: &[&str]) -> Events {
    const WIDEST: u32 = 8;
    let mut events = Vec::new();
    for name in names {
        events.push(((*name).to_owned(), side.of("uops")));
        let at_least = |width| (format!("{name}:c{width}"), side.retiring(width, WIDEST));
        events.extend((1..=WIDEST).map(at_least));
    }
    events
}

/// Of AMD's Zen 4, six slots a cycle.
pub(crate) fn zen4(side: &Side) -> Events {
    let of = |name| side.of(name);
    let cycles = of("cpi");
    let share = |name| cycles * of(name);
    let slots = 6.0 * cycles;
    let dispatched = of("uops") * of("issued");
    let (frontend, sibling) = (of("frontend") * slots, of("sibling") * slots);
    let both = 0.04;
    let fills = of("l1d") + of("rfo");
    let beyond_l2 = fills * of("data_missed");
    let beyond_l3 = beyond_l2 * of("l3_missed");
    let other_cache = beyond_l3 * (of("remote_clean") + of("remote_modified"));
    let code_miss = of("l1i") * of("code_missed");
    let data = fills * 1.2;
    let data_miss = data * of("data_missed");
    let mut events = named([
        ("ex_ret_instr", 1.0),
        ("ls_not_halted_cyc", cycles),
        ("ls_not_halted_p0_cyc.p0_freq_cyc", cycles / of("clock")),
        ("ls_dispatch.ld_dispatch", of("loads") * of("issued")),
        ("ls_dispatch.store_dispatch", of("stores") * of("issued")),
        ("ls_dispatch.ld_st_dispatch", both * of("issued")),
        ("ls_dispatch:u07", (of("loads") + of("stores") + both) * of("issued")),
        ("ex_ret_brn", of("branches")),
        ("ex_ret_brn_misp", of("branches") * of("mispredicted")),
        ("ls_dmnd_fills_from_sys.all", fills),
        ("ls_dmnd_fills_from_sys.local_l2", fills - beyond_l2),
        ("ls_dmnd_fills_from_sys.local_ccx", beyond_l2 - beyond_l3),
        ("ls_dmnd_fills_from_sys:u14", other_cache),
        ("ls_dmnd_fills_from_sys:u48", beyond_l3 - other_cache),
        ("ls_dmnd_fills_from_sys:udc", beyond_l3),
        ("ls_dmnd_fills_from_sys:ude", beyond_l2),
        ("ic_tag_hit_miss.instruction_cache_miss", of("l1i")),
        ("ic_tag_hit_miss.all_instruction_cache_accesses", of("fetches") + of("l1i")),
        ("l2_cache_req_stat.ic_dc_miss_in_l2", code_miss + data_miss),
        ("l2_cache_req_stat.ic_dc_hit_in_l2", of("l1i") - code_miss + data - data_miss),
        ("l2_cache_req_stat.ic_fill_miss", code_miss),
        ("l2_cache_req_stat.ic_access_in_l2", of("l1i")),
        ("l2_cache_req_stat.ls_rd_blk_c", data_miss),
        ("l2_cache_req_stat.dc_hit_in_l2", data - data_miss),
        ("bp_l1_tlb_miss_l2_tlb_miss.all", of("itlb")),
        ("bp_l1_tlb_miss_l2_tlb_hit", of("itlb_l2_hits")),
        ("bp_l1_tlb_fetch_hit.all", of("fetches")),
        ("ls_l1_d_tlb_miss.all_l2_miss", of("dtlb_loads") + of("dtlb_stores")),
        ("bp_de_redirect", of("branches") * of("resteered")),
        ("de_src_op_disp.all", dispatched),
        ("resyncs_or_nc_redirects", of("order_clears")),
        ("de_dis_dispatch_token_stalls1.store_queue_rsrc_stall", share("stores_full")),
        ("ex_no_retire.not_complete", share("load_bound") * 1.6),
        ("ex_no_retire.load_not_complete", share("load_bound")),
        ("de_op_queue_empty", share("queue_empty")),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", frontend),
        (
            "de_no_dispatch_per_slot.no_ops_from_frontend:c6",
            frontend / 6.0 * of("frontend_latency"),
        ),
        ("de_no_dispatch_per_slot.backend_stalls", slots - frontend - sibling - dispatched),
        ("de_no_dispatch_per_slot.smt_contention", sibling),
        ("ex_ret_ucode_ops", of("uops") * of("heavy")),
    ]);
    events.extend(retiring(side, &["ex_ret_ops"]));
    events
}
