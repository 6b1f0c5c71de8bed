//! From text to tree: one function per line of the grammar.

use super::{FormulaError, Node, Operation};

/// The longest formula of top-down takes 700 bytes. A chain of operations makes a tree as deep as
/// it is long, and a tree is walked recursively, so a page has to end somewhere.
const LENGTH_MAX: usize = 4096;
/// Parentheses open at once; each takes a few hundred bytes of the stack.
const DEPTH_MAX: usize = 64;

const OPERAND: &str = "a number, an event, `min(`, `max(` or `(`";
const OPERATOR: &str = "an operator or the end";

pub(super) fn parse(text: &str) -> Result<Node, FormulaError> {
    if text.len() > LENGTH_MAX {
        return Err(FormulaError::TooLong { length: text.len(), max: LENGTH_MAX });
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let tree = parser.sum()?;
    if parser.peek().is_some() {
        return Err(parser.expected(OPERATOR));
    }
    Ok(tree)
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes read, always at the start of a character.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Node, FormulaError> {
        let signs = [('+', Operation::Add), ('-', Operation::Subtract)];
        self.chain(signs, Self::product)
    }

    fn product(&mut self) -> Result<Node, FormulaError> {
        let signs = [('*', Operation::Multiply), ('/', Operation::Divide)];
        self.chain(signs, Self::operand)
    }

    /// Operands joined by operators of one rank, from the left.
    fn chain(
        &mut self,
        signs: [(char, Operation); 2],
        operand: fn(&mut Self) -> Result<Node, FormulaError>,
    ) -> Result<Node, FormulaError> {
        let mut left = operand(self)?;
        loop {
            let next = self.peek();
            let Some((sign, operation)) = signs.into_iter().find(|(sign, _)| next == Some(*sign))
            else {
                return Ok(left);
            };
            self.at += sign.len_utf8();
            left = Node::Of(operation, Box::new(left), Box::new(operand(self)?));
        }
    }

    fn operand(&mut self) -> Result<Node, FormulaError> {
        match self.peek() {
            Some('(') => self.enclosed(|parser| parser.sum()),
            Some(digit) if digit.is_ascii_digit() => self.number(),
            Some(first) if first.is_ascii_alphabetic() || first == '_' => self.named(),
            _ => Err(self.expected(OPERAND)),
        }
    }

    fn named(&mut self) -> Result<Node, FormulaError> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || "_.:".contains(c));
        let operation = match name {
            "min" => Operation::Min,
            "max" => Operation::Max,
            event => return Ok(Node::Event(event.to_owned())),
        };
        self.enclosed(|parser| {
            let left = parser.sum()?;
            parser.take(',', "`,` and the other operand")?;
            Ok(Node::Of(operation, Box::new(left), Box::new(parser.sum()?)))
        })
    }

    fn number(&mut self) -> Result<Node, FormulaError> {
        let start = self.at;
        let digits = self.word(|c| c.is_ascii_digit() || c == '.');
        match digits.parse() {
            Ok(number) if f64::is_finite(number) => Ok(Node::Number(number)),
            _ => {
                self.at = start;
                Err(self.expected("a number with at most one point"))
            }
        }
    }

    fn enclosed(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<Node, FormulaError>,
    ) -> Result<Node, FormulaError> {
        self.take('(', "`(`")?;
        if self.depth == DEPTH_MAX {
            return Err(FormulaError::TooDeep { at: self.character(), max: DEPTH_MAX });
        }
        self.depth += 1;
        let node = inside(self)?;
        self.depth -= 1;
        self.take(')', "an operator or `)`")?;
        Ok(node)
    }

    /// The next character that is not a blank, not read yet.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let blanks = rest.len() - rest.trim_start().len();
        self.at += blanks;
        rest.trim_start().chars().next()
    }

    fn take(&mut self, wanted: char, expected: &'static str) -> Result<(), FormulaError> {
        if self.peek() != Some(wanted) {
            return Err(self.expected(expected));
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    /// Reads as many characters as belong to a word.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn expected(&mut self, expected: &'static str) -> FormulaError {
        let found = match self.peek() {
            Some(found) => format!("`{found}`"),
            None => "the end".to_owned(),
        };
        FormulaError::Unexpected { at: self.character(), expected, found }
    }

    /// The place in characters, counted from 1, as an editor shows it.
    fn character(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }
}
