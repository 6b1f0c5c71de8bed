//! How an experiment of the papers is done (row D1): on this machine, on a model, by arithmetic, or
//! not at all. The engines of its studies say it; arithmetic is said by the entry.

use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use crate::tidy::Tree;

/// The marks, in the order in which they are shown.
pub(crate) const MARKS: [&str; 4] = ["real", "modelled", "arithmetic", "not done"];

/// Words that an entry may state itself.
pub(super) const ARITHMETIC: &str = "arithmetic";

/// The engines that each study runs on, by its id.
pub(crate) struct Engines(BTreeMap<String, BTreeSet<String>>);

impl Engines {
    /// Of the studies that ship. A case or an axis of engines counts as each of them.
    pub(crate) fn of(tree: &Tree) -> Self {
        let studies = tree.files.iter().filter_map(|file| {
            let id = file.path.strip_prefix("studies/")?.strip_suffix(".toml")?;
            let table = file.text.parse::<toml::Table>().ok()?;
            let cases = table.get("cases").and_then(toml::Value::as_array).into_iter().flatten();
            let tables = cases.chain(table.get("axes")).filter_map(toml::Value::as_table);
            let named = tables.chain([&table]).filter_map(|table| table.get("engine"));
            let engines = named.flat_map(names).collect();
            Some((id.to_owned(), engines))
        });
        Self(studies.collect())
    }

    fn of_study(&self, id: &str) -> impl Iterator<Item = &str> {
        self.0.get(id).into_iter().flatten().map(String::as_str)
    }
}

/// `"native"`, `["native", "modelled"]`, `{ modelled = "p4-ht-2m" }`.
fn names(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Array(values) => values.iter().flat_map(names).collect(),
        toml::Value::Table(table) => table.keys().cloned().collect(),
        value => value.as_str().map(str::to_owned).into_iter().collect(),
    }
}

/// The marks of an experiment; none for a row of another kind, or where none can be found.
pub(crate) fn marks(entry: &Entry, engines: &Engines) -> Vec<&'static str> {
    if !entry.row.starts_with('E') {
        return Vec::new();
    }
    let on: Vec<&str> = entry.studies.iter().flat_map(|id| engines.of_study(id)).collect();
    let [real, modelled, arithmetic, not_done] = MARKS;
    let mut marks = Vec::new();
    if on.iter().any(|engine| *engine != modelled) {
        marks.push(real);
    }
    if on.contains(&modelled) {
        marks.push(modelled);
    }
    if entry.mark == ARITHMETIC {
        marks.push(arithmetic);
    }
    if marks.is_empty() && !entry.done() {
        marks.push(not_done);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rest: &str) -> Vec<&'static str> {
        let tree = Tree::of(&[
            ("studies/a/real.toml", "engine = \"native\""),
            ("studies/a/model.toml", "engine = \"modelled\""),
            ("studies/a/axis.toml", "[axes]\nengine = [\"postgres\", \"modelled\"]"),
            ("studies/a/case.toml", "engine = \"modelled\"\n[[cases]]\nengine = \"duckdb\""),
            ("studies/a/table.toml", "engine = { modelled = \"p4-ht-2m\" }"),
            ("studies/a/none.toml", "title = \"x\""),
        ]);
        let entry = toml::from_str(&format!("row = \"E4.6\"\nwords = \"x\"\n{rest}\n")).unwrap();
        marks(&entry, &Engines::of(&tree))
    }

    #[test]
    fn engines_tell_real_from_modelled() {
        assert_eq!(of("study = [\"a/real\"]"), ["real"]);
        assert_eq!(of("study = [\"a/model\"]"), ["modelled"]);
        assert_eq!(of("study = [\"a/table\"]"), ["modelled"]);
        for both in ["[\"a/model\", \"a/real\"]", "[\"a/axis\"]", "[\"a/case\"]"] {
            assert_eq!(of(&format!("study = {both}")), ["real", "modelled"]);
        }
    }

    #[test]
    fn arithmetic_is_said_and_nothing_is_not_done() {
        assert_eq!(of("mark = \"arithmetic\""), ["arithmetic"]);
        let beside = of("mark = \"arithmetic\"\nstudy = [\"a/model\"]");
        assert_eq!(beside, ["modelled", "arithmetic"]);
        assert_eq!(of("reason = \"a controller's\""), ["not done"]);
        assert_eq!(of("reason = \"no verdict yet\"\nstudy = [\"a/real\"]"), ["real"]);
        assert!(of("").is_empty() && of("study = [\"a/none\"]").is_empty());
    }

    #[test]
    fn other_rows_have_no_mark() {
        let entry = toml::from_str("row = \"S4.7\"\nwords = \"x\"\nreason = \"x\"").unwrap();
        assert!(marks(&entry, &Engines::of(&Tree::default())).is_empty());
    }
}
