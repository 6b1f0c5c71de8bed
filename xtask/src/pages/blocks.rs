//! The commands of a page: its blocks of `sh`, and what comments say of them.
//!
//! ````text
//!   <!-- before: workahead data tpch --scale 0.01 --out tpch -->     run, and seen by nobody
//!   ```sh                                                            run, line by line
//!   workahead join --left tpch/orders.parquet \
//!       --right tpch/lineitem.parquet --on o_orderkey=l_orderkey
//!   ```
//!   <!-- not run: it takes hours -->                                 the next block is left out
//!   <!-- with --full: it takes a minute -->                          it is, but for `test --full`
//! ````
//!
//! `before` prepares what a reader must have already (data, a running process).

use anyhow::{Result, bail, ensure};

use crate::test::Depth;

/// A command and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageCommand {
    /// Of the page, from 1.
    pub(super) line: usize,
    /// As bash reads it; of several lines where they are continued.
    pub(super) text: String,
    /// Why it is not run, if so.
    pub(super) left_out: Option<String>,
    /// Whether readers see it.
    pub(super) seen: bool,
}

/// The commands of a page, in its order, as `depth` runs them.
pub(super) fn of_page(text: &str, depth: Depth) -> Result<Vec<PageCommand>> {
    let mut found = Vec::new();
    let mut left_out: Option<String> = None;
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        if let Some(rest) = line.strip_prefix("<!-- ") {
            let (comment, from) = (comment(rest, &mut lines)?, number);
            if let Some(commands) = comment.strip_prefix("before:") {
                let numbered = commands.lines().enumerate();
                let numbered = numbered.map(|(index, line)| (from + index, line.trim_start()));
                found.extend(logical(numbered, &None, false)?);
            } else if let Some(why) = comment.strip_prefix("not run:") {
                left_out = Some(reason(number, why)?);
            } else if let Some(why) = comment.strip_prefix("with --full:") {
                let why = reason(number, why)?;
                left_out = (depth < Depth::Full).then(|| format!("without --full: {why}"));
            }
        } else if line == "```sh" {
            let mut block = Vec::new();
            for inner in lines.by_ref().take_while(|(_, line)| *line != "```") {
                block.push(inner);
            }
            found.extend(logical(block.into_iter(), &left_out.take(), true)?);
        } else if line.starts_with("```") {
            // Another language: its lines are nobody's commands.
            lines.by_ref().find(|(_, line)| line.starts_with("```"));
        }
        if left_out.is_some() && !line.trim().is_empty() && !line.starts_with("<!--") {
            bail!("line {number}: a reason stands before a block of sh, and before nothing else");
        }
    }
    Ok(found)
}

fn reason(line: usize, why: &str) -> Result<String> {
    ensure!(!why.trim().is_empty(), "line {line}: a block is left out without a reason");
    Ok(why.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The inside of a comment, which may go on over lines.
fn comment<'a>(first: &str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Result<String> {
    let mut text = first.to_owned();
    while !text.contains("-->") {
        let Some((_, line)) = lines.next() else { bail!("a comment has no end: {first}") };
        text.push('\n');
        text.push_str(line);
    }
    Ok(text.split("-->").next().unwrap_or_default().trim_end().to_owned())
}

/// Lines joined where they are continued, or are a text in place; without blank ones and those of
/// comment only.
fn logical<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    left_out: &Option<String>,
    seen: bool,
) -> Result<Vec<PageCommand>> {
    let mut commands: Vec<PageCommand> = Vec::new();
    let mut open = false;
    // The word that ends a text given to a command in place (`<<'END'`).
    let mut until: Option<String> = None;
    for (line, text) in lines {
        match commands.last_mut() {
            Some(command) if open => {
                command.text.push('\n');
                command.text.push_str(text);
            }
            _ if text.trim().is_empty() || text.trim_start().starts_with('#') => continue,
            _ => commands.push(PageCommand {
                line,
                text: text.trim_start().to_owned(),
                left_out: left_out.clone(),
                seen,
            }),
        }
        match &until {
            Some(word) if text == word => (until, open) = (None, false),
            Some(_) => open = true,
            None => {
                until = text
                    .split_once("<<'")
                    .and_then(|(_, rest)| rest.split_once('\''))
                    .map(|(word, _)| word.to_owned());
                open = text.ends_with('\\') || until.is_some();
            }
        }
    }
    ensure!(!open, "a command has no end: {:?}", commands.last());
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<(usize, String)> {
        of_page(page, Depth::All)
            .unwrap()
            .into_iter()
            .map(|shown| (shown.line, shown.text))
            .collect()
    }

    #[test]
    fn blocks_are_read_line_by_line() {
        let page =
            "# T\n```sh\n# words\na --x \\\n    --y   # why\n\nb\n```\n```toml\nc = 1\n```\n";
        let found = [(4, "a --x \\\n    --y   # why".to_owned()), (7, "b".to_owned())];
        assert_eq!(texts(page), found);
    }

    #[test]
    fn a_text_in_place_is_part_of_its_command() {
        let page = "```sh\ncat > x <<'END'\n# a\n\nb \\\nEND\nc\n```\n";
        let found = [(2, "cat > x <<'END'\n# a\n\nb \\\nEND".to_owned()), (7, "c".to_owned())];
        assert_eq!(texts(page), found);
        assert!(of_page("```sh\ncat <<'END'\n```\n", Depth::All).is_err());
    }

    #[test]
    fn what_is_prepared_is_not_seen() {
        let page = "<!-- before: sleep 9 & pid=$!\n     b -->\n```sh\nc \"$pid\"\n```\n";
        let found = of_page(page, Depth::All).unwrap();
        let seen: Vec<(usize, &str, bool)> =
            found.iter().map(|shown| (shown.line, shown.text.as_str(), shown.seen)).collect();
        assert_eq!(
            seen,
            [(1, "sleep 9 & pid=$!", false), (2, "b", false), (4, "c \"$pid\"", true)]
        );
    }

    #[test]
    fn a_reason_is_that_of_the_next_block_only() {
        let page = "<!-- not run: it takes\nhours -->\n\n```sh\na\n```\n```sh\nb\n```\n";
        let found = of_page(page, Depth::All).unwrap();
        assert_eq!(found[0].left_out.as_deref(), Some("it takes hours"));
        assert_eq!(found[1].left_out, None);
        assert!(of_page("<!-- not run: -->\n```sh\na\n```\n", Depth::All).is_err());
        assert!(of_page("<!-- not run: hours -->\nWords.\n```sh\na\n```\n", Depth::All).is_err());
        assert!(of_page("```sh\na \\\n```\n", Depth::All).is_err());
        assert!(of_page("<!-- before: a\n", Depth::All).is_err());
    }

    #[test]
    fn what_takes_long_is_run_by_the_last_depth() {
        let page = "<!-- with --full: a minute -->\n```sh\na\n```\n```sh\nb\n```\n";
        let found = of_page(page, Depth::All).unwrap();
        assert_eq!(found[0].left_out.as_deref(), Some("without --full: a minute"));
        assert_eq!(found[1].left_out, None);
        assert_eq!(of_page(page, Depth::Full).unwrap()[0].left_out, None);
        assert!(of_page("<!-- with --full: -->\n```sh\na\n```\n", Depth::Full).is_err());
    }

    #[test]
    fn other_comments_are_nothing() {
        assert!(
            of_page("<!-- a note -->\n<!-- when there: x -->\n", Depth::All).unwrap().is_empty()
        );
    }
}
