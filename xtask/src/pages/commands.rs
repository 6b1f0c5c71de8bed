//! Runs the commands of pages as a reader would: in order, in a folder of the page.
//!
//! A page is one script of bash with its strictest settings, so that what a block sets the next one
//! has. Between commands the script prints where it is; from that and the end of the output comes
//! what a failure says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};

use super::blocks::{self, PageCommand};
use super::program::Program;
use crate::counts::Counts;
use crate::test::Depth;
use crate::tidy::Tree;

/// A page that takes longer hangs.
const LIMIT_S: u32 = 300;
/// Pages run at a time.
const BESIDE: usize = 2;
/// Of a failed command's output.
const LINES: usize = 15;
/// Stands before each command's output, with its number.
const MARK: &str = "@@ workahead pages:";
/// Commands that leave nothing behind and say the same wherever they are run: once is enough.
const PRINT_ONLY: [&str; 8] = [
    "machine",
    "limits",
    "counters list",
    "counters papers",
    "simulate",
    "study list",
    "study plan",
    "study show",
];

/// Runs the commands of every page whose path contains the text, those that take long at the last
/// depth.
pub(super) fn run(tree: &Tree, program: &Program, only: &str, depth: Depth) -> Result<Counts> {
    let mut runner = Runner { program, known: BTreeSet::new(), lacking: BTreeMap::new() };
    let (mut pages, mut left_out) = (Vec::new(), Vec::new());
    for file in tree.files.iter().filter(|file| is_page(&file.path) && file.path.contains(only)) {
        let shown = blocks::of_page(&file.text, depth).with_context(|| file.path.clone())?;
        let (run, not) = runner.sort(shown);
        left_out.extend(not.into_iter().map(|(line, why)| format!("{}:{line}: {why}", file.path)));
        if run.iter().any(|shown| shown.seen) {
            pages.push((file.path.as_str(), run));
        }
    }
    let mut counts = runner.pages(&pages)?;
    // Stays where a page's folder does.
    let _ = std::fs::remove_dir(folders());
    counts.skipped = left_out.len() as u64;
    println!("  not run:");
    for line in left_out {
        println!("    {line}");
    }
    Ok(counts)
}

fn is_page(path: &str) -> bool {
    path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"))
}

struct Runner<'a> {
    program: &'a Program,
    /// Those of [`PRINT_ONLY`] that a page before had.
    known: BTreeSet<String>,
    /// By subcommand, the line that says that this build has it not.
    lacking: BTreeMap<String, Option<String>>,
}

impl Runner<'_> {
    /// The commands to run, and those that are not with their reasons.
    fn sort(&mut self, shown: Vec<PageCommand>) -> (Vec<PageCommand>, Vec<(usize, String)>) {
        let (mut run, mut not) = (Vec::new(), Vec::new());
        // Why the line before is left out: one that waits for it would wait for ever.
        let mut before = None;
        for shown in shown {
            let awaited = before.take().filter(|_| shown.text.starts_with("until "));
            let left_out = shown.left_out.clone().or_else(|| self.lacks(&shown.text)).or(awaited);
            before.clone_from(&left_out);
            match left_out {
                Some(why) => not.push((shown.line, why)),
                None if prints_only(&shown.text) && !self.known.insert(shown.text.clone()) => {}
                None => run.push(shown),
            }
        }
        (run, not)
    }

    fn lacks(&mut self, text: &str) -> Option<String> {
        let subcommand = text.strip_prefix("workahead ")?.split_whitespace().next()?;
        let known = self.lacking.entry(subcommand.to_owned());
        known.or_insert_with(|| self.program.lacks(subcommand)).clone()
    }

    /// Runs pages, several at a time: some wait for a server or a clock. Servers of one have other
    /// data than those of another.
    fn pages(&self, pages: &[(&str, Vec<PageCommand>)]) -> Result<Counts> {
        let (next, counts) = (Mutex::new(pages.iter()), Mutex::new(Counts::default()));
        let work = |worker: usize| -> Result<()> {
            let data = servers_data(worker);
            loop {
                let taken = next.lock().expect("nobody panics with it").next();
                let Some((page, shown)) = taken else { return Ok(()) };
                let seen = shown.iter().filter(|shown| shown.seen).count() as u64;
                let start = Instant::now();
                let failure = self.page(page, shown, &data)?;
                let took_s = start.elapsed().as_secs_f64();
                let mut counts = counts.lock().expect("nobody panics with it");
                match failure {
                    None => counts.passed += seen,
                    Some(says) => {
                        println!("{says}");
                        counts.failed += 1;
                    }
                }
                println!("  {page:<34} {seen:>3} commands {took_s:>6.1} s");
            }
        };
        let done = std::thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..BESIDE).map(|at| scope.spawn(move || work(at))).collect();
            workers
                .into_iter()
                .try_for_each(|one| one.join().expect("a page's failure is a result"))
        });
        done?;
        Ok(counts.into_inner().expect("nobody panics with it"))
    }

    /// Runs a page; what went wrong, if anything did. The folder stays then.
    fn page(&self, page: &str, shown: &[PageCommand], data: &Path) -> Result<Option<String>> {
        let folder = folder_of(page)?;
        let (script, log) = (folder.with_extension("sh"), folder.with_extension("log"));
        std::fs::write(&script, self.script(&folder, shown))?;
        let output = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
        let status = Command::new("timeout")
            .args(["--kill-after=10", &LIMIT_S.to_string(), "bash"])
            .arg(&script)
            .env("WORKAHEAD_DATA_DIR", data)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .context("timeout does not start")?;
        if status.success() {
            for path in [&script, &log] {
                std::fs::remove_file(path)?;
            }
            std::fs::remove_dir_all(&folder)?;
            return Ok(None);
        }
        let how = match status.code() {
            Some(124) => format!("took longer than {LIMIT_S} s"),
            _ => status.to_string(),
        };
        let said = std::fs::read(&log)?;
        let said = failure(page, shown, &String::from_utf8_lossy(&said), &how);
        Ok(Some(format!("{said}    (its folder is {})", folder.display())))
    }

    fn script(&self, folder: &Path, shown: &[PageCommand]) -> String {
        let mut script = String::from("set -euo pipefail\n");
        let _ = writeln!(script, "export PATH={:?}:\"$PATH\" NO_COLOR=1", self.program.folder());
        let _ = writeln!(script, "cd {folder:?}");
        // Commands that run beside are the page's own, and end with it.
        script.push_str("trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT\n");
        for (index, shown) in shown.iter().enumerate() {
            let _ = writeln!(script, "echo; echo '{MARK} {index}'\n{}", shown.text);
        }
        script
    }
}

fn prints_only(text: &str) -> bool {
    let words = text.strip_prefix("workahead ").unwrap_or_default();
    PRINT_ONLY.iter().any(|known| words.starts_with(known)) && !text.contains(['>', '|'])
}

/// A new folder for a page, short enough for a server's socket.
fn folder_of(page: &str) -> Result<PathBuf> {
    let name = page.trim_end_matches(".md").replace('/', "-");
    let folder = folders().join(name);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Where private servers of a worker's pages keep their data, as long as the user's own.
fn servers_data(worker: usize) -> PathBuf {
    let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
    PathBuf::from(format!("/var/tmp/workahead-pages-{user}-{worker}"))
}

/// Where the folders of this run's pages are.
fn folders() -> PathBuf {
    std::env::temp_dir().join(format!("workahead-pages-{}", std::process::id()))
}

/// Page, line, command, and the last lines that it printed.
fn failure(page: &str, shown: &[PageCommand], said: &str, how: &str) -> String {
    let (number, last) = said
        .rsplit_once(MARK)
        .and_then(|(_, rest)| rest.split_once('\n').or(Some((rest, ""))))
        .unwrap_or(("0", said));
    let command = number.trim().parse().ok().and_then(|number: usize| shown.get(number));
    let (line, text) = command.map_or((0, ""), |shown| (shown.line, shown.text.as_str()));
    let mut says = format!("{page}:{line}: {how}\n    $ {text}\n");
    let lines: Vec<&str> = last.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        let _ = writeln!(says, "    {line}");
    }
    says
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_page_line_command_and_output() {
        let shown = blocks::of_page("\n```sh\ntrue\nfalse now\n```\n", Depth::All).unwrap();
        let said = format!("\n{MARK} 0\nfine\n\n{MARK} 1\nwhy not\n");
        let says = failure("docs/a.md", &shown, &said, "exit status: 1");
        assert_eq!(says, "docs/a.md:4: exit status: 1\n    $ false now\n    why not\n");
    }

    fn ran(name: &str, page: &str) -> Option<String> {
        let program = Program::of_test();
        let runner = Runner { program: &program, known: BTreeSet::new(), lacking: BTreeMap::new() };
        let shown = blocks::of_page(page, Depth::All).unwrap();
        runner.page(name, &shown, &servers_data(0)).unwrap()
    }

    #[test]
    fn pages_are_run_up_to_their_first_failure() {
        let page = "<!-- before: x=3; sleep 60 & pid=$! -->\n```sh\necho \"$x\" > y\n```\n\
                    ```sh\ngrep 3 y   # again\nkill -0 \"$pid\"\n```\n";
        assert_eq!(ran("docs/share.md", page), None, "lines share a shell and a folder");
        for bad in ["false | true", "echo \"$nothing\"", "grep x /dev/null"] {
            let page = format!("```sh\necho fine\n{bad}\ntouch later\n```\n");
            let says = ran("docs/bad.md", &page).expect(bad);
            assert!(says.starts_with("docs/bad.md:3: exit status"), "{says}");
            let folder = folders().join("docs-bad");
            assert!(folder.exists() && !folder.join("later").exists());
        }
        std::fs::remove_dir_all(folders()).unwrap();
    }

    #[test]
    fn nothing_waits_for_what_is_left_out() {
        let program = Program::of_test();
        let lacking = BTreeMap::from([("cluster".to_owned(), Some("no clusters".to_owned()))]);
        let mut runner = Runner { program: &program, known: BTreeSet::new(), lacking };
        let page = "```sh\nworkahead cluster > url &\nuntil [ -s url ]; do sleep 1; done\n\
                    until true; do sleep 1; done; echo\necho\n```\n";
        let (run, not) = runner.sort(blocks::of_page(page, Depth::All).unwrap());
        assert_eq!(not.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(run.len(), 1);
    }

    #[test]
    fn what_only_prints_is_told_from_what_leaves_something() {
        assert!(prints_only("workahead study list"));
        assert!(!prints_only("workahead study show quick > mine.toml"));
        assert!(!prints_only("workahead study run quick"));
        assert!(!prints_only("workahead data tpch --out tpch"));
    }

    #[test]
    fn pages_are_those_of_the_book_and_the_readme() {
        assert!(is_page("README.md") && is_page("docs/a.md") && is_page("docs/tutorial/a.md"));
        assert!(!is_page("CONTRIBUTING.md") && !is_page("docs/ledger.toml"));
    }
}
