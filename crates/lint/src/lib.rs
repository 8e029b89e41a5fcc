//! Finds what will freeze the machine in training code, without running it.
//!
//! [`check`] takes the text of one Python file and returns what the rules found. A text is
//! parsed once; [`model`] then works out what its names stand for, and each rule of [`rules`]
//! asks the model. Nothing here reads a file, and no input makes it panic or abort.

mod depth;
pub mod finding;
pub mod here;
pub mod model;
mod questions;
pub mod rule;
pub mod rules;

use finding::Finding;
use here::Here;
use model::Module;
use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::{Ranged, TextRange, TextSize};
use rule::Rule;

/// What one text came to.
#[derive(Debug, Default)]
pub struct Checked {
    /// In the order of the text.
    pub findings: Vec<Finding>,
    /// Why it is no Python, first mistake first. Findings may still be there for what could
    /// be read.
    pub mistakes: Vec<Mistake>,
    /// Comments with an `antifreeze:` in them.
    pub remarks: Vec<TextRange>,
}

/// Something that is no Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub range: TextRange,
    pub message: String,
}

/// The language a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect<'a> {
    Python,
    /// With magic commands, in cells, in the order of the text.
    Notebook(&'a [Cell]),
}

impl Dialect<'_> {
    pub fn source_type(self) -> PySourceType {
        match self {
            Dialect::Python => PySourceType::Python,
            Dialect::Notebook(_) => PySourceType::Ipynb,
        }
    }
}

/// A cell of a notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Counted from one, among cells of all kinds.
    pub number: usize,
    /// Where it begins in the text of all cells.
    pub start: TextSize,
}

impl Cell {
    /// The cell that an offset lies in.
    pub fn at(cells: &[Cell], offset: TextSize) -> Option<&Cell> {
        let after = cells.partition_point(|cell| cell.start <= offset);
        cells.get(after.checked_sub(1)?)
    }
}

/// Checks one text. It should be called on a thread with a stack of [`STACK`] bytes.
pub fn check(text: &str, dialect: Dialect, here: &Here, rules: &[&'static Rule]) -> Checked {
    if let Some(mistake) = depth::too_deep_to_parse(text) {
        return Checked {
            mistakes: vec![mistake],
            ..Checked::default()
        };
    }
    // The parser has been seen to panic on text that is no Python at all.
    let parse = || ruff_python_parser::parse_unchecked_source(text, dialect.source_type());
    let Ok(parsed) = std::panic::catch_unwind(parse) else {
        return Checked {
            mistakes: vec![Mistake {
                range: TextRange::default(),
                message: "cannot be read as Python".to_owned(),
            }],
            ..Checked::default()
        };
    };
    let mut checked = Checked {
        mistakes: parsed
            .errors()
            .iter()
            .map(|error| Mistake {
                range: error.location,
                message: error.error.to_string(),
            })
            .collect(),
        remarks: parsed
            .tokens()
            .iter()
            .filter(|token| token.kind() == TokenKind::Comment)
            .map(Ranged::range)
            .filter(|range| text[*range].contains("antifreeze:"))
            .collect(),
        ..Checked::default()
    };
    if let Some(mistake) = depth::too_deep_to_walk(parsed.tokens()) {
        checked.mistakes.push(mistake);
        // Dropping what is too deep to walk would overflow the stack as well.
        std::mem::forget(parsed);
        return checked;
    }
    if !rules.is_empty() && model::is_worth_a_look(text) {
        let module = Module::of(text, dialect, parsed.syntax(), here);
        for rule in rules {
            (rule.check)(&module, &mut checked.findings);
        }
        checked
            .findings
            .sort_by_key(|finding| (finding.range.start(), finding.rule.code));
    }
    checked
}

/// The stack that [`check`] needs for the deepest text it accepts.
pub const STACK: usize = 64 << 20;
