//! "Did you mean": the known names nearest to a misspelt one.

/// How similar two names must be (Jaro-Winkler, 0 to 1) to be offered. 0.8 offers `tecnique` and
/// `hashjoin`, and stays silent between unrelated words.
const SIMILAR: f64 = 0.8;

/// More names than a line holds are not listed; then the nearest is offered even if it is far.
const LISTED_MAX: usize = 20;

/// Longer texts are not names; comparing two takes the product of their lengths.
const BYTES_MAX: usize = 200;

/// The nearest known names, best first, at most three.
pub fn names<'a>(given: &str, known: &[&'a str]) -> Vec<&'a str> {
    let similar = scored(given, known).into_iter().filter(|(score, _)| *score >= SIMILAR);
    similar.map(|(_, name)| name).take(3).collect()
}

/// The remedy for an unknown name: the nearest one, or all of them.
pub fn remedy(given: &str, known: &[&str]) -> String {
    match scored(given, known).first() {
        Some((score, nearest)) if *score >= SIMILAR || known.len() > LISTED_MAX => {
            format!("did you mean `{nearest}`?")
        }
        _ if known.is_empty() => "nothing is known here; remove it".to_owned(),
        _ => {
            let all: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("choose one of {}", all.join(", "))
        }
    }
}

/// Known names with their similarity, best first.
fn scored<'a>(given: &str, known: &[&'a str]) -> Vec<(f64, &'a str)> {
    let is_name = |name: &str| name.len() <= BYTES_MAX;
    let mut scored: Vec<(f64, &str)> = known
        .iter()
        .filter(|name| is_name(given) && is_name(name))
        .map(|name| (similarity(given, name), *name))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
}

/// Paths (`zhou/hash_join`) are also compared by their last part, which people remember.
fn similarity(given: &str, name: &str) -> f64 {
    let given = given.to_lowercase();
    let whole = strsim::jaro_winkler(&given, &name.to_lowercase());
    match name.rsplit_once('/') {
        Some((_, last)) => whole.max(strsim::jaro_winkler(&given, &last.to_lowercase())),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_not_names() {
        assert_eq!(names("tecnique", &["technique", "engine"]), ["technique"]);
        let (long, other) = ("a".repeat(500_000), "b".repeat(500_000));
        assert!(names(&long, &[&other, &long]).is_empty());
        assert!(names("aaa", &[&long]).is_empty());
    }

    #[test]
    fn a_far_name_is_offered_where_they_are_too_many_to_list() {
        assert_eq!(remedy("x", &["rows", "seed"]), "choose one of `rows`, `seed`");
        assert_eq!(remedy("x", &["rows"; LISTED_MAX + 1]), "did you mean `rows`?");
        assert_eq!(remedy("x", &[]), "nothing is known here; remove it");
    }
}
