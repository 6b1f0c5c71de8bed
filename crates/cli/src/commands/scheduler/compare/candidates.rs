//! The schedulers that are compared, and how each gets the tasks.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use workahead_machine::Machine;
use workahead_scheduler::{External, Roles, Scheduler, Settings, attachable, changed, program};

use crate::errors::WrongUse;

/// A scheduler as it is named: with settings or options after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// As it was given, blanks put right.
    pub(super) words: String,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Default,
    Itas(Box<(Settings, Option<Roles>)>),
    External { program: String, options: Vec<String> },
}

impl FromStr for Candidate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let which = match words[..] {
            ["default"] => Which::Default,
            ["default", ..] => {
                return Err(WrongUse::error("`default`, the kernel's own, has no settings"));
            }
            ["itas", ref settings @ ..] => {
                let changed = changed(Settings::default(), settings.iter().copied());
                Which::Itas(Box::new(changed.map_err(|error| WrongUse::error(error.to_string()))?))
            }
            [program, ref options @ ..] if program.starts_with("scx_") || program.contains('/') => {
                let options = options.iter().map(|&option| option.to_owned()).collect();
                Which::External { program: program.to_owned(), options }
            }
            _ => {
                let says = "no scheduler of this name: use default, itas, or a program of the scx \
                            project (scx_cosmos)";
                return Err(WrongUse::error(format!("`{text}`: {says}")));
            }
        };
        Ok(Self { words: words.join(" "), which })
    }
}

/// A scheduler that has the tasks.
pub(super) enum AttachedScheduler {
    Default,
    Itas(Box<Scheduler>),
    External(External),
}

impl Candidate {
    /// Whether it is this project's.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.which, Which::Itas(_))
    }

    /// Checks that it is there.
    ///
    /// # Errors
    /// With how to install it.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match &self.which {
            Which::Default | Which::Itas(_) => Ok(()),
            Which::External { program: name, .. } => Ok(program(name).map(drop)?),
        }
    }

    /// Gives it the tasks, unless the user wants to leave while another program is waited for.
    ///
    /// # Errors
    /// Its own, or the kernel's.
    pub(super) fn attach(
        &self,
        machine: &Machine,
        leave: &AtomicBool,
    ) -> anyhow::Result<AttachedScheduler> {
        Ok(match &self.which {
            Which::Default => {
                attachable()?;
                AttachedScheduler::Default
            }
            Which::Itas(given) => {
                let (settings, roles) = given.as_ref();
                let roles = match roles {
                    Some(roles) => roles.clone(),
                    None => Roles::whole_machine(machine)?,
                };
                AttachedScheduler::Itas(Box::new(Scheduler::attach(settings, &roles)?))
            }
            Which::External { program: name, options } => {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                let leaves = || leave.load(Ordering::Relaxed);
                AttachedScheduler::External(External::start(&program(name)?, &options, &leaves)?)
            }
        })
    }
}

impl AttachedScheduler {
    /// The kernel's name for it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Default => "the kernel's own".to_owned(),
            Self::Itas(_) => concat!("workahead ", env!("CARGO_PKG_VERSION")).to_owned(),
            Self::External(external) => external.name().to_owned(),
        }
    }

    /// Checks that it still has the tasks.
    ///
    /// # Errors
    /// With the kernel's reason.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Default => attachable().context("another scheduler came"),
            Self::Itas(scheduler) => match scheduler.remote().ended()? {
                Some(ended) => {
                    anyhow::bail!(
                        "the kernel took its tasks back ({}): {}",
                        ended.reason,
                        ended.message
                    )
                }
                None => Ok(()),
            },
            Self::External(external) => Ok(external.check()?),
        }
    }

    /// The kernel's own has the tasks again.
    ///
    /// # Errors
    /// If it hasn't.
    pub(super) fn detach(self) -> anyhow::Result<()> {
        match self {
            Self::Default => {}
            Self::Itas(scheduler) => drop(scheduler.stop()?),
            Self::External(external) => external.stop()?,
        }
        Ok(attachable()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(text: &str) -> anyhow::Result<Candidate> {
        text.parse()
    }

    #[test]
    fn names_settings_and_options() {
        assert_eq!(candidate(" default ").unwrap().which, Which::Default);
        let ours = candidate("itas  max-delay=off").unwrap();
        assert!(ours.is_ours() && ours.words == "itas max-delay=off");
        let Which::Itas(given) = ours.which else { panic!("ours") };
        assert_eq!((given.0.max_delay_ns, &given.1), (None, &None));
        let cosmos = candidate("scx_cosmos --mm-affinity").unwrap();
        let options = vec!["--mm-affinity".to_owned()];
        assert_eq!(cosmos.which, Which::External { program: "scx_cosmos".into(), options });
        assert!(candidate("/opt/scheduler").is_ok());
    }

    #[test]
    fn unknown_schedulers_are_named() {
        for (text, says) in [
            ("cfs", "`cfs`"),
            ("", "scx_cosmos"),
            ("default fast", "has no settings"),
            ("itas bonsu=1", "bonsu"),
        ] {
            let said = candidate(text).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
        let said = candidate("scx_none").unwrap().check().unwrap_err().to_string();
        assert!(said.contains("cargo install scx_none"), "{said}");
    }
}
