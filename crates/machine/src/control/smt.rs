//! Simultaneous multi-threading off, in the two ways that are not the same.
//!
//! *By hot-unplug* (`off-hotplug`) the siblings leave the machine: a core gives one thread all of
//! what it splits between two (reorder buffer, load and store buffers on many), and nothing else
//! runs on the sibling. *By affinity* (`unused-by-affinity`) the siblings stay and only the
//! measured program keeps off them: resources that a core splits may stay split, and the kernel
//! may run others there. Hassanein et al. (2008, section 3) switched it off in the BIOS, which the
//! first is closest to; results carry which one it was.
//!
//! `/sys/devices/system/cpu/smt/control` is described in the kernel's `sysfs-devices-system-cpu`.

use serde::{Deserialize, Serialize};

use super::{Controls, Unsupported, current, lock};
use crate::cgroup;
use crate::cpus::CpuSet;
use crate::machine::Machine;
use crate::sysroot::Sysroot;

/// The values of the axis `smt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmtAxis {
    /// Siblings may be used.
    On,
    /// Siblings are taken out of the machine.
    OffHotplug,
    /// Siblings are there and not used.
    UnusedByAffinity,
}

impl SmtAxis {
    /// All of them.
    pub const ALL: [SmtAxis; 3] = [SmtAxis::On, SmtAxis::OffHotplug, SmtAxis::UnusedByAffinity];

    /// As studies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SmtAxis::On => "on",
            SmtAxis::OffHotplug => "off-hotplug",
            SmtAxis::UnusedByAffinity => "unused-by-affinity",
        }
    }
}

pub(super) const CONTROL: &str = "sys/devices/system/cpu/smt/control";

impl Controls {
    /// Takes the siblings out of the machine. Read the machine again afterwards, and start servers
    /// afterwards: they size themselves by the CPUs they find.
    ///
    /// # Errors
    /// In words, why not.
    pub fn smt_off(&mut self) -> Result<(), Unsupported> {
        let root = lock(&self.held).root.clone();
        match state(&root)?.as_str() {
            "off" | "forceoff" => Ok(()),
            _ => {
                keeps_cpusets(&root)?;
                self.change(CONTROL, "off")
            }
        }
    }

    /// Sees to it that siblings are in the machine.
    ///
    /// # Errors
    /// In words, why not.
    pub fn smt_on(&mut self) -> Result<(), Unsupported> {
        let root = lock(&self.held).root.clone();
        match state(&root)?.as_str() {
            "on" => Ok(()),
            "forceoff" => Err(Unsupported("SMT is switched off until the next boot".to_owned())),
            _ => self.change(CONTROL, "on"),
        }
    }
}

/// Whether siblings could be taken out here, without trying.
///
/// # Errors
/// In words, why not.
pub fn can_switch(root: &Sysroot) -> Result<(), Unsupported> {
    state(root).and_then(|_| keeps_cpusets(root))
}

/// The kernel's state, if it lets anyone switch.
fn state(root: &Sysroot) -> Result<String, Unsupported> {
    let cannot = |why: &str| Err(Unsupported(format!("SMT can't be switched here: {why}")));
    match current(root, CONTROL) {
        None => cannot("this kernel shows no smt/control"),
        Some(state) if state == "notsupported" => {
            cannot("the processor has no siblings, or the host of the virtual machine hides them")
        }
        Some(state) if state == "notimplemented" => {
            cannot("this kernel does not implement it for this processor")
        }
        Some(state) => Ok(state),
    }
}

/// CPU sets of version 1 forget a CPU that goes offline for good (cpuset(7), "Hotplug"): the
/// machine would not be as it was.
fn keeps_cpusets(root: &Sysroot) -> Result<(), Unsupported> {
    let Some(point) = cgroup::mount_point_v1(root, "cpuset") else { return Ok(()) };
    let has_set = |name: &String| root.cpus(&format!("{point}/{name}/cpuset.cpus")).is_some();
    match root.names(&point).into_iter().find(has_set) {
        None => Ok(()),
        Some(group) => Err(Unsupported(format!(
            "SMT can't be switched here: the control group /{point}/{group} (version 1) would lose \
             its CPUs for good"
        ))),
    }
}

/// One logical CPU of every core, for a program that is to leave siblings unused.
///
/// # Errors
/// In words, when there are none to leave unused.
pub fn one_per_core(machine: &Machine) -> Result<CpuSet, Unsupported> {
    if machine.sibling_pair().is_none() {
        let none = "no two CPUs of this machine are seen to share a core: none can be left unused";
        return Err(Unsupported(none.to_owned()));
    }
    let usable = |cpus: &CpuSet| cpus.intersection(machine.allowed_cpus()).first();
    Ok(machine.cores.iter().filter_map(|core| usable(&core.cpus)).collect())
}
