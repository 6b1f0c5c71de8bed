//! The scheduler from its start to its end: attached, watched, and attached again when a CPU came
//! or went.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workahead_machine::Machine;

use crate::error::Error;
use crate::live::{ExitInfo, Scheduler};
use crate::roles::Roles;
use crate::settings::Settings;
use crate::stats::Stats;

/// An event of a session.
#[derive(Debug)]
pub enum Event<'a> {
    /// The tasks are scheduled by it from now on; what is lost on this kernel, a line each.
    Attached(&'a [&'static str]),
    /// Counts of the last second, and since it was attached.
    Counted(&'a Stats, &'a Stats),
    /// The tasks are the kernel's again.
    Detached(&'a ExitInfo),
}

/// How often it looks whether it is to leave.
const LOOK: Duration = Duration::from_millis(100);
/// Looks between two reports.
const LOOKS: u32 = 10;
/// A CPU that comes or goes takes its time.
const PAUSE: Duration = Duration::from_millis(500);

/// Attaches, tells what happens, and stays until `leave` is set or somebody asks it to stop. Roles
/// that aren't given are the paper's: one master for all CPUs that there are.
///
/// # Errors
///
/// Those of attaching; [`Error::TakenOver`] when the kernel ended it; whatever `tell` returns.
pub fn run<E: From<Error>>(
    settings: &Settings,
    roles: Option<&Roles>,
    leave: &AtomicBool,
    mut tell: impl FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let roles = match roles {
            Some(roles) => roles.clone(),
            None => Roles::whole_machine(&Machine::here())?,
        };
        let scheduler = Scheduler::attach(settings, &roles)?;
        tell(Event::Attached(scheduler.losses()))?;
        watch(&scheduler, leave, &mut tell)?;
        let ended = scheduler.stop()?.unwrap_or_default();
        tell(Event::Detached(&ended))?;
        if !ended.again {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns when it is to be detached, by any process, or may be attached again.
fn watch<E: From<Error>>(
    scheduler: &Scheduler,
    leave: &AtomicBool,
    tell: &mut impl FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut before = Stats::default();
    for look in 1_u32.. {
        if leave.load(Ordering::Relaxed) || scheduler.remote().is_stop_requested()? {
            break;
        }
        match scheduler.remote().ended()? {
            Some(ended) if ended.again => break,
            Some(ExitInfo { reason, message, .. }) => {
                return Err(Error::TakenOver { reason, message }.into());
            }
            None => {}
        }
        std::thread::sleep(LOOK);
        if look.is_multiple_of(LOOKS) {
            let now = scheduler.remote().stats()?;
            tell(Event::Counted(&now.since(&before), &now))?;
            before = now;
        }
    }
    Ok(())
}
