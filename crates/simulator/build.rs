//! Embeds every machine of the repository.

#[path = "../study/build/embed.rs"]
mod embed;

fn main() -> std::io::Result<()> {
    embed::texts("machines", "name")
}
