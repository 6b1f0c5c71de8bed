//! The scheduler in the kernel: attach, settings, statistics, detach.
//!
//! It lives as long as the file descriptor in [`Scheduler`]. When the process ends, the kernel's
//! own scheduler takes the tasks back.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel};

use crate::error::Error;
use crate::features::losses;
use crate::kernel::{enabled, running};
use crate::roles::Roles;
use crate::service::Service;
use crate::settings::{Key, Settings};
use crate::stats::Stats;
use crate::wire::{RawExitInfo, RawRole, RawSettings, RawStats};

/// The BPF programs, for any kernel (CO-RE).
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o")).as_slice();

/// The programs that count under any scheduler.
const COUNTING: [&str; 3] = ["workahead_switched", "workahead_woken", "workahead_born"];

/// An injected fault, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The scheduler reports an error.
    Error,
    /// It loses tasks, until the kernel's watchdog notices.
    Stall,
}

/// The end of a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// The kernel's reason: "unregistered from user space", "runnable task stall" …
    pub reason: String,
    /// Further message.
    pub message: String,
    /// Whether it may be attached again at once: a CPU was added or removed.
    pub again: bool,
}

/// `SCX_ECODE_ACT_RESTART`.
const AGAIN: i64 = 1 << 48;

/// A program of the scheduler, with the verifier's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProgram {
    /// Its name, truncated by the kernel.
    pub name: String,
    /// Instructions verified.
    pub instructions: u32,
}

/// The maps of a running scheduler, in this process or another: settings and statistics.
#[derive(Debug)]
pub struct Remote {
    settings: MapHandle,
    roles: MapHandle,
    stats: MapHandle,
    bonuses: MapHandle,
    tags: MapHandle,
    ended: MapHandle,
}

/// A scheduler that this process attached. Detached when dropped.
#[derive(Debug)]
pub struct Scheduler {
    // Dropped in this order: first the scheduler, then the counting.
    link: Link,
    observer: Observer,
}

/// Counts under any scheduler: switches within aggregation groups, groups that run at the same
/// time, and how long threads wait. Ends when dropped.
#[derive(Debug)]
pub struct Observer {
    _counts: Vec<Link>,
    remote: Remote,
    object: Object,
    losses: Vec<&'static str>,
}

/// The last messages of libbpf and the verifier.
static WORDS: Mutex<String> = Mutex::new(String::new());

fn listen(_: PrintLevel, words: String) {
    let mut kept = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_str(&words);
    // The last lines of a verifier's long log name the error.
    if kept.len() > 4096 {
        let cut = (kept.len() - 4096..kept.len()).find(|at| kept.is_char_boundary(*at));
        kept.drain(..cut.unwrap_or(0));
    }
}

fn refused(what: &'static str, error: &libbpf_rs::Error) -> Error {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
        return Error::NotAllowed;
    }
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let last: Vec<&str> = words.lines().rev().take(6).collect();
    let said: Vec<&str> = last.into_iter().rev().map(str::trim).collect();
    Error::Refused { what, says: format!("{error}; {}", said.join(" | ")) }
}

/// Programs that the kernel has, and what is lost on it.
struct LoadedPrograms {
    object: Object,
    remote: Remote,
    losses: Vec<&'static str>,
}

/// Loads and configures the programs, without attaching them.
fn load(settings: &Settings, roles: &Roles) -> Result<LoadedPrograms, Error> {
    settings.check()?;
    let losses = losses()?;
    libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    let cpus = libbpf_rs::num_possible_cpus().map_err(|error| refused("count CPUs", &error))?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let roles = roles.to_raw(cpus)?;

    let load = |error: libbpf_rs::Error| refused("load the scheduler", &error);
    let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(load)?;
    for mut map in open.maps_mut() {
        if ["wa_roles", "wa_stats", "wa_cpus"].iter().any(|name| map.name() == *name) {
            map.set_max_entries(cpus).map_err(load)?;
        }
    }
    let object = open.load().map_err(load)?;
    let remote = Remote::of(&object)?;
    remote.write(&settings.to_raw(cpus))?;
    remote.write_roles(&roles)?;
    Ok(LoadedPrograms { object, remote, losses })
}

fn not_attached(error: &libbpf_rs::Error) -> Error {
    match running() {
        Ok(Some(name)) => Error::Taken { name },
        _ => refused("attach the scheduler", error),
    }
}

impl Scheduler {
    /// Loads the programs and attaches them to all tasks of the machine.
    ///
    /// # Errors
    ///
    /// [`Error::NoSchedExt`], [`Error::Taken`], [`Error::NotAllowed`], an invalid setting or role,
    /// or the kernel's error.
    pub fn attach(settings: &Settings, roles: &Roles) -> Result<Self, Error> {
        if let Some(name) = running()? {
            return Err(Error::Taken { name });
        }
        let mut observer = Observer::of(load(settings, roles)?)?;
        let mut maps = observer.object.maps_mut();
        let ours = maps.find(|map| map.name() == "workahead");
        let mut ours = ours.expect("bpf/scheduler.bpf.c has the operations");
        let link = ours.attach_struct_ops().map_err(|error| not_attached(&error))?;
        drop((maps, ours));
        Ok(Self { link, observer })
    }

    /// Access to settings and statistics.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.observer.remote
    }

    /// The losses on this kernel, a line each.
    pub(crate) fn losses(&self) -> &[&'static str] {
        &self.observer.losses
    }

    /// Detaches, and returns how the scheduler ended.
    ///
    /// # Errors
    ///
    /// If the kernel can't report it.
    pub fn stop(self) -> Result<Option<ExitInfo>, Error> {
        let Self { link, observer } = self;
        drop(link);
        observer.remote.ended()
    }
}

impl Observer {
    /// Counts, with aggregation groups by a key, under the scheduler that runs, whose it may be.
    /// Pairs of CPUs of a set of `roles` are counted for themselves, too.
    ///
    /// # Errors
    ///
    /// [`Error::NoSchedExt`], [`Error::NotAllowed`], an invalid role, or the kernel's error.
    pub fn attach(key: Key, roles: &Roles) -> Result<Self, Error> {
        running()?;
        let settings = Settings { key, survey: true, ..Settings::default() };
        Self::of(load(&settings, roles)?)
    }

    fn of(LoadedPrograms { object, remote, losses }: LoadedPrograms) -> Result<Self, Error> {
        let counting = |name: &std::ffi::OsStr| COUNTING.iter().any(|counts| name == *counts);
        let counts: Result<Vec<Link>, Error> = object
            .progs_mut()
            .filter(|program| counting(program.name()))
            .map(|program| program.attach_trace().map_err(|error| not_attached(&error)))
            .collect();
        Ok(Self { _counts: counts?, remote, object, losses })
    }

    /// Counts so far, without decisions.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.remote.stats()
    }
}

impl Remote {
    fn of(object: &Object) -> Result<Self, Error> {
        let handle = |name: &str| {
            let map = object.maps().find(|map| map.name() == name);
            let map = map.expect("bpf/state.h has this map");
            MapHandle::try_from(&map).map_err(|error| refused("hold a map", &error))
        };
        Ok(Self {
            settings: handle("wa_settings")?,
            roles: handle("wa_roles")?,
            stats: handle("wa_stats")?,
            bonuses: handle("wa_bonuses")?,
            tags: handle("wa_tags")?,
            ended: handle("wa_ended")?,
        })
    }

    /// The scheduler attached by another process.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`] where none of ours runs, [`Error::NotAllowed`] without the rights.
    pub fn find() -> Result<Self, Error> {
        if !running()?.is_some_and(|name| name.starts_with("workahead")) {
            return Err(Error::NotRunning);
        }
        // The newest of each name: an earlier one may still be detaching.
        let mut known: Vec<(String, u32)> = MapInfoIter::default()
            .map(|info| (info.name.to_string_lossy().into_owned(), info.id))
            .filter(|(name, _)| name.starts_with("wa_"))
            .collect();
        known.sort();
        if known.is_empty() {
            return Err(Error::NotAllowed);
        }
        let handle = |name: &str| {
            let id = known.iter().rfind(|(known, _)| known == name).ok_or(Error::NotRunning)?.1;
            MapHandle::from_map_id(id).map_err(|error| refused("hold a map", &error))
        };
        Ok(Self {
            settings: handle("wa_settings")?,
            roles: handle("wa_roles")?,
            stats: handle("wa_stats")?,
            bonuses: handle("wa_bonuses")?,
            tags: handle("wa_tags")?,
            ended: handle("wa_ended")?,
        })
    }

    fn read(&self) -> Result<RawSettings, Error> {
        entry(&self.settings, 0)
    }

    fn write(&self, raw: &RawSettings) -> Result<(), Error> {
        put(&self.settings, &0_u32.to_ne_bytes(), bytemuck::bytes_of(raw))
    }

    fn write_roles(&self, roles: &[RawRole]) -> Result<(), Error> {
        for (cpu, role) in (0_u32..).zip(roles) {
            put(&self.roles, &cpu.to_ne_bytes(), bytemuck::bytes_of(role))?;
        }
        Ok(())
    }

    /// The current settings.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings::from_raw(&self.read()?))
    }

    /// Replaces all settings, from the next decision on.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] where one is out of range, or the kernel's words.
    pub fn set(&self, settings: &Settings) -> Result<(), Error> {
        settings.check()?;
        let before = self.read()?;
        let raw = settings.to_raw(before.cpus);
        let RawSettings { stop, fault, tags, .. } = before;
        self.write(&RawSettings { stop, fault, tags, ..raw })
    }

    /// Changes the roles of CPUs.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] for a CPU that isn't there, or the kernel's words.
    pub fn set_roles(&self, roles: &Roles) -> Result<(), Error> {
        self.write_roles(&roles.to_raw(self.read()?.cpus)?)
    }

    /// Sets or removes a bonus of a service's own, from the next run of one of its threads on.
    ///
    /// # Errors
    ///
    /// The kernel's words; 1024 services can have one.
    pub fn set_bonus_of(&self, service: Service<'_>, bonus_ns: Option<u64>) -> Result<(), Error> {
        let key = service.number();
        match bonus_ns {
            Some(bonus) => put(&self.bonuses, &key.to_ne_bytes(), &bonus.to_ne_bytes()),
            None => remove(&self.bonuses, &key.to_ne_bytes()),
        }
    }

    /// Gives a tag to a process, and to those that it makes from now on, in place of one that it
    /// has; or takes it.
    ///
    /// # Errors
    ///
    /// The kernel's words; 65 536 processes can have one.
    pub fn set_tag(&self, pid: u32, name: Option<&str>) -> Result<(), Error> {
        let Some(name) = name else { return remove(&self.tags, &pid.to_ne_bytes()) };
        put(&self.tags, &pid.to_ne_bytes(), &Service::Tag(name).number().to_ne_bytes())?;
        self.write(&RawSettings { tags: 1, ..self.read()? })
    }

    /// Counts so far.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn stats(&self) -> Result<Stats, Error> {
        let cpus = self.read()?.cpus;
        let raw: Result<Vec<RawStats>, Error> =
            (0..cpus).map(|cpu| entry(&self.stats, cpu)).collect();
        Ok(Stats::of(&raw?))
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn ended(&self) -> Result<Option<ExitInfo>, Error> {
        let raw: RawExitInfo = entry(&self.ended, 0)?;
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        let ended = ExitInfo {
            reason: text(&raw.reason),
            message: text(&raw.message),
            again: raw.code & AGAIN != 0,
        };
        Ok((raw.kind != 0).then_some(ended))
    }

    /// Requests that its owner detach it.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn ask_to_stop(&self) -> Result<(), Error> {
        let raw = self.read()?;
        self.write(&RawSettings { stop: 1, ..raw })
    }

    /// Whether its detachment was requested.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn is_stop_requested(&self) -> Result<bool, Error> {
        Ok(self.read()?.stop != 0)
    }

    /// Injects a fault: for tests on machines set aside for them.
    ///
    /// # Errors
    ///
    /// The kernel's words.
    pub fn break_it(&self, fault: Fault) -> Result<(), Error> {
        let fault = match fault {
            Fault::Error => 1,
            Fault::Stall => 2,
        };
        let raw = self.read()?;
        self.write(&RawSettings { fault, ..raw })
    }

    /// The programs of the scheduler with the verifier's figures.
    #[must_use]
    pub fn verified() -> Vec<VerifiedProgram> {
        let named = ProgInfoIter::default().map(|info| VerifiedProgram {
            name: info.name.to_string_lossy().into_owned(),
            instructions: info.verified_insns,
        });
        named.filter(|program| program.name.starts_with("workahead")).collect()
    }

    /// Whether one of our schedulers is attached, neither starting nor ending.
    ///
    /// # Errors
    ///
    /// [`Error::NoSchedExt`].
    pub fn is_running() -> Result<bool, Error> {
        Ok(enabled()?.is_some_and(|name| name.starts_with("workahead")))
    }

    /// Whether the kernel's own scheduler runs, and another can be attached.
    ///
    /// # Errors
    ///
    /// [`Error::NoSchedExt`].
    pub fn is_vacant() -> Result<bool, Error> {
        Ok(running()?.is_none())
    }
}

/// An entry of an array. Maps are found by their names, which those of other programs may have.
fn entry<T: bytemuck::AnyBitPattern>(map: &MapHandle, key: u32) -> Result<T, Error> {
    let found = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
    let found = found.map_err(|error| refused("read a map", &error))?;
    let value = found.and_then(|bytes| bytemuck::try_pod_read_unaligned(&bytes).ok());
    value.ok_or_else(|| Error::Refused {
        what: "read a map",
        says: format!(
            "{} is of another program or version: stop what made it",
            map.name().to_string_lossy()
        ),
    })
}

fn put(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|error| refused("change a map", &error))
}

fn remove(map: &MapHandle, key: &[u8]) -> Result<(), Error> {
    match map.delete(key) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(refused("change a map", &error))
        }
        _ => Ok(()),
    }
}
