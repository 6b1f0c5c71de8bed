//! Writes the constructed recordings anew, into `recordings/`.

#[path = "../tests/recordings/construct.rs"]
mod construct;
#[path = "../tests/recordings/events.rs"]
mod events;
#[path = "../tests/recordings/sides.rs"]
mod sides;

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    for model in &construct::MODELS {
        std::fs::write(folder.join(format!("{}.jsonl", model.file)), model.bytes())?;
    }
    Ok(())
}
