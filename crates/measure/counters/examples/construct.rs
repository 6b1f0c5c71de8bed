//! Writes the constructed recordings anew, into `recordings/`.

#[path = "../tests/recordings/construct.rs"]
mod construct;
#[path = "../tests/recordings/events.rs"]
mod events;
#[path = "../tests/recordings/sides.rs"]
mod sides;

fn main() -> std::io::Result<()> {
    let folder = manifest_folder().join("recordings");
    for model in &construct::MODELS {
        std::fs::write(folder.join(format!("{}.jsonl", model.file)), model.bytes())?;
    }
    Ok(())
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
