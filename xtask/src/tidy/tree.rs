//! The tracked files, read once.

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A tracked text file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn ends_with(&self, suffix: &str) -> bool {
        self.path.ends_with(suffix)
    }

    /// Lines with their one-based numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// All tracked files: text with its content, everything else by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    /// Every tracked path, text or not.
    pub(crate) paths: Vec<String>,
    /// The name of this computer, where it is long enough to mean something.
    pub(crate) host: Option<String>,
}

impl Tree {
    /// Reads what Git tracks, and what is new and not ignored: the rules hold before the commit.
    pub(crate) fn tracked(workspace: &Workspace) -> Result<Self> {
        let root = workspace.root();
        let output = std::process::Command::new("git")
            .current_dir(root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .context("git does not start; tidy reads the tracked files")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let mut tree = Self { host: host_name(), ..Self::default() };
        for path in output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8(path.to_vec()).context("a path that is not UTF-8")?;
            // Deleted but not yet committed.
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                tree.files.push(File { path: path.clone(), text });
            }
            tree.paths.push(path);
        }
        Ok(tree)
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Rust sources of the workspace.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.ends_with(".rs"))
    }

    /// Manifests of packages (not the workspace's own).
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.ends_with("/Cargo.toml"))
    }

    /// Whether something tracked lies at this path, file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.paths.iter().any(|other| other == path || other.starts_with(&folder))
    }

    /// Whether a file's path ends with these whole parts.
    pub(crate) fn has_end(&self, end: &str) -> bool {
        self.paths.iter().any(|path| {
            path.strip_suffix(end).is_some_and(|start| start.is_empty() || start.ends_with('/'))
        })
    }

    /// A tree made up for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).into(), text: (*text).into() })
            .collect();
        let paths = files.iter().map(|file| file.path.clone()).collect();
        Self { files, paths, host: None }
    }
}

/// Short names are words ("build", "dev") and would be found everywhere.
pub(crate) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (name.len() >= 8 && name != "localhost").then(|| name.to_owned())
}
