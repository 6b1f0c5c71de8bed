//! Embeds a folder of the repository: its TOML files as a sorted list of names and texts.
//!
//! A package has a link to it, which becomes a folder when the package is published.

use std::fmt::Write;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Writes `FOLDER.rs` for [`include!`]: an array of `EmbeddedFile`, whose field `key` is a file's
/// path below the folder without `.toml`, and `text` its contents. Returns the paths that Cargo
/// must watch.
pub(crate) fn texts(folder: &str, key: &str) -> Result<Vec<PathBuf>> {
    // Relative to the package, where Cargo runs build scripts: a target folder may be shared.
    let root = Path::new(folder);
    let (mut files, mut seen) = (Vec::new(), Vec::new());
    walk(root, &mut files, &mut seen)?;
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let below = file.strip_prefix(root).expect("walked from the root").with_extension("");
        let name = below.to_str().expect("names of files are UTF-8").replace('\\', "/");
        // The text itself, not its path: another checkout may share the target folder.
        let text = std::fs::read_to_string(&file)?;
        writeln!(code, "    EmbeddedFile {{ {key}: {name:?}, text: {text:?} }},").expect("text");
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join(folder).with_extension("rs"), code)?;
    Ok(seen)
}

/// Files below a directory, none when it does not exist; and all paths visited.
fn walk(dir: &Path, files: &mut Vec<PathBuf>, seen: &mut Vec<PathBuf>) -> Result<()> {
    seen.push(dir.to_owned());
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files, seen)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            seen.push(path.clone());
            files.push(path);
        }
    }
    Ok(())
}
