//! Described machines: what is read from five very different ones, and from broken ones.

mod fixture;

use fixture::Fixture;
use workahead_machine::evidence_tier::CounterState;
use workahead_machine::memory::Transparent;
use workahead_machine::tlb::TlbSource;
use workahead_machine::topology::{CoreKind, Smt};
use workahead_machine::virtualisation::VirtualKind;
use workahead_machine::{EvidenceTier, Machine, Sysroot};

const GIB: u64 = 1 << 30;

fn machine(name: &str) -> Machine {
    Machine::read(&Fixture::named(name).root())
}

#[test]
fn two_socket_smt_server() {
    let machine = machine("two-socket-smt-server");
    assert_eq!(machine.smt, Smt::On);
    assert_eq!(machine.packages.len(), 2);
    assert_eq!(machine.packages[1].cpus.to_string(), "4-7,12-15");
    assert_eq!(machine.nodes.len(), 2);
    assert_eq!(machine.nodes[0].memory_bytes, Some(131_960_832 << 10));
    assert_eq!(machine.cores.len(), 8);
    assert_eq!(machine.cores[5].cpus.to_string(), "5,13");
    assert_eq!((machine.cores[5].package, machine.cores[5].node), (Some(1), Some(1)));
    assert!(machine.cores.iter().all(|core| core.kind == CoreKind::Uniform));
    // L1 and L2 per core, L3 per socket.
    assert_eq!(machine.caches.len(), 8 + 8 + 2);
    assert_eq!(machine.cache_bytes(3), Some(48 << 20));
    assert_eq!(machine.caches[0].ways, Some(12));
    assert_eq!(machine.virtualisation.kind, VirtualKind::BareMetal);
    assert_eq!(machine.counters.state, CounterState::Present);
    assert_eq!(machine.counters.sources, ["cpu"]);
    assert_eq!(machine.counters.tier, EvidenceTier::A);
    assert_eq!(machine.huge_pages.transparent, Transparent::Always);
    assert_eq!(machine.huge_pages.reserved[0].pages, 512);
}

#[test]
fn control_groups_of_version_two_narrow_the_server() {
    let machine = machine("two-socket-smt-server");
    assert_eq!(machine.cpus.allowed.to_string(), "0-3,8-11");
    // Limits of the parent hold for the child that has none.
    assert_eq!(machine.cpus.quota, Some(4.0));
    assert_eq!(machine.memory.cgroup_limit_bytes, Some(16 * GIB));
    // 16 GiB, less 5 used, of which 1 is cold file cache that would be dropped.
    assert_eq!(machine.memory.allowed_bytes, Some(12 * GIB));
    assert_eq!(machine.memory.available_bytes, Some(220 * GIB));
}

#[test]
fn threads_get_cores_before_siblings() {
    let server = machine("two-socket-smt-server");
    assert_eq!(server.cpus_for(4).unwrap(), [0, 1, 2, 3]);
    assert_eq!(server.cpus_for(6).unwrap(), [0, 1, 2, 3, 8, 9]);
    assert_eq!(server.sibling_pair(), Some((0, 8)));
    let message = server.cpus_for(9).unwrap_err().to_string();
    assert_eq!(message, "9 threads need as many CPUs, and only 0-3,8-11 are allowed: use fewer");
    // Strong cores, then small ones, then second siblings.
    let laptop = machine("hybrid-laptop");
    assert_eq!(laptop.cpus_for(8).unwrap(), [0, 2, 4, 5, 6, 7, 1, 3]);
}

#[test]
fn hybrid_laptop() {
    let machine = machine("hybrid-laptop");
    assert_eq!(machine.smt, Smt::On);
    let cores: Vec<(String, CoreKind)> =
        machine.cores.iter().map(|core| (core.cpus.to_string(), core.kind)).collect();
    assert_eq!(cores[0], ("0-1".to_owned(), CoreKind::Performance));
    assert_eq!(cores[2], ("4".to_owned(), CoreKind::Efficiency));
    assert_eq!(cores.len(), 6);
    let shared = machine.caches.iter().find(|cache| cache.level == 2 && cache.cpus.contains(5));
    assert_eq!(shared.unwrap().cpus.to_string(), "4-7");
    assert_eq!(machine.cache_bytes(3), Some(12 << 20));
    assert_eq!(machine.counters.state, CounterState::Forbidden);
    assert_eq!(machine.counters.tier, EvidenceTier::C);
    assert!(machine.counters.reason.contains("perf_event_paranoid"));
    assert_eq!(machine.memory.cgroup_limit_bytes, None);
    assert_eq!(machine.memory.allowed_bytes, Some(9 * GIB));
}

#[test]
fn arm_server_without_smt() {
    let machine = machine("arm-server");
    assert_eq!(machine.architecture, "aarch64");
    assert_eq!(machine.processor.as_deref(), Some("ARM implementer 0x41, part 0xd0c"));
    assert_eq!(machine.smt, Smt::None);
    assert_eq!(machine.cores.len(), 4);
    assert!(machine.packages.is_empty(), "-1 is not a package");
    assert_eq!(machine.cache_bytes(2), Some(1 << 20));
    assert_eq!(machine.cache_bytes(3), None);
    assert_eq!(machine.tlb.source, TlbSource::Unknown);
    // A cloud's name on bare metal does not make it virtual, but nothing proves that it isn't.
    assert_eq!(machine.virtualisation.kind, VirtualKind::Unknown);
    assert_eq!(machine.counters.sources, ["armv8_pmuv3_0"]);
    assert_eq!(machine.counters.tier, EvidenceTier::B);
    assert_eq!(machine.sibling_pair(), None);
}

#[test]
fn arm_guest_of_a_device_tree() {
    let machine = machine("arm-guest");
    assert_eq!(machine.virtualisation.kind, VirtualKind::Virtual);
    assert_eq!(machine.virtualisation.hypervisor.as_deref(), Some("QEMU"));
    assert_eq!(machine.counters.sources, ["armv8_pmuv3"]);
    assert_eq!(machine.counters.tier, EvidenceTier::B);
    assert!(!machine.counters.watchdog, "it is on, and counts nothing");
}

#[test]
fn a_watchdog_that_counts_on_arm_needs_interrupts_for_it() {
    let machine = |cmdline: &str| {
        let manifest = format!(
            "sys/bus/event_source/devices/armv8_pmuv3_0/cpus = 0\n\
             proc/sys/kernel/perf_event_paranoid = 0\n\
             proc/sys/kernel/nmi_watchdog = 1\nproc/cmdline = {cmdline}\n"
        );
        Machine::read(&Fixture::from_text(&manifest).root())
    };
    assert!(!machine("quiet").counters.watchdog);
    assert!(machine("quiet irqchip.gicv3_pseudo_nmi=1").counters.watchdog);
}

#[test]
fn smt_switched_off_in_a_container_with_version_one() {
    let machine = machine("smt-switched-off");
    assert_eq!(machine.smt, Smt::Off);
    assert_eq!(machine.cpus.present.to_string(), "0-7");
    assert_eq!(machine.cpus.online.to_string(), "0-3");
    assert_eq!(machine.cpus.allowed.to_string(), "1-2");
    assert_eq!(machine.cpus.quota, Some(1.5));
    assert_eq!(machine.memory.cgroup_limit_bytes, Some(2 * GIB));
    assert_eq!(machine.memory.allowed_bytes, Some(2 * GIB - (384 << 20)));
    assert_eq!(machine.huge_pages.transparent, Transparent::Never);
    // Privilege outweighs a paranoid setting.
    assert_eq!(machine.counters.tier, EvidenceTier::A);
    assert_eq!(machine.caches.iter().filter(|cache| cache.level == 3).count(), 2);
}

#[test]
fn a_virtual_machine_that_hides_everything() {
    let machine = machine("vm-that-hides-everything");
    assert_eq!(machine.cpus.online.to_string(), "0-1");
    assert_eq!(machine.smt, Smt::Unknown);
    assert_eq!(machine.cores.len(), 2);
    assert!(machine.packages.is_empty() && machine.nodes.is_empty() && machine.caches.is_empty());
    assert_eq!(machine.virtualisation.kind, VirtualKind::Virtual);
    assert_eq!(machine.virtualisation.hypervisor, None);
    assert_eq!(machine.counters.state, CounterState::HiddenByVirtualMachine);
    assert_eq!(machine.counters.tier, EvidenceTier::C);
    assert_eq!(machine.huge_pages.transparent, Transparent::Unknown);
    // No MemAvailable: the free memory is a safe guess.
    assert_eq!(machine.memory.allowed_bytes, Some(1_024_000 << 10));
    assert_eq!(machine.tlb.source, TlbSource::Unknown);
}

#[test]
fn capacities_tell_small_cores_and_favoured_ones_are_not_small() {
    let with = |capacities: [u32; 4]| {
        let capacity = |(cpu, capacity): (usize, &u32)| {
            format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity = {capacity}\n")
        };
        let lines: String = capacities.iter().enumerate().map(capacity).collect();
        let fixture = Fixture::from_text(&format!("sys/devices/system/cpu/online = 0-3\n{lines}"));
        let machine = Machine::read(&fixture.root());
        machine.cores.iter().map(|core| core.kind).collect::<Vec<_>>()
    };
    let (strong, small) = (CoreKind::Performance, CoreKind::Efficiency);
    assert_eq!(with([446, 446, 1024, 1024]), [small, small, strong, strong]);
    assert_eq!(with([1024, 1010, 980, 990]), [CoreKind::Uniform; 4]);
}

#[test]
fn a_container_sees_its_own_group_at_the_mount_point() {
    // Version 2 with a name space of its own: the group is the root of what is mounted. A version 1
    // hierarchy beside it has only the controller it was mounted with.
    let fixture = Fixture::from_text(
        "sys/devices/system/cpu/online = 0-7\n\
         proc/meminfo = MemTotal: 8388608 kB\\nMemAvailable: 8000000 kB\n\
         proc/self/cgroup = 4:memory:/docker/12ab\\n0::/\n\
         proc/self/mountinfo = 30 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\\n\
         31 29 0:27 /docker/12ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         sys/fs/cgroup/unified/cpuset.cpus.effective = 2-3\n\
         sys/fs/cgroup/unified/cpu.max = 150000 100000\n\
         sys/fs/cgroup/memory/memory.limit_in_bytes = 1073741824\n\
         sys/fs/cgroup/memory/memory.usage_in_bytes = 73741824\n",
    );
    let machine = Machine::read(&fixture.root());
    assert_eq!(machine.cpus.allowed.to_string(), "2-3");
    assert_eq!(machine.cpus.quota, Some(1.5));
    assert_eq!(machine.memory.cgroup_limit_bytes, Some(GIB));
    assert_eq!(machine.memory.allowed_bytes, Some(1_000_000_000));
}

#[test]
fn an_empty_root_and_garbage_are_unknown_not_errors() {
    let nothing = Machine::read(&Fixture::from_text("").root());
    assert!(nothing.cpus.online.is_empty());
    assert_eq!(nothing.architecture, "unknown");
    assert_eq!(nothing.counters.state, CounterState::NoEventSource);
    let garbage = Fixture::from_text(
        "sys/devices/system/cpu/online = 0-zebra\n\
         proc/meminfo = MemTotal: many kB\n\
         proc/self/cgroup = nonsense\\n0:\\n0::/../../..\n\
         proc/self/mountinfo = short\\n1 2 3 / /sys/fs/cgroup rw - cgroup2\n\
         sys/fs/cgroup/memory.max = -5\n\
         sys/devices/system/cpu/cpu0/cache/index0/size = 99999999999999999999K\n\
         sys/devices/system/node/nodeX/cpulist = 0\n\
         proc/cpuinfo = processor : 0\\nprocessor : 99999999999999999999999\n",
    );
    let machine = Machine::read(&garbage.root());
    assert_eq!(machine.cpus.online.to_string(), "0");
    assert_eq!(machine.memory.total_bytes, None);
    assert_eq!(machine.memory.cgroup_limit_bytes, None);
}

#[test]
fn a_root_that_is_not_there_is_refused() {
    let message = Sysroot::at("/no/such/machine".as_ref()).unwrap_err().to_string();
    assert_eq!(message, "no directory /no/such/machine: give one that holds proc/ and sys/");
}

#[test]
fn descriptions_survive_json() {
    for name in ["two-socket-smt-server", "hybrid-laptop", "vm-that-hides-everything"] {
        let machine = machine(name);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}

#[test]
fn fingerprints_tell_machines_apart_and_ignore_what_runs_on_them() {
    let names = ["two-socket-smt-server", "hybrid-laptop", "arm-server", "smt-switched-off"];
    let mut fingerprints: Vec<String> =
        names.iter().map(|name| machine(name).fingerprint()).collect();
    let mut busy = machine("hybrid-laptop");
    busy.memory.available_bytes = Some(GIB);
    busy.memory.allowed_bytes = Some(GIB);
    assert_eq!(busy.fingerprint(), fingerprints[1]);
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), names.len());
}

#[test]
fn this_machine_is_consistent() {
    let here = Machine::here();
    assert!(!here.cpus.allowed.is_empty());
    let inside = here.cpus.allowed.intersection(&here.cpus.online);
    assert_eq!(inside, here.cpus.allowed);
    assert!(here.memory.allowed_bytes.unwrap() <= here.memory.total_bytes.unwrap());
    assert_eq!(here.cpus_for(here.cpus.allowed.len()).unwrap().len(), here.cpus.allowed.len());
}
