//! "Did you mean": the known name nearest to a misspelt one.

/// How similar two names must be (Jaro-Winkler, 0 to 1) for a suggestion.
const SIMILAR: f64 = 0.8;
/// More names than a line holds are not listed; then the nearest is offered even if it is far.
const LISTED_MAX: usize = 20;

/// The remedy for an unknown name: the nearest one, or a list of all.
pub(crate) fn remedy(given: &str, known: &[&str]) -> String {
    let lower = given.to_lowercase();
    let similarity = |name: &str| strsim::jaro_winkler(&lower, &name.to_lowercase());
    let scored = known.iter().map(|name| (similarity(name), name));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((similarity, name)) if similarity >= SIMILAR || known.len() > LISTED_MAX => {
            format!("did you mean `{name}`?")
        }
        _ => {
            let all: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("choose one of {}", all.join(", "))
        }
    }
}
