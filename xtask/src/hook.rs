//! `cargo xtask hook`: a `pre-commit` hook that formats and runs tidy.
//!
//! Formatted files are added to the commit only where nothing else of them was left out of it;
//! otherwise the commit stops and names the files. `git commit --no-verify` goes without.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::Workspace;

/// By which we know our own.
const MARK: &str = "cargo xtask hook";

const HOOK: &str = r#"#!/bin/sh
# Written by `cargo xtask hook`: formats what is committed, then runs tidy.
set -e
cd "$(git rev-parse --show-toplevel)"
# Git's own variables name this commit's index; what tidy asks Git needs no others.
changed=$(git diff --cached --name-only --diff-filter=ACMR -- '*.rs')
if [ -n "$changed" ] && ! cargo fmt --all --check >/dev/null 2>&1; then
  partly=$(git diff --name-only -- $changed)
  cargo fmt --all
  if [ -n "$partly" ]; then
    echo "formatted; add what you want of these, then commit again:" >&2
    echo "$partly" >&2
    exit 1
  fi
  git add -- $changed
fi
exec cargo xtask tidy
"#;

/// Writes the hook where Git looks for it; over another one only with `--force`.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    let force = match words {
        [] => false,
        ["--force"] => true,
        _ => bail!("usage: cargo xtask hook [--force]"),
    };
    let hook = place(workspace)?;
    if let Ok(there) = std::fs::read_to_string(&hook) {
        let ours = there.contains(MARK);
        ensure!(
            ours || force,
            "{} is another hook: call `cargo xtask tidy` there, or replace it with \
             `cargo xtask hook --force`",
            hook.display()
        );
    }
    if let Some(folder) = hook.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write(&hook)?;
    println!("{} formats and runs tidy before every commit", hook.display());
    Ok(true)
}

/// Worktrees share the hooks of their repository; `core.hooksPath` may name another folder.
fn place(workspace: &Workspace) -> Result<PathBuf> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).args(["rev-parse", "--git-path", "hooks/pre-commit"]);
    let output = git.output().context("git does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let path = String::from_utf8(output.stdout)?;
    Ok(workspace.root().join(path.trim_end_matches('\n')))
}

fn write(hook: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let temporary = hook.with_extension("workahead-tmp");
    std::fs::write(&temporary, HOOK)
        .and_then(|()| std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o755)))
        .and_then(|()| std::fs::rename(&temporary, hook))
        .with_context(|| format!("cannot write {}", hook.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn git(folder: &Path, words: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        assert!(git.args(words).output().unwrap().status.success(), "{words:?}");
    }

    /// A repository with a worktree beside it.
    fn repository() -> (PathBuf, Workspace, Workspace) {
        let name = format!("workahead-hook-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("one")).unwrap();
        let one = folder.join("one");
        git(&one, &["init", "-q"]);
        git(&one, &["commit", "-q", "--allow-empty", "-m", "empty"]);
        git(&one, &["worktree", "add", "-q", "../two"]);
        (folder.clone(), Workspace::of_test(one), Workspace::of_test(folder.join("two")))
    }

    #[test]
    fn it_is_written_for_worktrees_too_and_never_over_another() {
        let (folder, one, two) = repository();
        let hook = one.root().join(".git/hooks/pre-commit");
        let _ = std::fs::remove_file(&hook);
        assert!(run(&two, &[]).unwrap());
        assert!(std::fs::read_to_string(&hook).unwrap().contains("cargo xtask tidy"));
        assert!(run(&one, &[]).unwrap(), "its own it writes again");
        std::fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
        let refused = run(&one, &[]).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        assert!(run(&one, &["--force"]).unwrap());
        assert!(run(&one, &["--what"]).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
