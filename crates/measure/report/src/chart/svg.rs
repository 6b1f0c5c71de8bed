//! A drawing as a tree of SVG elements (SVG 1.1, W3C 2011), written inline into the page.
//!
//! Only what charts need: elements, attributes, text. Every text from outside (names of cases,
//! titles of studies) passes through [`escape`]; every length passes through [`Element::at`], which
//! rounds to a tenth and writes no `NaN`. Colours are classes: the page's style sheet gives them
//! their light and dark values.

use std::fmt::{self, Display, Write as _};

/// One element with its attributes and content.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An element without attributes.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// Adds an attribute; its value is escaped.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a String cannot fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", escape(&value.to_string()));
        self
    }

    /// Adds a length or a coordinate, to a tenth of a unit.
    pub(crate) fn at(self, name: &str, value: f64) -> Self {
        self.with(name, Length(value))
    }

    /// Adds the class, whose colours the page's style sheet knows.
    pub(crate) fn class(self, name: &str) -> Self {
        self.with("class", name)
    }

    /// Adds a child.
    pub(crate) fn push(&mut self, child: Element) {
        let _ = write!(self.content, "{child}");
    }

    /// Adds a child, for chains.
    pub(crate) fn holding(mut self, child: Element) -> Self {
        self.push(child);
        self
    }

    /// The length of what it holds so far.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content.len()
    }

    /// Adds text, escaped.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.content.push_str(&escape(text));
        self
    }

    /// Adds a tooltip.
    pub(crate) fn titled(self, title: &str) -> Self {
        match title.is_empty() {
            true => self,
            false => self.holding(Element::new("title").text(title)),
        }
    }
}

impl Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        match content.is_empty() {
            true => write!(out, "<{name}{attributes}/>"),
            false => write!(out, "<{name}{attributes}>{content}</{name}>"),
        }
    }
}

/// A length as SVG reads it. Values that are not finite become 0: charts leave them out before
/// drawing.
struct Length(f64);

impl Display for Length {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() } else { 0.0 };
        match tenths % 10.0 == 0.0 {
            true => write!(out, "{:.0}", tenths / 10.0 + 0.0),
            false => write!(out, "{:.1}", tenths / 10.0),
        }
    }
}

/// Text that is safe in HTML and SVG, in an element and in a quoted attribute. Control characters,
/// which XML does not allow, are dropped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// A line of text whose left end (`start`), `middle` or right `end` is at the point.
pub(crate) fn label(class: &str, (x, y): (f64, f64), anchor: &'static str, text: &str) -> Element {
    let element = Element::new("text").class(class).at("x", x).at("y", y);
    match anchor {
        "start" => element.text(text),
        other => element.with("text-anchor", other).text(text),
    }
}

/// A straight line.
pub(crate) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Element {
    Element::new("line").class(class).at("x1", x1).at("y1", y1).at("x2", x2).at("y2", y2)
}

/// A diamond, the sign of a paper's figure everywhere.
pub(crate) fn diamond((x, y): (f64, f64), half: f64) -> Element {
    let corners = [(x, y - half), (x + half, y), (x, y + half), (x - half, y)];
    polygon("paper", &corners)
}

/// A closed shape.
pub(crate) fn polygon(class: &str, corners: &[(f64, f64)]) -> Element {
    Element::new("polygon").class(class).with("points", points(corners))
}

/// A line through points.
pub(crate) fn polyline(class: &str, along: &[(f64, f64)]) -> Element {
    Element::new("polyline").class(class).with("points", points(along))
}

fn points(along: &[(f64, f64)]) -> String {
    let pairs: Vec<String> =
        along.iter().map(|(x, y)| format!("{},{}", Length(*x), Length(*y))).collect();
    pairs.join(" ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether every tag is closed by its own name: which unescaped text would break.
    pub(crate) fn is_balanced(drawn: &str) -> bool {
        let mut open = Vec::new();
        for tag in drawn.split('<').skip(1) {
            let Some((inside, _)) = tag.split_once('>') else { return false };
            let name = |inside: &str| inside.split([' ', '/']).next().map(str::to_owned);
            match inside.strip_prefix('/') {
                Some(closed) if open.pop() != Some(Some(closed.to_owned())) => return false,
                None if !inside.ends_with('/') => open.push(name(inside)),
                _ => {}
            }
        }
        open.is_empty()
    }

    #[test]
    fn an_element_nests_and_escapes() {
        let drawn = line("grid", (0.0, 1.25), (10.04, f64::NAN)).titled("a<b & \"c\"");
        assert_eq!(
            drawn.to_string(),
            "<line class=\"grid\" x1=\"0\" y1=\"1.3\" x2=\"10\" y2=\"0\">\
             <title>a&lt;b &amp; &quot;c&quot;</title></line>"
        );
        assert_eq!(Element::new("g").at("x", -0.01).to_string(), "<g x=\"0\"/>");
    }

    proptest! {
        #[test]
        fn no_text_opens_a_tag_or_closes_an_attribute(text in any::<String>()) {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'', '\0']));
            for (at, _) in escaped.match_indices('&') {
                let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
                prop_assert!(known.iter().any(|entity| escaped[at..].starts_with(entity)));
            }
        }
    }
}
