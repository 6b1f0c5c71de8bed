//! The processes below one process, from `/proc/PID/stat` (proc_pid_stat(5)).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `root` and all that descend from it, itself first; empty when it has ended.
pub(crate) fn below(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut alive = false;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // An ended process has no parent any more.
        let Some(parent) = parent_of(&entry.path()) else { continue };
        alive |= pid == root;
        children.entry(parent).or_default().push(pid);
    }
    let mut tree: Vec<u32> = alive.then_some(root).into_iter().collect();
    let mut at = 0;
    while let Some(pid) = tree.get(at) {
        tree.extend(children.remove(pid).into_iter().flatten());
        at += 1;
    }
    tree
}

fn parent_of(process: &Path) -> Option<u32> {
    parent_in(&fs::read_to_string(process.join("stat")).ok()?)
}

/// The fourth field of `PID (NAME) STATE PPID …`; the name may hold anything, parentheses too.
/// A zombie does not count: it has ended.
fn parent_in(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" { None } else { fields.next()?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (a) b) (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) Z 7 12 12 0"), None);
        assert_eq!(parent_in("12 (a"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn this_process_is_above_its_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let tree = below(std::process::id());
        assert_eq!(tree.first(), Some(&std::process::id()));
        assert!(tree.contains(&child.id()), "{tree:?} without {}", child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(below(child.id()).is_empty());
    }
}
