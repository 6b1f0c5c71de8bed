//! The state of the kernel's sched_ext: which scheduler is attached, and whether one can be.

use crate::error::Error;

const STATE: &str = "/sys/kernel/sched_ext/state";
const NAME: &str = "/sys/kernel/sched_ext/root/ops";

fn state() -> Result<String, Error> {
    let state = std::fs::read_to_string(STATE).map_err(|_| Error::NoSchedExt)?;
    Ok(state.trim().to_owned())
}

/// The sched_ext scheduler that is there, if any; it may be starting or ending.
pub(crate) fn running() -> Result<Option<String>, Error> {
    let state = state()?;
    if state == "disabled" {
        return Ok(None);
    }
    let name = std::fs::read_to_string(NAME).unwrap_or_default();
    Ok(Some(if name.trim().is_empty() { &state } else { name.trim() }.to_owned()))
}

/// The one that has the tasks, neither starting nor ending.
pub(crate) fn enabled() -> Result<Option<String>, Error> {
    let name = running()?;
    Ok(name.filter(|_| state().is_ok_and(|state| state == "enabled")))
}

/// `CAP_SYS_ADMIN` of linux/capability.h: taking the machine's tasks needs it.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Checks before loading whether a scheduler can be attached.
///
/// # Errors
///
/// [`Error::NoSchedExt`], [`Error::Taken`], [`Error::NotAllowed`].
pub fn attachable() -> Result<(), Error> {
    if let Some(name) = running()? {
        return Err(Error::Taken { name });
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    match held {
        Some(held) if held & CAP_SYS_ADMIN == 0 => Err(Error::NotAllowed),
        _ => Ok(()),
    }
}
