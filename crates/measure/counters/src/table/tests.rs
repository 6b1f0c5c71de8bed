//! Every table is complete, and its codes are the manufacturer's.

use super::*;
use crate::event::{Code, Software};
use crate::metric;

fn table(name: &str) -> &'static Table {
    Table::named(name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_embedded_table_can_be_read() {
    for text in EMBEDDED {
        let table = Table::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!table.source.is_empty() && !table.licence.is_empty(), "{}", table.name);
        assert_eq!(Table::named(&table.name), Ok(&table));
    }
}

/// The checks of reading once more, written differently: over the public interface.
#[test]
fn every_metric_has_a_formula_of_known_events_or_a_reason() {
    for table in Table::all() {
        let names: Vec<&str> = table.events().map(|event| event.name.as_str()).collect();
        for metric in metric::catalogue() {
            match table.metric(&metric.name).expect("every metric is defined") {
                Definition::Formula(formula) => {
                    for name in formula.names() {
                        assert!(names.contains(&name), "{} {}: {name}", table.name, metric.name);
                    }
                    assert!(formula.is_ratio(), "{} {}", table.name, metric.name);
                }
                Definition::Unavailable { why, .. } => {
                    assert!(why.len() > 10, "{} {}: {why}", table.name, metric.name);
                }
            }
        }
    }
}

/// A name in `instead` of an unavailable metric is one that the machine has.
#[test]
fn named_alternatives_exist() {
    for table in Table::all() {
        for metric in metric::catalogue() {
            if let Some(Definition::Unavailable { instead: Some(instead), .. }) =
                table.metric(&metric.name)
            {
                for name in instead.split(", ") {
                    let found = table.metric(name);
                    let has = matches!(found, Some(Definition::Formula(_)));
                    assert!(has, "{} {}: {name}", table.name, metric.name);
                }
            }
        }
    }
}

#[test]
fn every_event_of_a_table_is_used_or_is_the_kernels() {
    for table in Table::all() {
        let all: Vec<&Metric> = metric::catalogue().iter().collect();
        let needed = table.needed(&all);
        for event in table.events() {
            let software = matches!(event.code, Code::Software(_));
            assert!(software || needed.contains(&event), "{} {}", table.name, event.name);
        }
    }
}

/// From the JSON of intel/perfmon and the kernel's lists, encoded by hand.
#[test]
fn codes_are_those_of_the_manufacturers() {
    for (name, event, expected) in [
        ("intel/skylake-sp", "INST_RETIRED.ANY", 0x00c0),
        ("intel/skylake-sp", "CPU_CLK_UNHALTED.THREAD", 0x003c),
        ("intel/skylake-sp", "CPU_CLK_UNHALTED.REF_TSC", 0x0300),
        ("intel/skylake-sp", "MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", 0x04d2),
        ("intel/skylake-sp", "RESOURCE_STALLS.ANY", 0x01a2),
        ("intel/skylake-sp", "CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x1400_14a3),
        ("intel/skylake-sp", "CPU_CLK_UNHALTED.REF_XCLK_ANY", 0x0020_013c),
        ("intel/skylake-sp", "EXE_ACTIVITY.BOUND_ON_STORES", 0x40a6),
        ("intel/skylake-sp", "ITLB_MISSES.WALK_COMPLETED", 0x0e85),
        ("intel/icelake-sp", "DTLB_LOAD_MISSES.WALK_ACTIVE", 0x0100_1008),
        ("intel/icelake-sp", "EXE_ACTIVITY.BOUND_ON_STORES", 0x0200_40a6),
        ("intel/icelake-sp", "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x0500_019c),
        ("intel/icelake-sp", "INT_MISC.CLEARS_COUNT", 0x0104_010d),
        ("intel/icelake-sp", "PERF_METRICS.BACKEND_BOUND", 0x8300),
        ("intel/sapphire-rapids", "TOPDOWN.SLOTS", 0x0400),
        ("intel/sapphire-rapids", "PERF_METRICS.RETIRING", 0x8000),
        ("intel/sapphire-rapids", "PERF_METRICS.MEMORY_BOUND", 0x8700),
        ("intel/sapphire-rapids", "MEM_LOAD_RETIRED.L2_MISS", 0x10d1),
        ("intel/sapphire-rapids", "MACHINE_CLEARS.COUNT", 0x0104_01c3),
        ("intel/sapphire-rapids", "MACHINE_CLEARS.MEMORY_ORDERING", 0x02c3),
        ("intel/sapphire-rapids", "EXE_ACTIVITY.BOUND_ON_LOADS", 0x0500_21a6),
        ("intel/sapphire-rapids", "MEMORY_ACTIVITY.STALLS_L3_MISS", 0x0900_0947),
        ("intel/sapphire-rapids", "OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", 0x0120),
        ("intel/sapphire-rapids", "OFFCORE_REQUESTS.DEMAND_DATA_RD", 0x0121),
        ("intel/sapphire-rapids", "UOPS_RETIRED.SLOTS:c3", 0x0300_02c2),
        ("intel/granite-rapids", "L2_RQSTS.ALL_CODE_RD", 0xe424),
        ("intel/granite-rapids", "CPU_CLK_UNHALTED.REF_DISTRIBUTED", 0x083c),
        ("amd/zen3", "ex_ret_instr", 0xc0),
        ("amd/zen3", "ic_tag_hit_miss.instruction_cache_miss", 0x1_0000_188e),
        ("amd/zen4", "ls_not_halted_cyc", 0x76),
        ("amd/zen4", "ls_not_halted_p0_cyc.p0_freq_cyc", 0x1_0000_0120),
        ("amd/zen4", "de_no_dispatch_per_slot.no_ops_from_frontend:c6", 0x1_0600_01a0),
        ("amd/zen4", "ex_no_retire.load_not_complete", 0xa2d6),
        ("amd/zen4", "resyncs_or_nc_redirects", 0x96),
        ("amd/zen4", "ex_ret_ucode_ops", 0x1_0000_00c2),
        ("amd/zen5", "bp_redirects.resync", 0x019f),
        ("amd/zen5", "de_no_dispatch_per_slot.smt_contention", 0x1_0000_60a0),
        ("amd/zen5", "l3_xi_sampled_latency.all", 0x0303_c000_0000_3fac),
        ("arm/architected", "CPU_CYCLES", 0x11),
        ("arm/architected", "LL_CACHE_MISS_RD", 0x37),
        ("arm/architected", "STALL_BACKEND_MEM", 0x4005),
    ] {
        let found = table(name).event(event).unwrap_or_else(|| panic!("{name}: no {event}"));
        let (Code::Core { config, config1 } | Code::Other { config, config1, .. }) = &found.code
        else {
            panic!("{name} {event}: {:?}", found.code)
        };
        assert_eq!((*config, *config1), (expected, 0), "{name} {event}: {config:#x}");
    }
}

#[test]
fn places_are_those_of_the_manufacturers() {
    let place = |name: &str, event: &str| table(name).event(event).unwrap().place;
    // Four counters with SMT on, eight without, except where the list says otherwise.
    assert_eq!(place("intel/skylake-sp", "MEM_LOAD_RETIRED.L2_MISS"), Place::Only(0b1111));
    assert_eq!(place("intel/skylake-sp", "L2_RQSTS.ALL_DEMAND_MISS"), Place::Any);
    assert_eq!(place("intel/sapphire-rapids", "MEM_LOAD_RETIRED.L2_MISS"), Place::Only(0b1111));
    assert_eq!(place("intel/sapphire-rapids", "UOPS_RETIRED.SLOTS:c1"), Place::Any);
    assert_eq!(place("intel/sapphire-rapids", "TOPDOWN.SLOTS"), Place::Fixed(3));
    assert_eq!(place("amd/zen4", "l3_xi_sampled_latency.all"), Place::None);
    assert_eq!(place("amd/zen4", "ex_ret_instr"), Place::Any);
    let counters = |name: &str| {
        let GeneralCounters { smt_on, smt_off } = table(name).general_counters;
        (smt_on, smt_off)
    };
    assert_eq!(counters("intel/skylake-sp"), (4, 8));
    assert_eq!(counters("intel/granite-rapids"), (8, 8));
    assert_eq!(counters("amd/zen5"), (6, 6));
    let fixed: Vec<_> =
        table("intel/icelake-sp").fixed().iter().map(|event| event.name.as_str()).collect();
    assert_eq!(
        fixed,
        [
            "INST_RETIRED.ANY",
            "CPU_CLK_UNHALTED.THREAD",
            "CPU_CLK_UNHALTED.REF_TSC",
            "TOPDOWN.SLOTS"
        ]
    );
    assert_eq!(table("amd/zen4").fixed(), [] as [&Event; 0]);
    assert_eq!(table("arm/architected").fixed().len(), 1);
}

#[test]
fn a_metric_brings_the_leader_of_its_groups() {
    let table = table("intel/sapphire-rapids");
    let retiring = metric::named("retiring").unwrap();
    let unavailable = metric::named("smt_contention").unwrap();
    let names: Vec<&str> =
        table.needed(&[retiring, unavailable]).iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names[0], "TOPDOWN.SLOTS");
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(table.leader(names[1]).unwrap().name, "TOPDOWN.SLOTS");
    assert_eq!(table.leader("INST_RETIRED.ANY"), None);
}

#[test]
fn processors_find_their_table() {
    for (vendor, family, model, expected) in [
        ("GenuineIntel", 6, 0x55, Some("intel/skylake-sp")),
        ("GenuineIntel", 6, 0x6a, Some("intel/icelake-sp")),
        ("GenuineIntel", 6, 0x6c, Some("intel/icelake-sp")),
        ("GenuineIntel", 6, 0x8f, Some("intel/sapphire-rapids")),
        ("GenuineIntel", 6, 0xcf, Some("intel/sapphire-rapids")),
        ("GenuineIntel", 6, 0xad, Some("intel/granite-rapids")),
        ("GenuineIntel", 6, 0x8e, None),
        ("GenuineIntel", 15, 0x55, None),
        ("AuthenticAMD", 0x19, 0x01, Some("amd/zen3")),
        ("AuthenticAMD", 0x19, 0x44, Some("amd/zen3")),
        ("AuthenticAMD", 0x19, 0x11, Some("amd/zen4")),
        ("AuthenticAMD", 0x19, 0xa0, Some("amd/zen4")),
        ("AuthenticAMD", 0x1a, 0x02, Some("amd/zen5")),
        // The kernel calls these Zen 6, whose events are others.
        ("AuthenticAMD", 0x1a, 0x50, None),
        ("AuthenticAMD", 0x17, 0x31, None),
        ("HygonGenuine", 0x18, 0x00, None),
        ("arm", 8, 0xd0c, Some("arm/architected")),
        ("", 0, 0, None),
    ] {
        let found = Table::for_processor(vendor, family, model).map(|table| table.name.as_str());
        assert_eq!(found, expected, "{vendor} {family:#x} {model:#x}");
    }
}

#[test]
fn no_processor_is_in_two_tables() {
    for vendor in ["GenuineIntel", "AuthenticAMD", "arm"] {
        for (family, model) in (0..0x20).flat_map(|family| (0..0x100).map(move |m| (family, m))) {
            let have = |table: &&Table| table.processors.have(vendor, family, model);
            let tables = Table::all().iter().filter(have).count();
            assert!(tables <= 1, "{vendor} {family:#x} {model:#x}");
        }
    }
}

#[test]
fn cpuinfo_finds_the_table() {
    let intel = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
                 model name\t: Intel(R) Xeon(R) Platinum 8480+\nstepping\t: 8\n";
    let name = |text: &str| Table::for_cpuinfo(text).map(|table| table.name.as_str());
    assert_eq!(name(intel), Some("intel/sapphire-rapids"));
    let amd = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
               model name\t: AMD EPYC 7B13\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\n";
    assert_eq!(name(amd), Some("amd/zen3"));
    let arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n\
               CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n";
    assert_eq!(name(arm), Some("arm/architected"));
    for unknown in ["", "vendor_id : GenuineIntel\n", "vendor_id : GenuineIntel\nmodel : many\n"] {
        assert_eq!(name(unknown), None, "{unknown}");
    }
}

#[test]
fn kernel_events_belong_to_every_table() {
    for table in Table::all() {
        let event = table.event("task_clock").unwrap();
        assert_eq!((&event.code, event.place), (&Code::Software(Software::TaskClock), Place::None));
        let Some(Definition::Formula(formula)) = table.metric("context_switches_per_second") else {
            panic!("{}", table.name)
        };
        // Six switches in two milliseconds.
        let count = |name: &str| Some(if name == "task_clock" { 2e6 } else { 6.0 });
        assert_eq!(formula.eval(&count), Ok(3000.0));
    }
    let cpi = table("software").metric("cpi").unwrap();
    assert!(
        matches!(cpi, Definition::Unavailable { why, .. } if why.contains("kernel")),
        "{cpi:?}"
    );
}

#[test]
fn missing_metrics_of_machines_are_reported() {
    let unavailable = |name: &str, metric: &str| match table(name).metric(metric) {
        Some(Definition::Unavailable { why, instead }) => (why.clone(), instead.clone()),
        other => panic!("{name} {metric}: {other:?}"),
    };
    let (why, instead) = unavailable("intel/skylake-sp", "retiring");
    assert!(why.contains("siblings") && instead.is_some(), "{why}");
    let rebuilt = table("intel/sapphire-rapids").instead("resource_stall_cpi").unwrap();
    assert!(rebuilt.contains("RESOURCE_STALLS.ANY is gone"), "{rebuilt}");
    assert_eq!(table("intel/skylake-sp").instead("resource_stall_cpi"), None);
    assert!(table("intel/skylake-sp").event("MEMORY_ACTIVITY.STALLS_L3_MISS").is_none());
    assert_eq!(
        unavailable("amd/zen4", "dirty_miss_share").1.as_deref(),
        Some("from_other_cache_share")
    );
}

#[test]
fn an_unknown_table_is_answered_by_the_nearest() {
    let error = Table::named("intel/saphire-rapids").unwrap_err().to_string();
    assert_eq!(
        error,
        "no table of counters is called `intel/saphire-rapids`: did you mean \
         `intel/sapphire-rapids`?"
    );
}

mod computed;
mod refused;
