//! The studies that come with the command, and studies in files.

use std::path::Path;

use workahead_machine::regular_file;

use crate::error::StudyError;
use crate::nearest;
use crate::spec::TEXT_BYTES_MAX;

/// A study as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// Its path below `studies/`, without `.toml`.
    pub id: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

static STUDIES: &[EmbeddedFile] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// Every embedded study, by id.
pub fn all() -> &'static [EmbeddedFile] {
    STUDIES
}

/// A study's id and text: an embedded one by its id, or a file by its path.
pub fn find(name: &Path) -> Result<(String, String), StudyError> {
    if let Some(study) = STUDIES.iter().find(|study| name.as_os_str() == study.id) {
        return Ok((study.id.to_owned(), study.text.to_owned()));
    }
    if !name.as_os_str().as_encoded_bytes().ends_with(b".toml") {
        return Err(unknown(&name.to_string_lossy()));
    }
    let text = regular_file::read_named_text(name, TEXT_BYTES_MAX as u64)
        .map_err(|source| StudyError::Read { path: name.to_owned(), source })?;
    let stem = name.file_stem().unwrap_or_default().to_string_lossy();
    Ok((stem.into_owned(), text))
}

fn unknown(name: &str) -> StudyError {
    let known: Vec<&str> = STUDIES.iter().map(|study| study.id).collect();
    let near = nearest::names(name, &known);
    let remedy = match near.is_empty() {
        true => "`workahead study list` names them all, a file's name ends in .toml".to_owned(),
        false => format!("did you mean {}?", near.join(" or ")),
    };
    StudyError::UnknownStudy { given: name.to_owned(), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn every_embedded_study_can_be_read() {
        for study in all() {
            let spec = Spec::parse(study.id, study.text).unwrap_or_else(|error| panic!("{error}"));
            assert!(spec.time_s.is_some(), "{} has no time_s, for `study list`", study.id);
            assert!(spec.memory_mib.is_some(), "{} has no memory_mib", study.id);
        }
    }

    #[test]
    fn unknown_studies_and_files() {
        let unknown = find("no-such-study-at-all".as_ref()).unwrap_err().to_string();
        assert!(unknown.contains("study list"), "{unknown}");
        let missing = find("/nowhere/missing.toml".as_ref()).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read /nowhere/missing.toml"), "{missing}");
    }
}
