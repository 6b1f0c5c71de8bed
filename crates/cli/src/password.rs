//! Passwords of servers and tokens of clusters on their way into this process: out of the list of
//! processes, or typed.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use workahead_engines::attach::Target;
use workahead_engines::attach::password::VARIABLE;

use crate::interrupt::{self, Interrupted};

const OPTION: &str = "--attach";
const CLUSTER_OPTION: &str = "--cluster";
const CLUSTER_SCHEME: &str = "workahead://";
/// The variable with the URL of a cluster.
pub(crate) const CLUSTER: &str = "WORKAHEAD_CLUSTER";

/// Starts this program anew if a URL among its arguments has a password or a token, with that in a
/// variable of the environment. Everybody on the machine can read the arguments of a process
/// (`/proc/PID/cmdline`), its environment only the same user and root.
///
/// The process stays the same one. Overwriting the arguments where they lie would be `unsafe`, and
/// this has to happen before there are threads anyway. Until it has, a few milliseconds, the
/// password can be seen: the files and the variable have no such gap.
pub(crate) fn leave_process_list() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let with_variable = |(arguments, secret)| (arguments, VARIABLE, secret);
    let found = without_password(&arguments).map(with_variable);
    let found = found
        .or_else(|| without_token(&arguments).map(|(arguments, url)| (arguments, CLUSTER, url)));
    let Some((arguments, variable, secret)) = found else { return Ok(()) };
    // By its path, so that the list of processes shows its name; it may be gone since.
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(program);
    command.arg0(&arguments[0]).args(&arguments[1..]).env(variable, secret);
    Err(command.exec()).with_context(|| {
        format!("can't take the URL's secret out of the list of processes: give it in {variable}")
    })
}

/// The commands that connect to a server by its URL.
const COMMANDS: [&str; 4] = ["study", "advise", "capacity", "capture"];

/// The values of an option among arguments: where each is, whether behind `=`, and itself.
fn values<'a>(
    texts: &'a [&'a str],
    option: &'a str,
) -> impl Iterator<Item = (usize, bool, &'a str)> {
    texts.iter().enumerate().filter_map(move |(at, text)| {
        let inline = text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
        let is_next = at > 0 && texts[at - 1] == option;
        inline.map(|url| (at, true, url)).or(is_next.then_some((at, false, *text)))
    })
}

fn texts(arguments: &[OsString]) -> Vec<&str> {
    arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect()
}

/// The arguments without the password of a URL after `--attach`, and that password.
fn without_password(arguments: &[OsString]) -> Option<(Vec<OsString>, String)> {
    let [_, command, ..] = arguments else { return None };
    if !COMMANDS.iter().any(|name| command == name) {
        return None;
    }
    let (mut without, mut found) = (arguments.to_vec(), None);
    for (at, is_inline, url) in values(&texts(arguments), OPTION) {
        if let Some((url, password)) = Target::split_password(url) {
            without[at] = if is_inline { format!("{OPTION}={url}").into() } else { url.into() };
            found = Some(password);
        }
    }
    Some((without, found?))
}

/// The arguments without the URL of a cluster, which has its token, and that URL.
fn without_token(arguments: &[OsString]) -> Option<(Vec<OsString>, String)> {
    let texts = texts(arguments);
    let is_url = |text: &&str| text.starts_with(CLUSTER_SCHEME);
    let (range, url) = match texts[..] {
        [_, "sql", ..] => {
            let mut values = values(&texts, CLUSTER_OPTION);
            let (at, is_inline, url) = values.find(|(.., url)| is_url(url))?;
            (at - usize::from(!is_inline)..at + 1, url)
        }
        [_, "cluster", "status", ..] => {
            let at = texts.iter().position(is_url)?;
            (at..at + 1, texts[at])
        }
        _ => return None,
    };
    let mut without = arguments.to_vec();
    without.drain(range);
    Some((without, url.to_owned()))
}

/// Prompts for a password at the terminal, without echo; `None` where standard input is none.
///
/// # Errors
/// When it is interrupted, or the terminal fails.
pub(crate) fn prompt(question: &str) -> anyhow::Result<Option<String>> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Ok(None);
    }
    let echo = Echo::off().context("can't turn the terminal's echo off")?;
    let mut terminal = std::io::stderr();
    let _ = write!(terminal, "{question}");
    let _ = terminal.flush();
    let typed = read_line(|| {
        let mut byte = [0];
        while !is_typed(&input)? {
            if interrupt::is_requested() {
                return Ok(None);
            }
        }
        Ok((rustix::io::retry_on_intr(|| rustix::io::read(&input, &mut byte))? == 1)
            .then_some(byte[0]))
    });
    drop(echo);
    let _ = writeln!(terminal);
    if interrupt::is_requested() {
        return Err(Interrupted.into());
    }
    typed.map(Some)
}

/// Whether there is a key, or an end, within the time after which signals are looked for.
fn is_typed(input: &std::io::Stdin) -> rustix::io::Result<bool> {
    let mut inputs = [PollFd::new(input, PollFlags::IN)];
    let ready = poll(&mut inputs, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
    match ready {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// A line as it is typed, with the keys that edit it.
fn read_line(mut key: impl FnMut() -> rustix::io::Result<Option<u8>>) -> anyhow::Result<String> {
    const INTERRUPT: u8 = 0x03;
    const END: u8 = 0x04;
    const KILL: u8 = 0x15;
    let mut line = Vec::new();
    loop {
        match key().context("can't read the password")? {
            Some(b'\n' | b'\r') => break,
            Some(0x08 | 0x7f) => {
                // All bytes of a character.
                while line.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            Some(KILL) => line.clear(),
            None | Some(INTERRUPT | END) => anyhow::bail!("no password was given"),
            Some(byte) => line.push(byte),
        }
    }
    String::from_utf8(line).context("the password is not UTF-8")
}

/// Keys come one by one, and are not shown, until this is dropped. An interruption is a key too, so
/// that none leaves the terminal without echo.
struct Echo;

/// The terminal's settings while there is an [`Echo`].
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

impl Echo {
    fn off() -> rustix::io::Result<Echo> {
        let before = tcgetattr(std::io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Echo)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Gives the terminal its settings back, if it is without echo: also before the process exits by a
/// second signal.
pub(crate) fn restore_terminal() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(arguments: &[&str]) -> Option<(Vec<OsString>, String)> {
        without_password(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_password_of_a_database_is_cut_out_of_the_arguments() {
        let url = "postgres://ada:p%40ss@h/s";
        for (given, kept) in [
            (["w", "study", "run", "a", "--attach", url], "postgres://ada@h/s"),
            (
                ["w", "study", "resume", "a", "--json", &format!("--attach={url}")],
                "--attach=postgres://ada@h/s",
            ),
            (["w", "advise", "clients", "--json", "--attach", url], "postgres://ada@h/s"),
            (["w", "capacity", "--for", "5m", "--attach", url], "postgres://ada@h/s"),
        ] {
            let (without, password) = split(&given).unwrap();
            assert_eq!(password, "p@ss");
            assert_eq!(without[..5], given.map(OsString::from)[..5]);
            assert_eq!(without[5], kept);
            assert_eq!(without_password(&without), None, "it is done once");
        }
        let other = ["w", "counters", "stat", "client", "--attach", url];
        assert_eq!(split(&other), None, "another program's arguments are its own");
        assert_eq!(split(&["w", "study", "run", "a", "--attach"]), None);
        assert_eq!(split(&["w", "study", "run", url]), None);
        assert_eq!(split(&["w"]), None);
    }

    #[test]
    fn a_token_of_a_cluster_is_cut_out_of_the_arguments() {
        let split = |arguments: &[&str]| {
            without_token(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
        };
        let url = "workahead://00ff@127.0.0.1:5000";
        for given in [
            &["w", "sql", "--cluster", url, "select 1"][..],
            &["w", "sql", &format!("--cluster={url}"), "select 1"],
        ] {
            let kept = ["w", "sql", "select 1"].map(OsString::from).to_vec();
            assert_eq!(split(given), Some((kept, url.to_owned())));
        }
        let kept = ["w", "cluster", "status", "--json"].map(OsString::from).to_vec();
        assert_eq!(split(&["w", "cluster", "status", url, "--json"]), Some((kept, url.to_owned())));
        for given in [
            &["w", "sql", "--cluster", "file", "select 1"][..],
            &["w", "sql", "select 1", "--cluster"],
            &["w", "sql", url],
            &["w", "cluster", "status", "file"],
        ] {
            assert_eq!(split(given), None, "{given:?}");
        }
    }

    #[test]
    fn a_line_is_edited_as_it_is_typed() {
        let typed = |keys: &str| {
            let mut keys = keys.bytes();
            read_line(|| Ok(keys.next()))
        };
        assert_eq!(typed("secret\n").unwrap(), "secret");
        assert_eq!(typed("ab\u{7f}\u{7f}\u{7f}cé\u{7f}\rd").unwrap(), "c");
        assert_eq!(typed("wrong\u{15}right\n").unwrap(), "right");
        for ended in ["sec", "sec\u{3}ret\n", "\u{4}"] {
            assert_eq!(typed(ended).unwrap_err().to_string(), "no password was given");
        }
    }
}
