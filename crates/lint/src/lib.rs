//! Finds code that will freeze the machine in training scripts, without running them.
//!
//! [`check_source`] takes the text of one Python file and returns the findings of the given rules.
//! The text is parsed once, [`model`] works out what its names stand for, and each rule in
//! [`rules`] queries the model. Nothing here reads a file, and no input makes it panic or abort.

#![warn(missing_docs)]

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

/// The result of checking one text.
#[derive(Debug, Default)]
pub struct LintResult {
    /// The findings, sorted by position.
    pub findings: Vec<Finding>,
    /// Why the text is not valid Python, first error first. There may still be findings for the
    /// part that was parsed.
    pub parse_errors: Vec<ParseError>,
    /// The comments that contain `antifreeze:`.
    pub antifreeze_comments: Vec<TextRange>,
}

/// A reason why a text is not valid Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where parsing failed.
    pub range: TextRange,
    /// What is wrong, in the parser's words.
    pub message: String,
}

/// The Python dialect of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect<'a> {
    /// A script or module.
    Python,
    /// A notebook with magic commands. The cells are in the order of the text.
    Notebook(&'a [Cell]),
}

impl Dialect<'_> {
    /// Returns the source type for the parser.
    pub fn source_type(self) -> PySourceType {
        match self {
            Dialect::Python => PySourceType::Python,
            Dialect::Notebook(_) => PySourceType::Ipynb,
        }
    }
}

/// A code cell of a notebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The number of the cell, from one, counting cells of all types.
    pub number: usize,
    /// The offset of the cell in the text of all cells.
    pub start: TextSize,
}

impl Cell {
    /// Returns the cell that contains an offset.
    pub fn containing(cells: &[Cell], offset: TextSize) -> Option<&Cell> {
        let after = cells.partition_point(|cell| cell.start <= offset);
        cells.get(after.checked_sub(1)?)
    }
}

/// Checks one text. The calling thread needs a stack of [`STACK_BYTES`].
pub fn check_source(
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
    // The parser can panic on text that is not Python at all.
    let parse = || ruff_python_parser::parse_unchecked_source(text, dialect.source_type());
    let Ok(parsed) = std::panic::catch_unwind(parse) else {
        return LintResult {
            parse_errors: vec![ParseError {
                range: TextRange::default(),
                message: "cannot be parsed as Python".to_owned(),
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
        // Dropping a tree that is too deep to walk would overflow the stack as well.
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

/// The stack size that [`check_source`] needs for the deepest text it accepts.
pub const STACK_BYTES: usize = 64 << 20;
