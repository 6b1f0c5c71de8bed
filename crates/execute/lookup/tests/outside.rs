//! The README's first lines, as a program outside of the workspace follows them.

use std::path::PathBuf;
use std::process::Command;

#[test]
fn a_program_outside_of_the_workspace_follows_the_readme() {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let readme = std::fs::read_to_string(package.join("README.md")).unwrap();
    let lines = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("follows-the-readme");
    std::fs::create_dir_all(program.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"follows-the-readme\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nworkahead-lookup = {{ path = {package:?} }}\n"
    );
    std::fs::write(program.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(program.join("src/main.rs"), format!("fn main() {{\n{lines}}}\n")).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--offline"]).current_dir(&program);
    cargo.env("CARGO_TARGET_DIR", program.join("target"));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
