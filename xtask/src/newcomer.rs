//! `cargo xtask newcomer [COMMAND]`: whether a bare Debian gets there by what the README and the
//! tutorial's first page say.
//!
//! ```text
//!   debootstrap ─► root ◄─ this toolchain, read-only, and a clone of what is committed
//!                    └─ a namespace of its own for mounts and processes ─► their commands
//! ```
//!
//! The root has nothing but Debian 12's smallest set of packages, `build-essential`, git to clone
//! with, and certificates. Its mounts are gone with its namespace, however this ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{Workspace, answers, succeed};
use crate::{bench, setup};

/// The root's release of Debian.
const SUITE: &str = "bookworm";

/// Beside the smallest set.
const PACKAGES: &str = "build-essential,ca-certificates,git";

/// The tutorial's first page, by the program that the README's first command has built.
const TUTORIAL: &str = "WORKAHEAD_PROGRAM=target/release/workahead \
                        cargo xtask pages commands docs/tutorial/join.md";

/// Mounts what a program expects, and becomes a shell in the root: `$1` root, `$2` toolchain, `$3`
/// what to run.
const ENTER: &str = r#"set -e
mount --make-rprivate /
mount --bind "$2" "$1/opt/rust"
mount -o remount,bind,ro "$1/opt/rust"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
  PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  sh -ec "cd /opt/workahead && $3""#;

/// Makes the root, runs the commands in turn up to the first that fails, and keeps how each went.
/// Another command than the README's is run without keeping that.
pub(crate) fn run(workspace: &Workspace, other: Option<&str>) -> Result<bool> {
    let commands = match other {
        Some(command) => vec![command.to_owned()],
        None => {
            let readme = std::fs::read_to_string(workspace.root().join("README.md"))?;
            let mut commands = commands(&readme)?;
            commands.push(TUTORIAL.to_owned());
            commands
        }
    };
    let root = prepare(workspace)?;
    let toolchain = printed(Command::new("rustc").args(["--print", "sysroot"]))?;
    let (mut lines, mut passed) = (Vec::new(), true);
    for command in &commands {
        println!("\n== newcomer: {command}");
        let start = Instant::now();
        let status = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "newcomer"])
            .args([root.as_os_str(), toolchain.as_ref(), command.as_ref()])
            .status()
            .context("unshare does not start")?;
        let word = if status.success() { "passed" } else { "FAILED" };
        lines.push(format!("{word}  {:>6.0} s  {command}", start.elapsed().as_secs_f64()));
        passed = status.success();
        if !passed {
            break;
        }
    }
    let said = lines.join("\n");
    println!("\n== newcomer\n{said}");
    if other.is_some() {
        return Ok(passed);
    }
    let release = std::fs::read_to_string(root.join("etc/debian_version"))?;
    let title = format!("`cargo xtask newcomer` on a bare Debian {}", release.trim());
    let kept = bench::record_page(workspace, "newcomer", &title, &said)?;
    println!("kept in {}", kept.strip_prefix(workspace.root())?.display());
    Ok(passed)
}

/// The README's first commands: those of its first block of a shell, without their comments.
fn commands(readme: &str) -> Result<Vec<String>> {
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines = block.unwrap_or_default().lines();
    let commands: Vec<String> = lines
        .map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    ensure!(!commands.is_empty(), "README.md has no block of commands");
    Ok(commands)
}

/// A new root with a clone in it.
fn prepare(workspace: &Workspace) -> Result<PathBuf> {
    ensure!(
        printed(Command::new("id").arg("-u"))? == "0",
        "`cargo xtask newcomer` makes a root and mounts in it: run it as root"
    );
    if !answers(Command::new("debootstrap").arg("--version")) {
        bail!("no debootstrap: apt-get install debootstrap");
    }
    let root = setup::cache().context("HOME names no directory")?.join("newcomer");
    if root.exists() {
        // Nothing is mounted there: mounts end with the process that made them.
        succeed(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&root))?;
    }
    println!("a bare Debian, {SUITE}, in {}", root.display());
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE]).arg(&root);
    if let Ok(mirror) = std::env::var("WORKAHEAD_DEBIAN_MIRROR") {
        debootstrap.arg(mirror);
    }
    succeed(&mut debootstrap)?;
    std::fs::create_dir_all(root.join("opt/rust"))?;
    // How this machine reaches others.
    for file in ["etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"] {
        std::fs::copy(Path::new("/").join(file), root.join(file)).context(file)?;
    }
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet"]).arg(workspace.root()).arg(root.join("opt/workahead"));
    succeed(&mut clone)?;
    Ok(root)
}

fn printed(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} does not start"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_readme() {
        let readme =
            "# T\n```sh\ncargo a -- b   # why\n\ncargo xtask test # all\n```\n```sh\nno\n```";
        assert_eq!(commands(readme).unwrap(), ["cargo a -- b", "cargo xtask test"]);
        assert!(commands("# T").is_err());
        let ours = std::fs::read_to_string("../README.md").unwrap();
        assert!(commands(&ours).unwrap().contains(&"cargo xtask test".to_owned()));
    }
}
