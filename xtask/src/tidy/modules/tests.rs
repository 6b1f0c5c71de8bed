//! Crates made up of a few lines.

use super::*;

fn edges(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let tree = Tree::of(files);
    let found = Crate::from(&tree, tree.file("c/src/lib.rs").unwrap());
    let short = |path: &str| path.trim_start_matches("c/src/").trim_end_matches(".rs").to_owned();
    let edges = found.edges();
    edges.iter().flat_map(|(from, to)| to.iter().map(|to| (short(from), short(to)))).collect()
}

fn pair(from: &str, to: &str) -> (String, String) {
    (from.into(), to.into())
}

#[test]
fn uses_lead_to_files() {
    let found = edges(&[
        ("c/src/lib.rs", "mod a; mod b;"),
        ("c/src/a.rs", "mod inner; use crate::b::B;"),
        ("c/src/a/inner.rs", "fn f() { super::g(); crate::b::h() }"),
        ("c/src/b.rs", "pub struct B; // crate::a::no"),
    ]);
    let expected = [pair("a", "b"), pair("a/inner", "a"), pair("a/inner", "b")];
    assert_eq!(found, expected);
}

#[test]
fn what_is_handed_on_counts_where_it_is_defined() {
    let found = edges(&[
        ("c/src/lib.rs", "mod a; mod b; pub use a::A; pub use crate::a::*;"),
        ("c/src/a.rs", "mod deep; pub(crate) use deep::Deep; pub struct A; pub struct Other;"),
        ("c/src/a/deep.rs", "pub struct Deep;"),
        ("c/src/b.rs", "use crate::{A, Other, a::Deep};"),
    ]);
    assert_eq!(found, [pair("b", "a"), pair("b", "a/deep")]);
}

#[test]
fn submodules_are_used_by_their_name() {
    let found = edges(&[
        ("c/src/lib.rs", "mod a; fn f() { a::g() }"),
        ("c/src/a.rs", "mod b; use b::B; use std::a::b;"),
        ("c/src/a/b.rs", "pub struct B;"),
    ]);
    assert_eq!(found, [pair("a", "a/b"), pair("lib", "a")]);
}

#[test]
fn tests_are_left_out_of_edges_but_not_of_files() {
    let files = [
        ("c/src/lib.rs", "mod a; #[cfg(test)] mod tests;"),
        ("c/src/a.rs", "#[cfg(test)] mod tests { use crate::x; }"),
        ("c/src/tests.rs", "use crate::a::A;"),
    ];
    assert!(edges(&files).is_empty());
    let tree = Tree::of(&files);
    let found = Crate::from(&tree, tree.file("c/src/lib.rs").unwrap());
    assert!(found.files.contains("c/src/tests.rs"));
}

#[test]
fn roots_are_those_of_cargo() {
    let tree = Tree::of(&[
        ("c/build.rs", ""),
        ("c/src/lib.rs", ""),
        ("c/src/build.rs", ""),
        ("c/tests/a.rs", ""),
        ("c/tests/b/main.rs", ""),
        ("c/tests/b/other.rs", ""),
        ("c/tests/process/mod.rs", ""),
        ("d/src/lib.rs", ""),
    ]);
    let paths: Vec<&str> = roots(&tree, "c").iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["c/build.rs", "c/src/lib.rs", "c/tests/a.rs", "c/tests/b/main.rs"]);
}
