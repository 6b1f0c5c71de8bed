//! Callers and callees, as wide as their time: a flame graph (Gregg, "The Flame Graph", CACM 2016).
//!
//! ```text
//!             ┌innermost─┐
//!   ┌called──┐┌called────┐┌kernel┐      as wide as its share of the samples
//!   ┌caller──────────────────────┐      callers below callees, in the order of names
//!   └all samples─────────────────┘
//! ```
//! The page bears no script, so nothing zooms: a frame has its name where it fits, and its share is
//! in its tooltip. Frames that would be thinner than half a pixel are left out and counted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use workahead_counters::profile::{Frame, Kind, Profile};

use super::Screen;
use super::svg::{Element, label};
use super::type_width::fitted;
use crate::{number, words};

/// Height of a frame and its distance to the next.
const ROW: f64 = 17.0;
const GAP: f64 = 1.0;
/// Thinner frames are left out; where the drawing would be too large, those of twice the width, and
/// so on.
const THINNEST: f64 = 0.5;
/// Thinner frames bear no name.
const NAMED_FROM: f64 = 26.0;
const TYPE: f64 = 11.0;
/// Keys above the drawing, and what was left out below.
const HEAD: f64 = 26.0;
const FOOT: f64 = 24.0;

/// The flame graph of a profile as one `<svg>` of at most this many bytes, or of its root alone.
pub(crate) fn flame(profile: &Profile, most_bytes: usize) -> String {
    let tree = Tree::of(profile);
    let mut thinnest = THINNEST;
    loop {
        let is_root_alone = thinnest > Screen::Wide.width();
        let most_bytes = if is_root_alone { usize::MAX } else { most_bytes };
        if let Some(drawing) = drawn(profile, &tree, thinnest, most_bytes) {
            return drawing;
        }
        thinnest *= 2.0;
    }
}

/// `None` where it takes more bytes.
fn drawn(profile: &Profile, tree: &Tree<'_>, thinnest: f64, most_bytes: usize) -> Option<String> {
    let Tree { frames, root } = tree;
    let screen = Screen::Wide;
    let scale = if root.events == 0 { 0.0 } else { screen.width() / root.events as f64 };
    let rows = root.rows(scale, thinnest);
    let bottom = HEAD + ROW * rows as f64;
    let description = format!(
        "Flame graph of {} samples by {}: callers below callees, as wide as their share.",
        number::count(profile.samples),
        profile.clock.unit()
    );
    let mut drawing = screen.drawing(bottom + FOOT, &description);
    keys(&mut drawing);
    let mut painter = Painter {
        drawing,
        frames,
        scale,
        bottom,
        whole: root.events,
        left_out: 0,
        thinnest,
        most_bytes,
    };
    painter.paint_root(root);
    let words = painter.foot(profile);
    painter.drawing.push(label("tick", (0.0, bottom + 16.0), "start", &words));
    let drawing = (!painter.is_full()).then(|| painter.drawing.to_string());
    drawing.filter(|drawing| drawing.len() <= most_bytes)
}

/// The stacks of a profile.
struct Tree<'a> {
    /// Each frame once, in the order of names: those may be long, and are compared here only.
    frames: Vec<&'a Frame>,
    root: Node,
}

impl<'a> Tree<'a> {
    fn of(profile: &'a Profile) -> Self {
        let mut frames: Vec<&Frame> = profile.frames.iter().collect();
        frames.sort_unstable();
        frames.dedup();
        let place = |frame: &Frame| frames.partition_point(|other| *other < frame);
        let places: Vec<usize> = profile.frames.iter().map(place).collect();
        let mut root = Node::default();
        for stack in &profile.stacks {
            let of_stack = stack.frames.iter().filter_map(|at| places.get(*at as usize).copied());
            root.add(of_stack, stack.events, stack.samples);
        }
        Self { frames, root }
    }
}

/// Callees of one frame.
#[derive(Default)]
struct Node {
    events: u64,
    samples: u64,
    /// By their places in [`Tree::frames`].
    called: BTreeMap<usize, Node>,
}

impl Node {
    fn add(&mut self, frames: impl Iterator<Item = usize>, events: u64, samples: u64) {
        let mut node = self;
        node.events += events;
        node.samples += samples;
        for frame in frames {
            node = node.called.entry(frame).or_default();
            node.events += events;
            node.samples += samples;
        }
    }

    /// How many rows are drawn, its own too.
    fn rows(&self, scale: f64, thinnest: f64) -> usize {
        let drawn = self.called.values().filter(|node| node.events as f64 * scale >= thinnest);
        1 + drawn.map(|node| node.rows(scale, thinnest)).max().unwrap_or(0)
    }

    fn frames(&self) -> usize {
        1 + self.called.values().map(Node::frames).sum::<usize>()
    }
}

struct Painter<'a> {
    drawing: Element,
    frames: &'a [&'a Frame],
    scale: f64,
    bottom: f64,
    whole: u64,
    left_out: usize,
    thinnest: f64,
    most_bytes: usize,
}

impl Painter<'_> {
    /// Whether nothing more is painted.
    fn is_full(&self) -> bool {
        self.drawing.content_bytes() > self.most_bytes
    }

    fn paint_root(&mut self, root: &Node) {
        if root.events == 0 {
            return;
        }
        let frame = PaintedFrame { class: "flame all", name: "all samples".into(), of: "" };
        self.paint(&frame, root, 0.0, 0);
        self.paint_called(root, 0.0, 1);
    }

    fn paint_called(&mut self, node: &Node, mut x: f64, row: usize) {
        for (place, called) in &node.called {
            if self.is_full() {
                return;
            }
            let width = called.events as f64 * self.scale;
            if width < self.thinnest {
                self.left_out += called.frames();
            } else {
                self.paint(&PaintedFrame::of(self.frames[*place]), called, x, row);
                self.paint_called(called, x, row + 1);
            }
            x += width;
        }
    }

    fn paint(&mut self, frame: &PaintedFrame<'_>, node: &Node, x: f64, row: usize) {
        let width = node.events as f64 * self.scale;
        let y = self.bottom - ROW * (row + 1) as f64;
        let share = 100.0 * node.events as f64 / self.whole as f64;
        let samples = number::count(node.samples);
        let title =
            format!("{}{}: {} %, {samples} samples", frame.name, frame.of, number::plain(share));
        let gap = if width > 4.0 * GAP { GAP } else { 0.0 };
        let shape = Element::new("rect").class(frame.class).at("x", x).at("y", y);
        let shape = shape.at("width", width - gap).at("height", ROW - GAP);
        self.drawing.push(shape.titled(&title));
        if width >= NAMED_FROM {
            let text = fitted(&frame.name, TYPE, width - 6.0);
            let name = label("flame-name", (x + 3.0, y + 12.0), "start", &text);
            self.drawing.push(name.titled(&title));
        }
    }

    /// Samples and frames that the drawing omits, in words.
    fn foot(&self, profile: &Profile) -> String {
        if self.whole == 0 {
            return "no samples".to_owned();
        }
        let samples = number::count(profile.samples);
        let mut words = format!("{samples} samples by {}", profile.clock.unit());
        let mut also = |count: u64, what: &str| {
            if count > 0 {
                words.push_str(&format!("; {} {what}", number::count(count)));
            }
        };
        also(self.left_out as u64, "frames too thin to draw");
        also(profile.truncated, "samples whose callers are not known");
        also(profile.lost, "records lost");
        words
    }
}

/// A frame with its words and its class.
struct PaintedFrame<'a> {
    class: &'static str,
    /// Cut: it is repeated for each of its callers.
    name: Cow<'a, str>,
    of: &'static str,
}

impl<'a> PaintedFrame<'a> {
    fn of(frame: &'a Frame) -> Self {
        let (class, of) = match frame.kind {
            Kind::User => ("flame user", ""),
            Kind::Kernel => ("flame kernel", " (kernel)"),
            Kind::Unresolved => ("flame unresolved", " (no name known)"),
            Kind::Cut => ("flame cut", " (callers not known)"),
        };
        Self { class, name: words::cut(&frame.name, words::CHARS_MAX), of }
    }
}

fn keys(drawing: &mut Element) {
    let keys = [
        ("flame user", "program"),
        ("flame kernel", "kernel"),
        ("flame unresolved", "no name known"),
        ("flame cut", "callers not known"),
    ];
    for (index, (class, words)) in keys.into_iter().enumerate() {
        let x = 130.0 * index as f64;
        let square = Element::new("rect").class(class).at("x", x).at("y", 3.0);
        drawing.push(square.at("width", 14.0).at("height", 12.0));
        drawing.push(label("tick", (x + 20.0, 13.0), "start", words));
    }
}

#[cfg(test)]
mod tests;
