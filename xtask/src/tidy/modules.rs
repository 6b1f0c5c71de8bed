//! The modules of a crate, file by file, and which uses which.
//!
//! ```text
//! src/lib.rs ── mod join; ──► src/join.rs ── mod spill; ──► src/join/spill.rs
//!                                 ▲    use super::Spec            │
//!                                 └───────────────────────────────┘
//! ```
//!
//! Paths are read, not understood: those that begin with `crate`, `self`, `super` or a submodule,
//! in code outside of tests. What a module hands on (`pub use x::Y`) counts as a use of where it is
//! defined, and the declaration `mod x;` as none.

mod paths;
mod tests_out;

use std::collections::{BTreeMap, BTreeSet};

use super::code::code_only;
use super::{File, Tree};
use paths::Use;

pub(crate) use tests_out::without_tests;

/// The name of a module: `["join", "spill"]`; the root has none.
type Name = Vec<String>;

/// One file that is a module.
struct Module {
    path: String,
    uses: Vec<Use>,
    /// Paths in code that begin with a name of a module below.
    submodules: BTreeSet<String>,
    code: String,
}

/// The files that a crate root reaches.
#[derive(Default)]
pub(crate) struct Crate {
    modules: BTreeMap<Name, Module>,
    /// Every file, tests too.
    pub(crate) files: BTreeSet<String>,
}

impl Crate {
    /// Follows the declarations from a root file.
    pub(crate) fn from(tree: &Tree, root: &File) -> Self {
        let mut found = Self::default();
        found.add(tree, root, Vec::new(), true);
        found
    }

    fn add(&mut self, tree: &Tree, file: &File, name: Name, is_used: bool) {
        if !self.files.insert(file.path.clone()) {
            return;
        }
        let code = code_only(&file.text);
        let plain = without_tests(&code);
        for included in paths::included(&file.text) {
            let path = super::links::resolve(&file.path, included);
            self.files.insert(path);
        }
        let mut submodules = BTreeSet::new();
        for declared in paths::declared(&file.text, &code) {
            let Some(child) = child(tree, file, name.is_empty(), &declared) else { continue };
            let in_plain = is_used && paths::declares(&plain, &declared.name);
            let mut below = name.clone();
            below.push(declared.name.clone());
            submodules.insert(declared.name.clone());
            self.add(tree, child, below, in_plain);
        }
        if is_used {
            let uses = paths::uses(&plain);
            let path = file.path.clone();
            self.modules.insert(name, Module { path, uses, submodules, code: plain });
        }
    }

    /// For each file, the files that it uses.
    pub(crate) fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges = BTreeMap::new();
        for (name, module) in &self.modules {
            let to: &mut BTreeSet<&str> = edges.entry(module.path.as_str()).or_default();
            for used in module.uses.iter().filter(|used| !used.hands_on) {
                let Some(full) = self.absolute(name, &used.path) else { continue };
                if let Some(target) = self.defining(&full, 0).filter(|path| *path != module.path) {
                    to.insert(target);
                }
            }
        }
        edges
    }

    /// `super::x` in `a::b` → `a::x`; `None` for paths of other crates.
    fn absolute(&self, from: &Name, path: &[String]) -> Option<Name> {
        let first = path.first()?;
        let mut full = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.clone(),
            child if self.modules.get(from)?.submodules.contains(child) => {
                return Some(from.iter().chain(path).cloned().collect());
            }
            _ => return None,
        };
        let ups = path.iter().take_while(|part| *part == "super" || *part == "self");
        for up in ups {
            if up == "super" {
                full.pop();
            }
        }
        let rest =
            path.iter().skip_while(|part| ["crate", "self", "super"].contains(&part.as_str()));
        full.extend(rest.cloned());
        Some(full)
    }

    /// The file that defines the item of a path.
    fn defining(&self, full: &Name, depth: usize) -> Option<&str> {
        /// Of modules that hand on what another hands on.
        const DEPTH_MOST: usize = 8;
        let length = (0..=full.len()).rev().find(|n| self.modules.contains_key(&full[..*n]))?;
        let (inside, rest) = full.split_at(length);
        let module = self.modules.get(inside)?;
        let Some(item) = rest.first().filter(|_| depth < DEPTH_MOST) else {
            return Some(&module.path);
        };
        let inside = inside.to_vec();
        // Imported here, to be handed on or by chance: only its origin counts.
        let brought = module.uses.iter().filter(|used| used.is_import);
        for used in brought.clone().filter(|used| used.name.as_ref() == Some(item)) {
            if let Some(full) = self.absolute(&inside, &used.path) {
                return self.defining(&full, depth + 1);
            }
        }
        for used in brought.filter(|used| used.name.is_none()) {
            let Some(full) = self.absolute(&inside, &used.path) else { continue };
            let Some(other) = self.modules.get(&full) else { continue };
            let here = paths::defines(&module.code, item);
            if !here && (paths::defines(&other.code, item) || other.hands_on(item)) {
                return self.defining(&full.into_iter().chain([item.clone()]).collect(), depth + 1);
            }
        }
        Some(&module.path)
    }
}

impl Module {
    fn hands_on(&self, item: &str) -> bool {
        self.uses.iter().any(|used| used.hands_on && used.name.as_deref() == Some(item))
    }
}

/// The file of a declared module.
fn child<'a>(
    tree: &'a Tree,
    file: &File,
    is_root: bool,
    declared: &paths::ModDeclaration,
) -> Option<&'a File> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if let Some(path) = &declared.path {
        return tree.file(&super::links::resolve(&file.path, path));
    }
    let stem = file.name().trim_end_matches(".rs");
    let folder = match is_root || stem == "mod" {
        true => folder.to_owned(),
        false => format!("{folder}/{stem}"),
    };
    let name =
        declared.within.iter().chain([&declared.name]).cloned().collect::<Vec<_>>().join("/");
    tree.file(&format!("{folder}/{name}.rs"))
        .or_else(|| tree.file(&format!("{folder}/{name}/mod.rs")))
}

/// Files from which the targets of a package start: `src/lib.rs`, `tests/a.rs`, `tests/b/main.rs` …
pub(crate) fn roots<'a>(tree: &'a Tree, package: &str) -> Vec<&'a File> {
    let is_root = |file: &&File| {
        let Some(inside) = file.path.strip_prefix(package).and_then(|path| path.strip_prefix('/'))
        else {
            return false;
        };
        let parts: Vec<&str> = inside.split('/').collect();
        match parts.as_slice() {
            ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
            ["src", "bin", rest @ ..] | ["tests" | "benches" | "examples", rest @ ..] => match rest
            {
                [file] => file.ends_with(".rs"),
                [_, "main.rs"] => true,
                _ => false,
            },
            _ => false,
        }
    };
    tree.rust().filter(is_root).collect()
}

#[cfg(test)]
mod tests;
