//! Finds what will freeze the machine in training code, without running it.
//!
//! [`check`] takes the text of one Python file and returns what the rules found. A text is
//! parsed once; [`model`] then works out what its names stand for, and each rule of [`rules`]
//! asks the model. Nothing here reads a file, and no input makes it panic or abort.

mod depth;
pub mod finding;
pub mod model;
mod queries;
pub mod rule;
pub mod rules;
pub mod target_machine;

use finding::Finding;
use model::Module;
use ruff_python_ast::PySourceType;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::{Ranged, TextRange, TextSize};
use rule::Rule;
use target_machine::TargetMachine;

/// What one text came to.
#[derive(Debug, Default)]
pub struct LintResult {
    /// In the order of the text.
    pub findings: Vec<Finding>,
    /// Why it is no Python, first mistake first. Findings may still be there for what could
    /// be read.
    pub parse_errors: Vec<ParseError>,
    /// Comments with an `antifreeze:` in them.
    pub antifreeze_comments: Vec<TextRange>,
}

/// Something that is no Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
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
pub fn check(
    text: &str,
    dialect: Dialect,
    target: &TargetMachine,
    rules: &[&'static Rule],
) -> LintResult {
    if let Some(mistake) = depth::bracket_depth_error(text) {
        return LintResult {
            parse_errors: vec![mistake],
            ..LintResult::default()
        };
    }
    // The parser has been seen to panic on text that is no Python at all.
    let parse = || ruff_python_parser::parse_unchecked_source(text, dialect.source_type());
    let Ok(parsed) = std::panic::catch_unwind(parse) else {
        return LintResult {
            parse_errors: vec![ParseError {
                range: TextRange::default(),
                message: "cannot be read as Python".to_owned(),
            }],
            ..LintResult::default()
        };
    };
    let mut checked = LintResult {
        parse_errors: parsed
            .errors()
            .iter()
            .map(|error| ParseError {
                range: error.location,
                message: error.error.to_string(),
            })
            .collect(),
        antifreeze_comments: parsed
            .tokens()
            .iter()
            .filter(|token| token.kind() == TokenKind::Comment)
            .map(Ranged::range)
            .filter(|range| text[*range].contains("antifreeze:"))
            .collect(),
        ..LintResult::default()
    };
    if let Some(mistake) = depth::tree_depth_error(parsed.tokens()) {
        checked.parse_errors.push(mistake);
        // Dropping what is too deep to walk would overflow the stack as well.
        std::mem::forget(parsed);
        return checked;
    }
    if !rules.is_empty() && model::mentions_training_library(text) {
        let module = Module::analyze(text, dialect, parsed.syntax(), target);
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
pub const STACK_BYTES: usize = 64 << 20;
