//! `workahead sql` in a build without DataFusion.
#![cfg(not(feature = "sql"))]

mod process;

use process::Place;

#[test]
fn a_build_without_sql_names_the_feature() {
    let place = Place::new();
    for words in [&["sql", "select 1"][..], &["sql", "--tpch", "all", "--data", "."], &["sql"]] {
        let said = place.fails(words, 2);
        assert!(said.contains("--features sql"), "{said}");
    }
}
