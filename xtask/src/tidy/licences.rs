//! What the programs are built from may be passed on under Apache-2.0: the licences of every
//! dependency, as Cargo knows them, against a list.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Finding;
use crate::workspace::Workspace;

/// Licences that ask for nothing but their notice. GPL and CDDL are absent on purpose.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Asks Cargo for the packages that this platform's builds use.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let host = host_platform()?;
    let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &host];
    let output = workspace.cargo(&words).output().context("cargo metadata does not start")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    Ok(metadata.packages.iter().filter_map(fault).collect())
}

fn host_platform() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Ours, whose BPF object is under the GPL, as the kernel wants it.
const OF_THE_KERNEL: (&str, &str) = ("workahead-scheduler", "Apache-2.0 AND GPL-2.0-only");

fn fault(package: &Package) -> Option<Finding> {
    let says = match &package.license {
        None => "names no licence".to_owned(),
        Some(license) if allowed(license) => return None,
        Some(license) if (package.name.as_str(), license.as_str()) == OF_THE_KERNEL => return None,
        Some(license) => format!("is under {license}, which tidy/licences.rs does not allow"),
    };
    Some(Finding::of_path(format!("{} {}", package.name, package.version), says))
}

/// Whether an SPDX expression leaves a choice that is allowed. `/` is the old way to write OR.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&tokens, &mut at) && at == tokens.len()
}

/// alternatives := terms (OR terms)*
fn any_of(tokens: &[&str], at: &mut usize) -> bool {
    let mut allowed = all_of(tokens, at);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= all_of(tokens, at);
    }
    allowed
}

/// terms := term (AND term)*
fn all_of(tokens: &[&str], at: &mut usize) -> bool {
    let mut allowed = one(tokens, at);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(tokens, at);
    }
    allowed
}

/// term := ( alternatives ) | name [WITH exception]
fn one(tokens: &[&str], at: &mut usize) -> bool {
    let Some(name) = tokens.get(*at) else { return false };
    *at += 1;
    if *name == "(" {
        let allowed = any_of(tokens, at);
        let closed = tokens.get(*at) == Some(&")");
        *at += 1;
        return allowed && closed;
    }
    if tokens.get(*at) == Some(&"WITH") {
        let exception = tokens.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        // An exception only ever permits more.
        return ALLOWED.contains(&format!("{name} WITH {exception}").as_str())
            || ALLOWED.contains(name);
    }
    ALLOWED.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_leave_an_allowed_choice() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0-only",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
            "Zlib AND (GPL-2.0-only OR (MIT AND ISC))",
        ] {
            assert!(allowed(good), "{good}");
        }
    }

    #[test]
    fn expressions_that_do_not() {
        for bad in [
            "GPL-3.0-only",
            "CDDL-1.0",
            "MIT AND GPL-2.0-only",
            "(MIT OR Apache-2.0) AND CDDL-1.1",
            "(MIT",
            "",
            "MIT ISC",
        ] {
            assert!(!allowed(bad), "{bad}");
        }
    }

    #[test]
    fn a_package_without_a_licence_is_found() {
        let package = Package { name: "x".into(), version: "1.0.0".into(), license: None };
        assert!(fault(&package).unwrap().to_string().contains("names no licence"));
    }
}
