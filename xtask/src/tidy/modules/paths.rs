//! Declarations and paths of a file: read word by word, without a parser.

/// `mod NAME;`
pub(crate) struct ModDeclaration {
    pub(crate) name: String,
    /// Inline modules around it.
    pub(crate) within: Vec<String>,
    /// The file that `#[path = "…"]` names.
    pub(crate) path: Option<String>,
}

/// A path in code, or in a `use`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) path: Vec<String>,
    pub(crate) is_import: bool,
    /// `pub use`, of whatever range.
    pub(crate) hands_on: bool,
    /// The name that an import gives it here; `None` for everything (`*`).
    pub(crate) name: Option<String>,
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Words and single signs, `::` as one.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Modules that are files of their own.
pub(crate) fn declared(text: &str, code: &str) -> Vec<ModDeclaration> {
    let tokens = tokens(code);
    let mut named = named_paths(text);
    let mut found = Vec::new();
    let (mut depth, mut within): (usize, Vec<(usize, String)>) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                within.retain(|(opened, _)| *opened < depth);
            }
            "mod" => match (tokens.get(at + 1), tokens.get(at + 2)) {
                (Some(name), Some(&"{")) => within.push((depth, (*name).to_owned())),
                (Some(name), Some(&";")) => {
                    // The same name may be declared once for each of two features.
                    let at = named.iter().position(|(module, _)| module == name);
                    let path = at.and_then(|at| named.remove(at).1);
                    let within = within.iter().map(|(_, name)| name.clone()).collect();
                    found.push(ModDeclaration { name: (*name).to_owned(), within, path });
                }
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// Every `mod NAME;` that has a line of its own, with what a `#[path = "…"]` above it names.
fn named_paths(text: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once("path = \"").filter(|_| line.starts_with("#[")) {
            path = rest.split('"').next().map(str::to_owned);
        }
        let Some(rest) = line.strip_suffix(';') else { continue };
        match rest.rsplit_once("mod ") {
            Some((_, name)) if name.chars().all(is_word) => {
                found.push((name.to_owned(), path.take()));
            }
            _ => path = None,
        }
    }
    found
}

/// Whether the code has `mod NAME;`.
pub(crate) fn declares(code: &str, name: &str) -> bool {
    tokens(code).windows(3).any(|three| three[0] == "mod" && three[1] == name && three[2] == ";")
}

/// Files that `include!("…")` names.
pub(crate) fn included(text: &str) -> impl Iterator<Item = &str> {
    text.split("include!(\"").skip(1).filter_map(|rest| rest.split('"').next())
}

/// Whether the code defines an item of this name.
pub(crate) fn defines(code: &str, name: &str) -> bool {
    const KINDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];
    tokens(code).windows(2).any(|two| KINDS.contains(&two[0]) && two[1] == name)
}

/// Every path in the code that has more than one part, and every import.
pub(crate) fn uses(code: &str) -> Vec<Use> {
    let tokens = tokens(code);
    let mut uses = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let hands_on = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
            let mut reading = Reading { tokens: &tokens, at: at + 1, found: Vec::new() };
            reading.tree(&[]);
            let imports = reading.found.into_iter().map(|(path, name)| Use {
                path,
                is_import: true,
                hands_on,
                name,
            });
            uses.extend(imports);
            at = reading.at;
            continue;
        }
        let starts = tokens[at].chars().all(is_word) && tokens.get(at + 1) == Some(&"::");
        if starts && (at == 0 || tokens[at - 1] != "::") {
            let mut path = vec![tokens[at].to_owned()];
            while tokens.get(at + 1) == Some(&"::")
                && tokens.get(at + 2).is_some_and(|token| token.chars().all(is_word))
            {
                path.push(tokens[at + 2].to_owned());
                at += 2;
            }
            uses.push(Use { path, is_import: false, hands_on: false, name: None });
        }
        at += 1;
    }
    uses
}

/// Where the reading of one `use` stands.
struct Reading<'a> {
    tokens: &'a [&'a str],
    at: usize,
    found: Vec<(Vec<String>, Option<String>)>,
}

impl Reading<'_> {
    /// `a::b`, `a::{b, c}`, `a::*`, `a as b`, behind what is in front of it.
    fn tree(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        while let Some(token) = self.tokens.get(self.at) {
            match *token {
                "::" => self.at += 1,
                "*" => {
                    self.at += 1;
                    self.found.push((path, None));
                    return;
                }
                "{" => {
                    self.at += 1;
                    while self.tokens.get(self.at).is_some_and(|token| *token != "}") {
                        self.tree(&path);
                        if self.tokens.get(self.at) == Some(&",") {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "as" => {
                    let name = self.tokens.get(self.at + 1).map(|name| (*name).to_owned());
                    self.at += 2;
                    self.found.push((path, name));
                    return;
                }
                word if word.chars().all(is_word) => {
                    // `a::{self, b}` names `a`.
                    if word != "self" || path.is_empty() {
                        path.push(word.to_owned());
                    }
                    self.at += 1;
                }
                _ => break,
            }
        }
        // Never stuck at a sign that no `use` has.
        let stuck = !matches!(self.tokens.get(self.at), Some(&("," | "}" | ";")) | None);
        self.at += usize::from(stuck);
        let name = path.last().cloned();
        self.found.push((path, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        uses(code).iter().map(|used| used.path.join("::")).collect()
    }

    #[test]
    fn imports_are_taken_apart() {
        let code = "use crate::{a::B, c::{self, D as E}, f::*}; pub(crate) use super::g::H;";
        assert_eq!(
            paths(code),
            ["crate::a::B", "crate::c", "crate::c::D", "crate::f", "super::g::H"]
        );
        let names: Vec<Option<String>> = uses(code).into_iter().map(|used| used.name).collect();
        assert_eq!(names[2].as_deref(), Some("E"));
        assert_eq!(names[3], None);
        assert_eq!(uses(code).iter().filter(|used| used.hands_on).count(), 1);
    }

    #[test]
    fn paths_in_code_are_found() {
        let code = "fn f(x: crate::a::B<u8>) -> c::D { super::e::<T>() + y.z() }";
        assert_eq!(paths(code), ["crate::a::B", "c::D", "super::e"]);
    }

    #[test]
    fn declarations_have_their_inline_modules_and_paths() {
        let text = "mod a;\nmod b {\n mod c;\n}\n#[path = \"x/y.rs\"]\npub mod d;\nmod e;";
        let found = declared(text, &text.replace("\"x/y.rs\"", " "));
        let names: Vec<&str> = found.iter().map(|declared| declared.name.as_str()).collect();
        assert_eq!(names, ["a", "c", "d", "e"]);
        assert_eq!(found[1].within, ["b"]);
        assert_eq!(found[2].path.as_deref(), Some("x/y.rs"));
        assert!(found[3].within.is_empty() && found[3].path.is_none());
        assert!(declares("pub mod d;", "d") && !declares("mod d {}", "d"));
    }
}
