//! Embeds a folder of the repository: its TOML files as a sorted list of names and texts.

use std::fmt::Write;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Writes `FOLDER.rs` for [`include!`]: an array of `Embedded`, whose field `key` is a file's path
/// below the folder without `.toml`, and `text` what is in it.
pub(crate) fn texts(folder: &str, key: &str) -> Result<()> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..").join(folder);
    let mut files = Vec::new();
    walk(&root, &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let below = file.strip_prefix(&root).expect("walked from the root").with_extension("");
        let name = below.to_str().expect("names of files are UTF-8").replace('\\', "/");
        let path = file.canonicalize()?;
        writeln!(code, "    Embedded {{ {key}: {name:?}, text: include_str!({path:?}) }},")
            .expect("text");
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join(folder).with_extension("rs"), code)
}

/// Files below a directory; none when it is not there. Cargo looks at each again.
fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    println!("cargo::rerun-if-changed={}", dir.display());
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}
