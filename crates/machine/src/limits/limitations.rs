//! Limitations of a measurement, in words: a figure that is missing must not be taken for one
//! that is fine.

use crate::machine::Machine;
use crate::memory::Transparent;
use crate::pages::Pages;

use super::Limits;
use super::measure::THREADS_MAX;

/// Less of the memory than this on huge pages deserves a word.
const HUGE_SHARE_GOOD: f64 = 0.95;

/// Less of the time than this on the CPU: the machine had other work.
const PRESENCE_GOOD: f64 = 0.9;

pub(super) fn of(machine: &Machine, limits: &Limits) -> Vec<String> {
    let mut limitations = pages(machine, limits);
    let mut say = |is_so: bool, words: &str| {
        if is_so {
            limitations.push(words.to_owned());
        }
    };
    let sizes = limits.cache_sizes;
    say(sizes.l2_bytes.is_none(), "the size of L2: the latency curve has no such knee");
    say(
        sizes.useful_llc_bytes.is_none(),
        "the size of the last-level cache: the latency curve has no such knee",
    );
    say(machine.allowed_cpus().len() < 2, "siblings: only one CPU is allowed");
    let busy = limits.siblings.pairs.iter().any(|pair| pair.throughput_ratio.is_none());
    say(busy, "whether some CPUs share a core: the machine was too busy to tell");
    let nodes = machine.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    say(nodes > 1, "memory of other NUMA nodes: all of it lay near the first CPU");
    let too_many = machine.allowed_cpus().len() > THREADS_MAX;
    say(too_many, &format!("more than {THREADS_MAX} threads"));
    let presence = format!(
        "what this machine can do when it is idle: other work took its CPUs for {:.0} % of the \
         time; measure again with workahead limits --fresh",
        (1.0 - limits.presence) * 100.0
    );
    say(limits.presence < PRESENCE_GOOD, &presence);
    if let Some(quota) = machine.cpus.quota {
        let words = format!("the wall time of threads: a quota of {quota} CPU seconds per second");
        say(true, &words);
    }
    limitations
}

/// Of the pages.
fn pages(machine: &Machine, limits: &Limits) -> Vec<String> {
    let has_huge = limits.lines.iter().any(|point| point.pages == Pages::Huge);
    let mut limitations = Vec::new();
    match limits.huge_share {
        _ if machine.huge_pages.transparent == Transparent::Never => limitations.push(
            "huge pages: the system never gives them; write madvise to \
             /sys/kernel/mm/transparent_hugepage/enabled"
                .to_owned(),
        ),
        _ if !has_huge => limitations
            .push("huge pages: asked for and not given; memory may be fragmented".to_owned()),
        Some(share) if share < HUGE_SHARE_GOOD => limitations.push(format!(
            "huge pages alone: only {:.0} % of the memory that asked for them got them",
            share * 100.0
        )),
        Some(_) => {}
        None => limitations
            .push("whether memory lay on huge pages: the system does not tell".to_owned()),
    }
    if !has_huge {
        limitations.push("caches apart from the TLB: the curve is one of 4 KiB pages".to_owned());
    }
    limitations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::sample;

    /// A machine of which everything can be shown.
    fn plain() -> Machine {
        let mut machine = Machine::here();
        machine.huge_pages.transparent = Transparent::Madvise;
        machine.cpus.allowed = (0..2).collect();
        machine.cpus.quota = None;
        machine.nodes.clear();
        machine
    }

    fn complete() -> Limits {
        let mut limits = sample::limits();
        limits.cache_sizes.useful_llc_bytes = Some(1 << 24);
        limits
    }

    fn only(machine: &Machine, limits: &Limits) -> String {
        let limitations = of(machine, limits);
        assert_eq!(limitations.len(), 1, "{limitations:?}");
        limitations[0].clone()
    }

    #[test]
    fn of_a_complete_measurement_there_is_nothing_to_say() {
        assert_eq!(of(&plain(), &complete()), Vec::<String>::new());
    }

    #[test]
    fn missing_huge_pages_are_said_with_the_remedy() {
        let mut machine = plain();
        let mut limits = complete();
        limits.huge_share = Some(0.5);
        assert!(only(&machine, &limits).contains("only 50 %"));
        limits.huge_share = Some(0.0);
        limits.lines.retain(|point| point.pages == Pages::Small);
        let limitations = of(&machine, &limits);
        assert!(
            limitations[0].contains("not given") && limitations[1].contains("TLB"),
            "{limitations:?}"
        );
        machine.huge_pages.transparent = Transparent::Never;
        assert!(of(&machine, &limits)[0].contains("write madvise"));
    }

    #[test]
    fn missing_cache_sizes_cpus_and_nodes_are_said() {
        let mut limits = complete();
        limits.cache_sizes.useful_llc_bytes = None;
        assert!(only(&plain(), &limits).contains("last-level"));
        let mut machine = plain();
        machine.cpus.allowed = [3].into_iter().collect();
        assert!(only(&machine, &complete()).contains("only one CPU"));
        machine.cpus.allowed = (0..200).collect();
        assert!(only(&machine, &complete()).contains("64 threads"));
        let busy = Limits { presence: 0.6, ..complete() };
        assert!(only(&plain(), &busy).contains("for 40 %"));
        let mut machine = plain();
        machine.cpus.quota = Some(1.5);
        assert!(only(&machine, &complete()).contains("1.5 CPU seconds"));
    }
}
