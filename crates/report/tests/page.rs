//! The page through its public face, from results that no run had to make. Each sample is also
//! written below `target/tmp/report/`, to look at.

mod sample;

use std::fs;
use std::path::Path;

use workahead_report::{csv, markdown, render};
use workahead_study::results::Results;

/// Renders, keeps a copy to look at, and checks what holds for every page.
fn page(name: &str, results: &Results) -> String {
    let html = render(results).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("{name}.html")), &html).unwrap();
    fs::write(dir.join(format!("{name}.md")), markdown(results).unwrap()).unwrap();
    fs::write(dir.join(format!("{name}.csv")), csv(results)).unwrap();
    html
}

#[test]
fn samples() {
    page("quick", &sample::quick());
    page("hash_join", &sample::hash_join());
    page("sizes", &sample::sizes());
}
