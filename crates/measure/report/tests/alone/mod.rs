//! Whether a page stands alone and is well formed: a small reader of tags, as strict as a page that
//! we write ourselves can bear (WHATWG HTML §13.1: elements nest, void ones have no end).

/// Elements without content in HTML (WHATWG HTML §13.1.2).
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];
/// Elements by which a page fetches, runs or holds something else.
const FOREIGN: [&str; 13] = [
    "script", "link", "base", "img", "image", "iframe", "frame", "object", "embed", "audio",
    "video", "source", "form",
];
/// Attributes whose address is fetched (`href` too, but for a hyperlink, which waits for a click).
const FETCHING: [&str; 9] =
    ["src", "srcset", "data", "poster", "background", "action", "ping", "manifest", "xlink:href"];

/// Everything that keeps a page from opening from a disk without a network, or that leaves a tag
/// open; empty when there is nothing. Text between tags may name any address: nobody fetches it.
pub(crate) fn faults(html: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let body = html.strip_prefix("<!DOCTYPE html>").unwrap_or_else(|| {
        faults.push("it does not begin with <!DOCTYPE html>".to_owned());
        html
    });
    for piece in body.split('<').skip(1) {
        let Some((tag, text)) = piece.split_once('>') else {
            faults.push(format!("<{piece} never ends"));
            break;
        };
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name => {}
                opened => faults.push(format!("</{name}> where {opened:?} is open")),
            }
            continue;
        }
        let closes_itself = tag.ends_with('/');
        let (name, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let name = name.trim_end_matches('/').to_ascii_lowercase();
        element(&name, attributes(rest.trim_end_matches('/'), &mut faults), &mut faults);
        if name == "style" {
            sheet(text, &mut faults);
        }
        if !closes_itself && !VOID.contains(&&*name) {
            open.push(name);
        }
    }
    faults.extend(open.iter().map(|name| format!("<{name}> is not closed")));
    faults
}

/// Names and values: all are quoted, since only then is what the text holds contained by them.
fn attributes<'a>(mut rest: &'a str, faults: &mut Vec<String>) -> Vec<(&'a str, &'a str)> {
    let mut attributes = Vec::new();
    while let Some(found) = Some(rest.trim_start()).filter(|rest| !rest.is_empty()) {
        let value = found.split_once("=\"").and_then(|(name, after)| {
            let (value, rest) = after.split_once('"')?;
            Some((name, value, rest))
        });
        let Some((name, value, left)) = value else {
            faults.push(format!("an attribute without a quoted value: {found}"));
            break;
        };
        attributes.push((name, value));
        rest = left;
    }
    attributes
}

fn element(name: &str, attributes: Vec<(&str, &str)>, faults: &mut Vec<String>) {
    if FOREIGN.contains(&name) {
        faults.push(format!("<{name}> brings something else in"));
    }
    for (attribute, value) in attributes {
        let attribute = attribute.to_ascii_lowercase();
        let is_link = name == "a" && attribute == "href";
        let fetches = FETCHING.contains(&&*attribute) || (attribute == "href" && !is_link);
        let is_inside = value.starts_with("data:") || value.starts_with('#');
        if fetches && !is_inside {
            faults.push(format!("<{name} {attribute}=\"{value}\"> is fetched"));
        }
        if is_link && value.trim_start().starts_with("javascript:") {
            faults.push(format!("<a href=\"{value}\"> runs something"));
        }
        if attribute.starts_with("on") || attribute == "http-equiv" {
            faults.push(format!("<{name} {attribute}> acts by itself"));
        }
        if attribute == "style" {
            sheet(value, faults);
        }
    }
}

/// Resources that a style sheet can fetch: an import, an address that is not data.
fn sheet(css: &str, faults: &mut Vec<String>) {
    let css = css.to_ascii_lowercase();
    for word in ["@import", "image-set(", "src("] {
        if css.contains(word) {
            faults.push(format!("the style sheet says {word}"));
        }
    }
    for (at, _) in css.match_indices("url(") {
        let address = css[at + 4..].trim_start().trim_start_matches(['"', '\'']);
        if !address.starts_with("data:") && !address.starts_with('#') {
            let shown: String = address.chars().take(40).collect();
            faults.push(format!("the style sheet fetches {shown}"));
        }
    }
}
