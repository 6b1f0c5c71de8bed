//! Which studies were started here, where no run writes: a result's own record of its study is the
//! run's to write, and would be a way to rights that the study never had.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use anyhow::Context;
use workahead_machine::{atomic_file, regular_file};
use workahead_study::spec::Spec;

use crate::commands::study::arguments::DataArguments;

/// The directory, below that of all engines' data.
pub(super) const DIRECTORY: &str = "started";
/// A study with its names is no longer.
const BYTES_MAX: u64 = 32 << 20;

/// Writes down that a study is started.
pub(super) fn keep(spec: &Spec, data: &DataArguments) -> anyhow::Result<()> {
    let directory = workahead_engines::private_directory(DIRECTORY, &data.directory())?;
    let path = directory.join(name(spec));
    let kept = atomic_file::write_whole(&path, text(spec).as_bytes());
    kept.with_context(|| format!("can't write {}", path.display()))
}

/// Whether it was.
pub(super) fn is_known(spec: &Spec, data: &DataArguments) -> bool {
    let path: PathBuf = data.directory().join(DIRECTORY).join(name(spec));
    regular_file::read_text(&path, BYTES_MAX).is_ok_and(|kept| kept == text(spec))
}

/// As JSON, so that no part can pass for a piece of its neighbour.
fn text(spec: &Spec) -> String {
    serde_json::json!([spec.id, spec.scale, spec.text]).to_string()
}

fn name(spec: &Spec) -> String {
    let mut hasher = DefaultHasher::new();
    text(spec).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_study_is_another_study() {
        let piece = "title = 'u'\nquestion = '?'\nengine = 'duckdb'\n#'''\n\
                     workload = { rows = 10 }\n[axes]\nsize = ['q1']\n";
        let beginning = "title = 't'\nengine = 'duckdb'\nquestion = '''\n";
        let begun = Spec::parse("s", &format!("{beginning}\n\n{piece}")).unwrap();
        let other = Spec::parse(&format!("s\n\n{beginning}"), piece).unwrap();
        let joined = |spec: &Spec| format!("{}\n\n{}", spec.id, spec.text);
        assert_eq!(joined(&begun), joined(&other));
        assert_ne!(text(&begun), text(&other));
    }
}
