//! A server's process: started, waited for, stopped.
//!
//! ```text
//! start ─► child ─► probe … probe ─► ready ─► stop: signal, wait, kill the whole tree
//!            └─ ended or silent too long: its log's last lines
//! ```

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use workahead_machine::process::{Guard, running_below};
use workahead_machine::scheduling::{self, Policy};
use workahead_machine::{CpuSet, Sysroot, pin};
use workahead_study::engine::Stop;

use super::Error;
use super::home::Home;
use super::log::Log;
use super::program::Product;

/// How often a server that starts or stops is polled: short beside the tenth of a second that
/// either takes.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Recovery after a kill reads and writes again what was not yet in place: minutes on slow disks.
const START_LIMIT: Duration = Duration::from_secs(300);
/// A fast stop writes all that is dirty; a server that needs longer is killed, and recovers at its
/// next start.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// One that is killed ends when the system has taken its memory back.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A program to run.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The CPUs it and all its threads are kept on.
    pub(crate) cpus: Option<&'a CpuSet>,
    /// How they are scheduled.
    pub(crate) policy: Policy,
}

/// The state of a starting server.
pub(crate) enum Probe {
    /// It answers.
    Ready,
    /// Not yet.
    NotYet,
    /// It will never be ready.
    Failed(Error),
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: Log,
    name: &'static str,
    fast: Signal,
    ended: Option<ExitStatus>,
    guard: Guard,
}

impl Process {
    /// Starts a server; it does not answer yet.
    pub(crate) fn start(
        home: &Home,
        product: &Product,
        launch: &Launch<'_>,
    ) -> Result<Process, Error> {
        let (log, mut child) = spawn(home, launch)?;
        let (name, fast) = (product.name, product.fast);
        let guard = let_begin(Guard::over(&mut child, fast), launch)?;
        Ok(Process { child, log, name, fast, ended: None, guard })
    }

    /// Waits until the probe finds it ready.
    pub(crate) fn wait_ready(
        &mut self,
        mut probe: impl FnMut() -> Probe,
        stop: &Stop,
    ) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.poll() {
                let what = format!("{} did not start", self.name);
                return Err(self.log.error(&what, &status.to_string()));
            }
            if stop.is_requested() {
                return Err(Error::Stopped);
            }
            match probe() {
                Probe::Ready => return Ok(()),
                Probe::Failed(error) => return Err(error),
                Probe::NotYet => {}
            }
            if started.elapsed() > START_LIMIT {
                let what = format!("{} does not answer", self.name);
                let how = format!("it runs for {} s", START_LIMIT.as_secs());
                return Err(self.log.error(&what, &how));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The server's first process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All its processes now, the first one first.
    pub(crate) fn pids(&self) -> Vec<u32> {
        running_below(&Sysroot::live(), self.pid())
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.poll().is_none()
    }

    /// The end of its log, as the error of a server that ended by itself.
    pub(crate) fn last_words(&mut self) -> Error {
        match self.poll() {
            Some(status) => self.log.error(&format!("{} ended", self.name), &status.to_string()),
            None => self.log.error(&format!("{} does not answer", self.name), "it still runs"),
        }
    }

    /// Whether its log has these words.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.log.says(words)
    }

    /// Stops it without waiting for its clients; kills it when it takes too long.
    pub(crate) fn stop(&mut self) {
        if self.poll().is_some() {
            return;
        }
        signal(self.pid(), self.fast);
        let requested = Instant::now();
        while self.poll().is_none() {
            if requested.elapsed() > STOP_LIMIT {
                return self.kill();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills the server and all its processes at once (SIGKILL): unwritten data is lost.
    pub(crate) fn kill(&mut self) {
        kill_tree(self.pid());
        if self.ended.is_none() {
            self.guard.dismiss();
            self.ended = self.child.wait().ok();
        }
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            if self.ended.is_some() {
                self.guard.dismiss();
            }
        }
        self.ended
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a program of the server's to its end, as the server's user.
pub(crate) fn run_to_end(
    home: &Home,
    what: &str,
    launch: &Launch<'_>,
    stop: &Stop,
) -> Result<(), Error> {
    let (log, mut child) = spawn(home, launch)?;
    let _guard = let_begin(Guard::over_group(&mut child, Signal::KILL), launch)?;
    loop {
        let looked = child.try_wait();
        match looked.map_err(|source| Error::system("wait for", &launch.program, source))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(log.error(&format!("{what} failed"), &status.to_string())),
            None if stop.is_requested() => {
                kill_tree(child.id());
                // It was killed, so it has ended.
                let _ = child.wait();
                return Err(Error::Stopped);
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Writes its own number to its output, and becomes the program.
const NUMBERED: &str = "echo $$; exec \"$@\" </dev/null >&2";

/// Starts a program as the server's user, with an environment that has nothing of ours, in a
/// process group of its own. It waits for its guard. Its number is remembered first, for the next
/// run.
fn spawn(home: &Home, launch: &Launch<'_>) -> Result<(Log, Child), Error> {
    let (log, output) = Log::open(&home.log())?;
    std::fs::metadata(&launch.program)
        .map_err(|source| Error::system("start", &launch.program, source))?;
    let mut command = Guard::waiting("/bin/sh");
    command
        .args(["-c", NUMBERED, "sh"])
        .arg(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .env("PATH", search_path(&launch.program))
        .env("LC_ALL", "C")
        .current_dir("/")
        .process_group(0)
        .stdout(home.process_file()?)
        .stderr(output);
    if let Some(user) = home.user() {
        // With a user the standard library also drops root's other groups.
        command.uid(user.uid).gid(user.gid);
    }
    let started = match (launch.cpus, launch.policy) {
        (None, Policy::Other) => command.spawn(),
        (cpus, policy) => spawn_as(cpus, policy, &mut command)?,
    };
    let child = started.map_err(|source| Error::system("start", &launch.program, source))?;
    Ok((log, child))
}

/// Lets a program begin.
fn let_begin(guard: std::io::Result<Guard>, launch: &Launch<'_>) -> Result<Guard, Error> {
    let mut guard = guard.map_err(|source| Error::system("guard", &launch.program, source))?;
    guard.begin(b"");
    Ok(guard)
}

/// A process inherits CPUs and policy of the thread that starts it: one of its own starts it, and
/// ends.
fn spawn_as(
    cpus: Option<&CpuSet>,
    policy: Policy,
    command: &mut Command,
) -> Result<std::io::Result<Child>, Error> {
    let spawn = || {
        if let Some(cpus) = cpus {
            let stayed = pin::stay_on(cpus);
            stayed.map_err(|source| Error::Cpus { cpus: cpus.clone(), source })?;
        }
        scheduling::adopt(policy).map_err(|source| Error::Policy { policy, source })?;
        Ok(command.spawn())
    };
    std::thread::scope(|scope| {
        scope.spawn(spawn).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Scripts among a server's programs call others in the same folder.
fn search_path(program: &Path) -> OsString {
    let mut path = OsString::new();
    if let Some(folder) = program.parent() {
        path.push(folder);
        path.push(":");
    }
    path.push("/usr/sbin:/usr/bin:/sbin:/bin");
    path
}

/// Stops a process that is not our child, as long as `alive` confirms its identity.
pub(super) fn stop_stranger(pid: u32, fast: Signal, alive: impl Fn() -> bool) {
    signal(pid, fast);
    let requested = Instant::now();
    while alive() {
        if requested.elapsed() > STOP_LIMIT {
            return kill_tree(pid);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The first process first, so that it can't replace the others; then waits for their end, as they
/// hold resources of the next server.
fn kill_tree(root: u32) {
    let live = Sysroot::live();
    let pids = running_below(&live, root);
    for pid in &pids {
        signal(*pid, Signal::KILL);
    }
    let killed = Instant::now();
    let runs = |pid: &u32| !running_below(&live, *pid).is_empty();
    while pids.iter().any(runs) && killed.elapsed() < KILL_LIMIT {
        std::thread::sleep(LOOK_EVERY);
    }
}

fn signal(pid: u32, signal: Signal) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // One that has just ended needs no signal.
    let _ = kill_process(pid, signal);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// So that the next run knows a server that outlives its guard.
    #[test]
    fn a_server_writes_its_own_number_down() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let home = Home::open(&place.path().join("home"), &crate::postgres::PRODUCT).unwrap();
        let launch = Launch {
            program: "/bin/sleep".into(),
            arguments: vec!["60".into()],
            cpus: None,
            policy: Policy::Other,
        };
        let mut server = Process::start(&home, &crate::postgres::PRODUCT, &launch).unwrap();
        let number = home.directory().join("pid");
        let started = Instant::now();
        let written = || std::fs::read_to_string(&number).unwrap();
        while written() != format!("{}\n", server.pid()) && started.elapsed() < KILL_LIMIT {
            std::thread::sleep(LOOK_EVERY);
        }
        let (written, pid) = (written(), server.pid());
        server.kill();
        assert_eq!(written, format!("{pid}\n"));
    }
}
