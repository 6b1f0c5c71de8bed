//! Code without what is compiled for tests only.

const MARK: &str = "#[cfg(test)]";

/// Leaves out every item behind `#[cfg(test)]`; the code has no comments and no strings.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        rest = &rest[at + MARK.len()..];
        let item = item_length(rest);
        // Lines keep their numbers.
        kept.extend(rest[..item].chars().filter(|character| *character == '\n'));
        rest = &rest[item..];
    }
    kept.push_str(rest);
    kept
}

/// To the `;` that ends an item, or the brace that closes it.
fn item_length(code: &str) -> usize {
    let (mut depth, mut square) = (0_usize, 0_usize);
    for (index, character) in code.char_indices() {
        match character {
            '[' | '(' => square += 1,
            ']' | ')' => square = square.saturating_sub(1),
            '{' => depth += 1,
            '}' if depth <= 1 => {
                // `use a::{b, c};` ends behind its brace.
                let after = code[index + 1..].trim_start_matches([' ', '\n']);
                let skipped = code.len() - index - 1 - after.len();
                return index + 1 + if after.starts_with(';') { skipped + 1 } else { 0 };
            }
            '}' => depth -= 1,
            ';' if depth == 0 && square == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_tests_go() {
        let code = "use a::B;\n#[cfg(test)]\nuse c::{D, E};\nfn f() {}\n#[cfg(test)]\n\
                    #[allow(x)]\nmod tests {\n fn g() { if h {} }\n}\nfn i([u8; 3]) {}\n\
                    #[cfg(test)]\nmod more;\nstruct S;";
        let plain = without_tests(code);
        for kept in ["use a::B;", "fn f()", "fn i(", "struct S;"] {
            assert!(plain.contains(kept), "{kept} in {plain}");
        }
        for gone in ["D", "g()", "more", "allow"] {
            assert!(!plain.contains(gone), "{gone} in {plain}");
        }
        assert_eq!(plain.lines().count(), code.lines().count());
    }
}
