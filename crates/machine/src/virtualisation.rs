//! Whether this is a virtual machine.
//!
//! x86 processors have one bit for it (CPUID leaf 1, ECX bit 31, shown as the flag `hypervisor`),
//! which Linux guests see unless the host lies. ARM has none; there the firmware's tables tell, or
//! nothing does.

use serde::{Deserialize, Serialize};

use crate::sysroot::{Sysroot, field};

/// Real hardware or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualisation {
    /// Real hardware or not.
    pub kind: VirtualKind,
    /// The hypervisor, where it identifies itself.
    pub hypervisor: Option<String>,
}

/// Real hardware or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VirtualKind {
    /// A virtual machine.
    Virtual,
    /// Real hardware.
    BareMetal,
    /// Nothing tells.
    Unknown,
}

impl Virtualisation {
    pub(crate) fn read(root: &Sysroot) -> Self {
        let hypervisor = named_by_processor(root)
            .or_else(|| root.text("sys/hypervisor/type"))
            .or_else(|| root.text("proc/device-tree/hypervisor/compatible"))
            .or_else(|| named_by_firmware(root))
            .or_else(|| named_by_device_tree(root));
        let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
        // The bit decides on x86: firmware of a cloud's bare-metal hosts bears the cloud's name.
        let kind = match field(&cpuinfo, "flags") {
            Some(flags) if flags.split(' ').any(|flag| flag == "hypervisor") => {
                VirtualKind::Virtual
            }
            Some(_) => VirtualKind::BareMetal,
            None if hypervisor.is_some() => VirtualKind::Virtual,
            None => VirtualKind::Unknown,
        };
        let hypervisor = hypervisor.filter(|_| kind == VirtualKind::Virtual);
        Self { kind, hypervisor }
    }
}

/// Names that only virtual machines have in their firmware's tables.
fn named_by_firmware(root: &Sysroot) -> Option<String> {
    const VIRTUAL: [(&str, &str); 9] = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("Virtual Machine", "Hyper-V"),
        ("Google Compute Engine", "Google Compute Engine"),
        ("Parallels", "Parallels"),
        ("Apple Virtualization", "Apple Virtualization"),
    ];
    let reported = ["sys_vendor", "product_name"]
        .map(|file| root.text(&format!("sys/class/dmi/id/{file}")).unwrap_or_default())
        .join(" ");
    if reported.contains("Amazon EC2") && !reported.contains("metal") {
        return Some("Amazon EC2".to_owned());
    }
    let known = VIRTUAL.iter().find(|(mark, _)| reported.contains(mark));
    known.map(|(_, name)| (*name).to_owned())
}

/// Without tables of firmware there is a device tree; QEMU's machines have its configuration device
/// in theirs (docs/specs/fw_cfg.rst).
fn named_by_device_tree(root: &Sysroot) -> Option<String> {
    let has_device = root.names("proc/device-tree").iter().any(|name| name.starts_with("fw-cfg@"));
    has_device.then(|| "QEMU".to_owned())
}

/// The hypervisor's signature in CPUID leaf 0x4000_0000; real hardware has no such leaf.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn named_by_processor(root: &Sysroot) -> Option<String> {
    if !root.is_live() {
        return None;
    }
    let reported = raw_cpuid::CpuId::new().get_hypervisor_info()?.identify();
    Some(match reported {
        raw_cpuid::Hypervisor::HyperV => "Hyper-V".to_owned(),
        raw_cpuid::Hypervisor::Unknown(..) => "unknown".to_owned(),
        named => format!("{named:?}"),
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn named_by_processor(_: &Sysroot) -> Option<String> {
    None
}
