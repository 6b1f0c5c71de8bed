//! Embeds every machine of the repository.

#[path = "build/embed.rs"]
mod embed;

fn main() -> std::io::Result<()> {
    for path in embed::texts("machines", "name")? {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(())
}
