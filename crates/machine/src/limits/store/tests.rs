//! Saving and finding limits; files that are broken, old, or somebody else's.

use std::fs;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::limits::sample;

/// A directory, this machine, and limits that claim to be of it.
fn place() -> (tempfile::TempDir, Machine, Limits) {
    let machine = Machine::here();
    let limits = Limits { machine: machine.fingerprint(), ..sample::limits() };
    (tempfile::tempdir().unwrap(), machine, limits)
}

#[test]
fn saved_limits_are_loaded_and_nothing_else_is_left() {
    let (directory, machine, limits) = place();
    let store = Store::at(&directory.path().join("not/there/yet"));
    assert_eq!(store.load(&machine), None);
    let path = store.save(&machine, &limits).unwrap();
    assert_eq!(store.load(&machine), Some(limits));
    assert_eq!(path, store.path(&machine).unwrap());
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [format!("{}.json", machine.fingerprint()).as_str()]);
}

#[test]
fn broken_files_and_those_of_other_versions_and_machines_count_as_none() {
    let (directory, machine, limits) = place();
    let store = Store::at(directory.path());
    let path = store.save(&machine, &limits).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let other_version = whole.replacen("\"version\": 3", "\"version\": 1", 1);
    let other_machine = whole.replacen(&limits.machine, "0123456789abcdef", 1);
    let no_number = whole.replacen("\"pause_ns\": 10.0", "\"pause_ns\": null", 1);
    for text in [&whole[..whole.len() / 2], "", "[]", &other_version, &other_machine, &no_number] {
        assert_ne!(text, whole);
        fs::write(&path, text).unwrap();
        assert_eq!(store.load(&machine), None, "{text}");
    }
    fs::write(&path, [0xff, 0xfe, 0]).unwrap();
    assert_eq!(store.load(&machine), None);
    fs::write(&path, whole).unwrap();
    assert_eq!(store.load(&machine), Some(limits));
}

#[test]
fn saved_limits_are_not_measured_again() {
    let (directory, machine, limits) = place();
    let store = Store::at(directory.path());
    store.save(&machine, &limits).unwrap();
    let mut measuring = |_: Progress<'_>| panic!("nothing is to be measured");
    let stop = AtomicBool::new(false);
    let found = Limits::load_or_measure(&machine, &store, &mut measuring, &stop).unwrap();
    assert_eq!(found.limits, limits);
    assert!(
        matches!(found.origin, Origin::Saved(path) if Some(&path) == store.path(&machine).as_ref())
    );
}

#[test]
fn a_stop_ends_the_measurement_and_saves_nothing() {
    let (directory, machine, _) = place();
    let store = Store::at(directory.path());
    let stop = AtomicBool::new(true);
    let error = Limits::load_or_measure(&machine, &store, &mut |_| (), &stop).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_place_that_cannot_be_written_is_one_line_with_the_remedy() {
    let (directory, machine, limits) = place();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::at(&file).save(&machine, &limits).unwrap_err().to_string();
    assert!(error.contains("XDG_CACHE_HOME") && !error.contains('\n'), "{error}");
    let nowhere = Store::from_environment(None, None);
    let error = nowhere.save(&machine, &limits).unwrap_err();
    assert!(matches!(error, Error::NoCache), "{error}");
}

#[test]
fn the_environment_names_the_directory() {
    let of = |cache: Option<&str>, home: Option<&str>| {
        Store::from_environment(cache.map(OsString::from), home.map(OsString::from)).directory
    };
    assert_eq!(of(Some("/c"), Some("/h")), Some(PathBuf::from("/c/workahead/limits")));
    assert_eq!(of(Some("relative"), Some("/h")), Some(PathBuf::from("/h/.cache/workahead/limits")));
    assert_eq!(of(Some(""), Some("/h")), Some(PathBuf::from("/h/.cache/workahead/limits")));
    assert_eq!(of(None, Some("")), None);
}
