//! `attr.config`: how the kernel's sources want an event written.
//!
//! ```text
//!   intel   event 0-7           umask 8-15   edge 18   any 21   inv 23   cmask 24-31
//!   amd     event 0-7, 32-35    umask 8-15   edge 18            inv 23   cmask 24-31
//!   arm     event 0-15
//! ```
//!
//! As in `/sys/bus/event_source/devices/cpu/format`, and in the kernel's arch/x86/events/ and
//! drivers/perf/arm_pmuv3.c.

use serde::Deserialize;

/// The manufacturer's register layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Layout {
    Intel,
    Amd,
    Arm,
    /// The kernel's own events, without registers.
    Software,
}

/// An event as a manufacturer lists it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) event: u64,
    pub(super) umask: u64,
    /// Counts cycles with at least this many.
    pub(super) cmask: u64,
    /// Counts beginnings.
    pub(super) edge: bool,
    /// Counts for any sibling.
    pub(super) any: bool,
    /// Counts cycles with less than `cmask`.
    pub(super) inv: bool,
    /// As they stand in `config`.
    pub(super) bits: u64,
}

const EDGE: u64 = 1 << 18;
const ANY: u64 = 1 << 21;
const INV: u64 = 1 << 23;

/// The configuration; an error if a field does not fit.
pub(super) fn config(layout: Layout, raw: &Raw) -> Result<u64, String> {
    let event = match layout {
        Layout::Intel => field("event", raw.event, 0xff)?,
        Layout::Amd => {
            let event = field("event", raw.event, 0xfff)?;
            (event & 0xff) | ((event >> 8) << 32)
        }
        Layout::Arm => field("event", raw.event, 0xffff)?,
        Layout::Software => return Err("the kernel counts no events of a processor".to_owned()),
    };
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    let masks = (field("umask", raw.umask, 0xff)? << 8) | (field("cmask", raw.cmask, 0xff)? << 24);
    let fields = masks | flag(raw.edge, EDGE) | flag(raw.any, ANY) | flag(raw.inv, INV);
    if layout == Layout::Arm && fields != 0 {
        return Err("an event of Arm has a number only".to_owned());
    }
    if layout == Layout::Amd && raw.any {
        return Err("AMD counts for one sibling only".to_owned());
    }
    let config = event | fields;
    if config & raw.bits != 0 {
        return Err(format!("`bits` {:#x} are those of other fields", config & raw.bits));
    }
    Ok(config | raw.bits)
}

fn field(name: &str, value: u64, max: u64) -> Result<u64, String> {
    match value <= max {
        true => Ok(value),
        false => Err(format!("`{name}` is {value:#x}, and at most {max:#x} fits")),
    }
}
