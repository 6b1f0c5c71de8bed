//! Embeds every study of the repository.

#[path = "build/embed.rs"]
mod embed;

fn main() -> std::io::Result<()> {
    for path in embed::texts("studies", "id")? {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(())
}
