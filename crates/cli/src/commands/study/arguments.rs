//! Arguments that commands of studies share: the study, its server, its data directory.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use workahead_engines::attach::{Access, Software, Target};
use workahead_study::error::StudyError;
use workahead_study::session::{Opener, Setup};
use workahead_study::spec::Spec;
use workahead_study::{catalogue, directory};
use workahead_workloads::session::SessionError;

use super::worker;
use crate::errors::WrongUse;
use crate::interrupt::{self, Interrupted};
use crate::{engines, output, password};

#[derive(Debug, clap::Args)]
pub(crate) struct StudyArguments {
    /// Id of a study (`workahead study list`), or a file ending in .toml
    pub(crate) study: PathBuf,
    /// Apply one of the study's scales, e.g. small
    #[arg(long, value_name = "NAME")]
    pub(crate) scale: Option<String>,
    /// Samples per cell, in place of the study's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repetitions: Option<u32>,
}

impl StudyArguments {
    /// Reads the study and applies scale and repetitions.
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let (id, text) = catalogue::find(&self.study)?;
        let mut spec = Spec::parse(&id, &text)?;
        if let Some(scale) = &self.scale {
            spec = Spec::parse_scaled(&id, &text, scale)?;
        }
        if let Some(repetitions) = self.repetitions {
            let share = f64::from(repetitions) / f64::from(spec.method.repetitions);
            spec.time_s = spec.time_s.map(|time_s| time_s * share);
            spec = spec.repeated(repetitions)?;
        }
        Ok(spec)
    }
}

/// Where a result goes.
#[derive(Debug, clap::Args)]
pub(crate) struct OutArguments {
    /// Where the result goes [default: a new directory below workahead-results]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an existing result
    #[arg(long)]
    force: bool,
}

impl OutArguments {
    /// Claims the directory.
    pub(crate) fn claim(&self, spec: &Spec) -> Result<PathBuf, StudyError> {
        // Facts that the server did not report until then are not of this machine.
        if interrupt::is_requested() {
            return Err(StudyError::Interrupted);
        }
        let parent = Path::new(directory::DEFAULT);
        let usual = || parent.join(directory::name(&spec.id));
        if let Some(out) = &self.out
            && workahead_engines::works_in_this_process(&spec.engine)
        {
            directory::check_own(out)?;
        }
        match (&self.out, self.force) {
            (Some(out), true) => directory::claim_replacing(out),
            (Some(out), false) => directory::claim(out),
            (None, true) => directory::claim_replacing(&usual()),
            (None, false) => directory::claim_new(parent, &spec.id),
        }
    }
}

/// A server that already runs.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ServerArguments {
    /// Run on a server that already runs, only reading: postgres://USER@HOST/DATABASE or mysql://…;
    /// the password in WORKAHEAD_PASSWORD, ~/.pgpass or ~/.my.cnf; ?sslmode=verify-full verifies
    /// the server's certificate
    #[arg(long, value_name = "URL")]
    attach: Option<String>,
    /// Let the run write to that database: its tables are made there
    #[arg(long, requires = "attach")]
    allow_writes: bool,
    /// Let the user of the URL be a superuser, whose queries can run programs on the server
    #[arg(long, requires = "attach")]
    allow_superuser: bool,
    /// Let the password be sent over a network without encryption, if the server requests that
    #[arg(long, requires = "attach")]
    allow_cleartext: bool,
    /// Print the statements that create a role that only reads that database, and run nothing
    #[arg(long, requires = "attach", conflicts_with_all = ["allow_writes", "allow_superuser"])]
    read_only_role: bool,
}

/// A server that is only observed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ObservedServerArguments {
    /// The server that runs, which is only read: postgres://USER@HOST/DATABASE or mysql://…; the
    /// password in WORKAHEAD_PASSWORD, ~/.pgpass or ~/.my.cnf; ?sslmode=verify-full verifies the
    /// server's certificate
    #[arg(long, value_name = "URL")]
    attach: String,
    /// Let the user of the URL be a superuser
    #[arg(long)]
    allow_superuser: bool,
    /// Let the password be sent over a network without encryption, if the server requests that
    #[arg(long)]
    allow_cleartext: bool,
    /// Print the statements that create a role that only reads that database, and observe nothing
    #[arg(long, conflicts_with = "allow_superuser")]
    read_only_role: bool,
}

impl ObservedServerArguments {
    fn server(&self) -> ServerArguments {
        ServerArguments {
            attach: Some(self.attach.clone()),
            allow_writes: false,
            allow_superuser: self.allow_superuser,
            allow_cleartext: self.allow_cleartext,
            read_only_role: self.read_only_role,
        }
    }

    /// As [`ServerArguments::prints_role`].
    pub(crate) fn prints_role(&self) -> anyhow::Result<bool> {
        self.server().prints_role()
    }

    /// The server, once its user's rights are known; their rights to write go to standard error.
    pub(crate) fn examined(&self) -> anyhow::Result<Target> {
        let target = self.server().target()?.context("the URL of a server")?;
        let target = RefCell::new(target);
        if let Some(writes) = examine(&target)? {
            output::note(&writes);
        }
        Ok(target.into_inner())
    }
}

impl ServerArguments {
    fn target(&self) -> anyhow::Result<Option<Target>> {
        let Some(url) = &self.attach else { return Ok(None) };
        let access = if self.allow_writes { Access::Write } else { Access::ReadOnly };
        let mut target =
            Target::parse(url, access).map_err(|error| WrongUse::error(error.to_string()))?;
        if let Some(ignored) = target.find_password(&|name| std::env::var_os(name)) {
            output::note(&ignored);
        }
        target.address.cleartext = self.allow_cleartext;
        Ok(Some(Target { superuser: self.allow_superuser, ..target }))
    }

    /// The engine of the server, if one is given.
    pub(crate) fn engine(&self) -> anyhow::Result<Option<&'static str>> {
        let target = self.target()?;
        Ok(target.map(|target| match target.software {
            Software::Postgres => "postgres",
            Software::MariaDb => "mariadb",
        }))
    }

    /// Prints the statements for a role that only reads, if the user wants them and no run.
    pub(crate) fn prints_role(&self) -> anyhow::Result<bool> {
        if !self.read_only_role {
            return Ok(false);
        }
        let Some(target) = self.target()? else { return Ok(false) };
        output::text(&target.read_only_role())?;
        Ok(true)
    }

    /// The set-up of a session, on a given server or a private one.
    pub(crate) fn setup(
        &self,
        spec: &Spec,
        data: &DataArguments,
    ) -> anyhow::Result<Setup<anyhow::Error>> {
        let Some(target) = self.target()? else { return Ok(setup(spec, data)) };
        let (engine, id) = (spec.engine.clone(), spec.id.clone());
        let target = RefCell::new(target);
        let open: Opener<anyhow::Error> = Box::new(move |context| {
            let named = || format!("study `{id}`");
            if let Some(writes) = examine(&target).with_context(named)? {
                output::note(&writes);
            }
            let target = target.borrow().clone();
            workahead_engines::attached(&engine, target, context).with_context(named)
        });
        Ok(Setup { open, ..setup(spec, data) })
    }
}

/// Looks at the user's rights; in words what they could write. A password that the server requests
/// and nothing gives is typed, once.
fn examine(target: &RefCell<Target>) -> anyhow::Result<Option<String>> {
    let examined = examine_once(&target.borrow())?;
    let refusal = match examined {
        Err(refusal) if target.borrow().lacks_password(&refusal) => refusal,
        examined => return Ok(examined?),
    };
    let typed = {
        let address = &target.borrow().address;
        let question = format!("Password of {} at {}: ", address.user, address.place);
        password::prompt(&output::escaped(&question))?
    };
    let Some(typed) = typed else { return Err(refusal.into()) };
    target.borrow_mut().address.password = Some(typed);
    Ok(examine_once(&target.borrow())??)
}

/// How often an interruption is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A server may never answer: an interruption leaves it alone at once.
fn examine_once(target: &Target) -> anyhow::Result<Result<Option<String>, SessionError>> {
    let target = target.clone();
    let examining = std::thread::spawn(move || target.examine());
    while !examining.is_finished() {
        if interrupt::is_requested() {
            return Err(Interrupted.into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    examining.join().map_err(|_| anyhow::anyhow!("the server's answer can't be understood"))
}

/// The set-up of a session with an engine of the registry.
pub(crate) fn setup(spec: &Spec, data: &DataArguments) -> Setup<anyhow::Error> {
    let (engine, id) = (spec.engine.clone(), spec.id.clone());
    let open: Opener<anyhow::Error> = Box::new(move |context| {
        engines::registry().open(&engine, context).with_context(|| format!("study `{id}`"))
    });
    Setup { open, data_dir: data.directory(), worker: worker::command() }
}

/// Where servers keep their data.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DataArguments {
    /// Where private servers keep their data between runs [default: /var/tmp/workahead-UID]
    #[arg(long, value_name = "DIR", env = "WORKAHEAD_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

impl DataArguments {
    /// Not below the home directory: servers that root starts run as another user, which may not
    /// enter it. Not in memory either, as /tmp may be.
    pub(crate) fn directory(&self) -> PathBuf {
        let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
        let usual = || Path::new("/var/tmp").join(format!("workahead-{user}"));
        self.data_dir.clone().unwrap_or_else(usual)
    }
}
