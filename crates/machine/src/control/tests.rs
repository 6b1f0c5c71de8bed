//! Settings of described machines, changed and put back; journals of runs that were killed.

use std::fs;
use std::path::Path;

use super::*;

fn described(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysroot) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let file = directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
    }
    let root = Sysroot::at(directory.path()).unwrap();
    (directory, root)
}

const SMT: &str = "sys/devices/system/cpu/smt/control";
const PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

fn server() -> (tempfile::TempDir, Sysroot) {
    described(&[(SMT, "on"), (PAGES, "always [madvise] never")])
}

/// The machine as a kill would leave it, with nobody alive who holds the journal.
fn copy(from: &Path) -> (tempfile::TempDir, Sysroot) {
    fn all(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => all(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    all(from, directory.path());
    let root = Sysroot::at(directory.path()).unwrap();
    (directory, root)
}

#[test]
fn everything_is_put_back_when_dropped() {
    let (_directory, root) = server();
    {
        let (mut controls, restored) = Controls::take(&root).unwrap();
        assert!(restored.is_empty());
        controls.smt_off().unwrap();
        controls.smt_off().unwrap();
        controls.transparent_huge_pages("never").unwrap();
        controls.transparent_huge_pages("always").unwrap();
        assert_eq!(current(&root, SMT).unwrap(), "off");
        assert_eq!(current(&root, PAGES).unwrap(), "always");
    }
    assert_eq!(current(&root, SMT).unwrap(), "on");
    assert_eq!(current(&root, PAGES).unwrap(), "madvise");
    assert!(recover(&root).is_empty(), "nothing is left to put back");
}

#[test]
fn a_panic_puts_everything_back() {
    let (_directory, root) = server();
    let inside = root.clone();
    let panicked = std::panic::catch_unwind(move || {
        let (mut controls, _) = Controls::take(&inside).unwrap();
        controls.smt_off().unwrap();
        assert_eq!(current(&inside, SMT).unwrap(), "on", "told to panic");
    });
    assert!(panicked.is_err());
    assert_eq!(current(&root, SMT).unwrap(), "on");
}

#[test]
fn a_killed_run_is_put_back_by_the_next_command() {
    let (directory, root) = server();
    let (mut controls, _) = Controls::take(&root).unwrap();
    controls.smt_off().unwrap();
    controls.transparent_huge_pages("never").unwrap();
    assert!(recover(&root).is_empty(), "the owner of the journal is alive");
    let (_killed, left) = copy(directory.path());
    let restored = recover(&left);
    let reported: Vec<(&str, &str)> =
        restored.iter().map(|one| (one.path.as_str(), one.value.as_str())).collect();
    let [pages, smt] = [format!("/{PAGES}"), format!("/{SMT}")];
    assert_eq!(reported, [(pages.as_str(), "madvise"), (smt.as_str(), "on")], "last one first");
    assert_eq!(current(&left, SMT).unwrap(), "on");
    assert!(recover(&left).is_empty(), "once is enough");
    let (_controls, restored) = Controls::take(&left).unwrap();
    assert!(restored.is_empty());
}

#[test]
fn nobody_else_writes_to_the_journal() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, root) = server();
    let _controls = Controls::take(&root).unwrap();
    for name in ["run/workahead", "run/workahead/settings.journal"] {
        let mode = fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{name}: {mode:o}");
    }
}

#[test]
fn a_journal_of_somebody_else_changes_only_settings() {
    let (directory, root) = server();
    let (setting, secret) =
        (directory.path().join("proc/pattern"), directory.path().join("secret"));
    let journal = directory.path().join("run/workahead/settings.journal");
    for directory in [&setting, &journal].map(|path| path.parent().unwrap()) {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(&setting, "core").unwrap();
    for path in ["proc/pattern", "sys/kernel/../../proc/pattern"] {
        let line = format!(r#"{{"path":"{path}","before":"|evil","ours":"core"}}"#);
        fs::write(&journal, line + "\n").unwrap();
        assert_eq!(recover(&root), []);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "core");
    }
    fs::write(&secret, "precious").unwrap();
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink(&secret, &journal).unwrap();
    assert_eq!(recover(&root), []);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "precious");
}

#[test]
fn killed_at_any_byte_of_the_journal() {
    let (directory, root) = server();
    let (mut controls, _) = Controls::take(&root).unwrap();
    controls.smt_off().unwrap();
    controls.transparent_huge_pages("never").unwrap();
    let journal = fs::read(directory.path().join("run/workahead/settings.journal")).unwrap();
    let first = journal.iter().position(|byte| *byte == b'\n').unwrap();
    for length in first + 1..journal.len() {
        let (killed, left) = copy(directory.path());
        // The second change is made only once its line is whole.
        fs::write(killed.path().join(PAGES), "always [madvise] never\n").unwrap();
        let path = killed.path().join("run/workahead/settings.journal");
        fs::write(path, &journal[..length]).unwrap();
        let restored = recover(&left);
        assert_eq!(restored.len(), 1, "{length}: {restored:?}");
        assert_eq!(current(&left, SMT).unwrap(), "on");
    }
}

#[test]
fn settings_changed_by_others_are_left_alone_and_reported() {
    let (directory, root) = server();
    let (mut controls, _) = Controls::take(&root).unwrap();
    controls.smt_off().unwrap();
    fs::write(directory.path().join(SMT), "forceoff\n").unwrap();
    let restored = controls.restore();
    assert_eq!(restored[0].value, "forceoff");
    let trouble = restored[0].trouble.as_deref().unwrap();
    assert!(trouble.contains("somebody else") && trouble.contains("on"), "{trouble}");
    assert_eq!(current(&root, SMT).unwrap(), "forceoff");
}

#[test]
fn two_runs_do_not_mix() {
    let (_directory, root) = server();
    let (first, _) = Controls::take(&root).unwrap();
    let refused = Controls::take(&root).unwrap_err();
    assert!(refused.0.contains("another run"), "{refused}");
    drop(first);
    assert!(Controls::take(&root).is_ok());
}

#[test]
fn before_an_exit_without_drops() {
    // The process's other tests share what is alive, so theirs are closed too: a machine of its
    // own, and only its own answers looked at.
    let (_directory, root) = server();
    let held =
        ControlState { root: root.clone(), journal: Journal::open(&root).unwrap(), closed: false };
    let mut held = held;
    held.change(SMT, "off").unwrap();
    held.closed = true;
    held.restore();
    assert_eq!(current(&root, SMT).unwrap(), "on");
    let refused = held.change(SMT, "off").unwrap_err();
    assert!(refused.0.contains("ending"), "{refused}");
}

#[test]
fn unsupported_changes_are_reported_in_words() {
    let says = |files: &[(&str, &str)]| {
        let (_directory, root) = described(files);
        let (mut controls, _) = Controls::take(&root).unwrap();
        controls.smt_off().unwrap_err().0
    };
    assert!(says(&[(SMT, "notsupported")]).contains("hides them"));
    assert!(says(&[(SMT, "notimplemented")]).contains("does not implement"));
    assert!(says(&[("proc/version", "x")]).contains("no smt/control"));
    let groups = "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
    let of_version_one = says(&[
        (SMT, "on"),
        ("proc/self/mountinfo", groups),
        ("sys/fs/cgroup/cpuset/docker/cpuset.cpus", "0-7"),
    ]);
    assert!(of_version_one.contains("docker"), "{of_version_one}");
    let (_directory, root) = described(&[(SMT, "off")]);
    let (mut controls, _) = Controls::take(&root).unwrap();
    controls.smt_off().unwrap();
    assert!(controls.transparent_huge_pages("never").unwrap_err().0.contains("no setting"));
    controls.smt_on().unwrap();
    drop(controls);
    assert_eq!(current(&root, SMT).unwrap(), "off");
}

#[test]
fn a_place_without_a_journal_changes_nothing() {
    let (directory, root) = server();
    fs::write(directory.path().join("run"), "a file in the way\n").unwrap();
    let refused = Controls::take(&root).unwrap_err();
    assert!(refused.0.contains("journal"), "{refused}");
    assert_eq!(current(&root, SMT).unwrap(), "on");
}
