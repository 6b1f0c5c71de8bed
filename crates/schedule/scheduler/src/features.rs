//! The kernel's features that the scheduler uses, looked up in its type information (BTF) before
//! anything is loaded: a missing part is named, and not one in a verifier's log.

use libbpf_rs::btf::{Btf, types};

use crate::error::Error;

/// Where a part is in the kernel's types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A function for BPF programs, by one of its names.
    Function(&'static [&'static str]),
    /// A member of a struct.
    Member(&'static str, &'static str),
}

/// A part of the kernel, and what is lost without it; nothing goes without a part that has no loss.
struct Part {
    place: Place,
    loss: Option<&'static str>,
}

const fn needed(names: &'static [&'static str]) -> Part {
    Part { place: Place::Function(names), loss: None }
}

const fn helpful(place: Place, loss: &'static str) -> Part {
    Part { place, loss: Some(loss) }
}

const PARTS: [Part; 15] = [
    needed(&["scx_bpf_create_dsq"]),
    needed(&["scx_bpf_select_cpu_dfl"]),
    needed(&["scx_bpf_dsq_insert", "scx_bpf_dispatch"]),
    needed(&["scx_bpf_dsq_insert_vtime", "scx_bpf_dispatch_vtime"]),
    needed(&["scx_bpf_dsq_move", "scx_bpf_dispatch_from_dsq"]),
    needed(&["scx_bpf_dsq_move_vtime", "scx_bpf_dispatch_vtime_from_dsq"]),
    needed(&["scx_bpf_dsq_move_set_slice", "scx_bpf_dispatch_from_dsq_set_slice"]),
    needed(&["scx_bpf_dsq_move_to_local", "scx_bpf_consume"]),
    needed(&["scx_bpf_dsq_nr_queued"]),
    needed(&["bpf_iter_scx_dsq_new"]),
    needed(&["scx_bpf_kick_cpu"]),
    helpful(Place::Function(&["scx_bpf_now"]), "a slower clock (Linux 6.14 has a faster one)"),
    helpful(Place::Member("task_struct", "sched_task_group"), CGROUPS),
    helpful(Place::Member("task_group", "shares"), CGROUPS),
    helpful(
        Place::Member("task_group", "cfs_bandwidth"),
        "cpu.max of control groups isn't kept (CONFIG_CFS_BANDWIDTH)",
    ),
];

const CGROUPS: &str = "cpu.weight of control groups isn't kept (CONFIG_FAIR_GROUP_SCHED)";

/// The losses on this kernel, a line each.
///
/// # Errors
///
/// [`Error::Lacks`], with the first part without which nothing goes.
pub(crate) fn losses() -> Result<Vec<&'static str>, Error> {
    let Ok(btf) = Btf::from_vmlinux() else {
        return Err(Error::Lacks { part: "type information (CONFIG_DEBUG_INFO_BTF)" });
    };
    losses_by(|place| match place {
        Place::Function(names) => {
            names.iter().any(|name| btf.type_by_name::<types::Func<'_>>(name).is_some())
        }
        Place::Member(of, name) => btf
            .type_by_name::<types::Struct<'_>>(of)
            .is_some_and(|of| of.iter().any(|member| member.name.is_some_and(|it| it == name))),
    })
}

fn losses_by(has: impl Fn(Place) -> bool) -> Result<Vec<&'static str>, Error> {
    let mut losses = Vec::new();
    for part in PARTS.iter().filter(|part| !has(part.place)) {
        match (part.loss, part.place) {
            (Some(loss), _) if losses.contains(&loss) => {}
            (Some(loss), _) => losses.push(loss),
            (None, Place::Function(names)) => return Err(Error::Lacks { part: names[0] }),
            (None, Place::Member(_, name)) => return Err(Error::Lacks { part: name }),
        }
    }
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_everything_loses_nothing() {
        assert_eq!(losses_by(|_| true).unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn each_part_that_is_missing_is_named() {
        for missing in &PARTS {
            let said = losses_by(|place| place != missing.place);
            match (missing.loss, missing.place) {
                (Some(loss), _) => assert_eq!(said.unwrap(), [loss]),
                (None, Place::Function(names)) => {
                    let said = said.unwrap_err().to_string();
                    assert!(said.contains(names[0]) && said.contains("6.12"), "{said}");
                }
                (None, Place::Member(..)) => unreachable!("no struct is needed"),
            }
        }
    }

    #[test]
    fn either_name_of_a_function_will_do() {
        let old = |place| match place {
            Place::Function(names) => names.last() != Some(&"scx_bpf_now"),
            Place::Member(..) => false,
        };
        let losses = losses_by(old).unwrap();
        assert_eq!(losses.len(), 3, "a loss that has two reasons is one: {losses:?}");
    }
}
