//! Embeds every study of the repository.

#[path = "build/embed.rs"]
mod embed;

fn main() -> std::io::Result<()> {
    embed::texts("studies", "id")
}
