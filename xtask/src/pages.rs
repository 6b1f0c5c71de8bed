//! `cargo xtask pages`: the book that `docs/` is read as, and every command in it, run.
//!
//! ```text
//!   docs/*.md, what they link ──► target/pages-source ──mdbook──► target/pages ──► links lead
//!   ledger, `workahead help` … ─► generated pages ┘                                somewhere
//!   docs/**/*.md, README.md: blocks of sh ──► bash, in a folder of the page ──► passed, or page,
//!                                             line, command and the last lines that it printed
//! ```
//!
//! Nothing is written into `docs/`. The command is taken as it was built before; only its words
//! (help, lists) go into pages, never a figure.

mod blocks;
mod book;
mod commands;
mod generated;
mod html;
mod papers;
mod program;
mod reference;

pub(crate) use generated::is_generated;

use anyhow::{Result, bail};

use crate::counts::Counts;
use crate::stage::{Outcome, Stage};
use crate::test::Depth;
use crate::tidy::Tree;
use crate::workspace::Workspace;
use program::Program;

/// `cargo xtask pages [book | commands [PAGE]]`.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    let program = Program::find(workspace)?;
    let tree = Tree::tracked(workspace)?;
    match words {
        [] => {
            let whole = book::build(workspace, &tree, &program)?;
            Ok(commands::run(&tree, &program, "", Depth::Full)?.failed == 0 && whole)
        }
        ["book"] => book::build(workspace, &tree, &program),
        ["commands"] => Ok(commands::run(&tree, &program, "", Depth::Full)?.failed == 0),
        ["commands", page] => Ok(commands::run(&tree, &program, page, Depth::Full)?.failed == 0),
        _ => bail!("usage: cargo xtask pages [book | commands [PAGE]]"),
    }
}

/// The same as a stage of the tests, in which a command that was run is a test that passed.
pub(crate) fn stage(workspace: &Workspace, depth: Depth) -> Stage {
    let mut counts = Counts::default();
    let mut stage = Stage::check("pages", || {
        let program = Program::find(workspace)?;
        let tree = Tree::tracked(workspace)?;
        let whole = book::build(workspace, &tree, &program)?;
        counts = commands::run(&tree, &program, "", depth)?;
        Ok(whole && counts.failed == 0)
    });
    if counts.passed == 0 && !stage.failed() {
        stage.outcome = Outcome::Failed("no command was run".into());
    }
    stage.counts = counts;
    stage
}
