//! Two checkouts of a small project build in one target folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::*;

/// Two checkouts and a folder for what they build; removed at the end.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let process = std::process::id();
        let folder = std::env::temp_dir().join(format!("workahead-checkout-{name}-{process}"));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder: folder.canonicalize().unwrap() }
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// A project that prints a word, whose files are a day old.
    fn checkout(&self, name: &str, word: &str) -> PathBuf {
        let root = self.folder.join(name);
        std::fs::create_dir_all(root.join("src")).unwrap();
        let manifest = "[package]\nname = \"printer\"\nedition = \"2024\"\n[workspace]\n";
        let main = format!("fn main() {{ print!(\"{word}\"); }}\n");
        let old = SystemTime::now() - Duration::from_secs(86_400);
        for (file, text) in [("Cargo.toml", manifest), ("src/main.rs", &main)] {
            std::fs::write(root.join(file), text).unwrap();
            File::open(root.join(file)).unwrap().set_modified(old).unwrap();
        }
        assert!(Command::new("git").args(["init", "-q"]).arg(&root).status().unwrap().success());
        root
    }

    /// The output of a checkout's program, built where it has to be.
    fn prints(&self, root: &Path) -> String {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.current_dir(root).args(["run", "--quiet", "--offline"]);
        cargo.env("CARGO_TARGET_DIR", self.target()).env_remove("RUSTFLAGS");
        let output = cargo.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_shared_target_folder_mixes_two_checkouts_unless_it_says_whose_it_is() {
    let place = Place::new("mixed");
    let one = place.checkout("one", "one");
    let two = place.checkout("two", "two");
    assert_eq!(place.prints(&one), "one");
    // The fault: Cargo takes the other checkout's program. Should this fail one day, Cargo looks
    // at what files hold, and this module can go.
    assert_eq!(place.prints(&two), "one");

    assert!(hold_folder(&two, &place.target()).unwrap().changed_hands);
    assert_eq!(place.prints(&two), "two");
    assert!(!hold_folder(&two, &place.target()).unwrap().changed_hands, "it is ours already");
    assert!(hold_folder(&one, &place.target()).unwrap().changed_hands);
    assert_eq!(place.prints(&one), "one");
}

#[test]
fn a_folder_of_its_own_is_left_alone() {
    let place = Place::new("own");
    let one = place.checkout("one", "one");
    let main = one.join("src/main.rs");
    let before = main.metadata().unwrap().modified().unwrap();
    assert!(!hold_folder(&one, &one.join("target")).unwrap().changed_hands);
    assert_eq!(main.metadata().unwrap().modified().unwrap(), before);
    assert!(!one.join("target").exists());
}

#[test]
fn another_checkout_waits_until_the_folder_is_free() {
    let place = Place::new("held");
    let (one, two) = (place.checkout("one", "one"), place.checkout("two", "two"));
    let held = hold_folder(&one, &place.target()).unwrap();
    let target = place.target();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(hold_folder(&two, &target).unwrap().changed_hands));
        assert!(receiver.recv_timeout(Duration::from_millis(200)).is_err(), "it did not wait");
        drop(held);
        assert!(receiver.recv().unwrap());
    });
}
