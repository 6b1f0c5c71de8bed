//! `workahead scheduler` in a build without it.
#![cfg(not(feature = "scheduler"))]

mod process;

use process::Place;

#[test]
fn a_build_without_the_scheduler_names_the_feature() {
    let place = Place::new();
    for words in [&["scheduler", "run", "bonus=5ms"][..], &["scheduler"]] {
        let said = place.fails(words, 2);
        assert!(said.contains("--features scheduler"), "{said}");
    }
}
