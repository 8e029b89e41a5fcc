//! Measures how deeply a text is nested without recursion, because walking or dropping a tree that
//! is too deep overflows the stack and aborts the process.

use crate::ParseError;
use ruff_python_ast::token::{Token, TokenKind};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// The largest nesting depth that is checked. It is far beyond handwritten code, and a stack of
/// [`crate::STACK_BYTES`] has room for it.
const MAX_DEPTH: usize = 2_000;

/// Returns an error if brackets are nested deeper than the parser can descend. Brackets in strings
/// are counted too.
pub fn bracket_depth_error(text: &str) -> Option<ParseError> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > MAX_DEPTH {
            let at = TextSize::try_from(at).unwrap_or_default();
            return Some(mistake(TextRange::empty(at)));
        }
    }
    None
}

/// Returns an error if the syntax tree may be too deep to walk. The depth is an upper bound: within
/// one bracket each operator, dot, call or keyword may add one level, until a comma or a newline.
pub fn tree_depth_error(tokens: &[Token]) -> Option<ParseError> {
    let mut outer: Vec<usize> = Vec::new();
    let mut depth = 0usize;
    let mut here = 0usize;
    let mut blocks = 0usize;
    for token in tokens {
        match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                outer.push(here);
                depth += 1;
                here = 0;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                let Some(before) = outer.pop() else { continue };
                depth = depth.saturating_sub(here + 1);
                here = before;
            }
            TokenKind::Comma => {
                depth -= here;
                here = 0;
                continue;
            }
            TokenKind::Newline => {
                outer.clear();
                (depth, here) = (0, 0);
                continue;
            }
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            kind if !deepens(kind) => continue,
            _ => {}
        }
        depth += 1;
        here += 1;
        if depth + blocks > MAX_DEPTH {
            return Some(mistake(token.range()));
        }
    }
    None
}

/// Returns whether a token may add a level to the tree. Names, literals and comments are leaves.
fn deepens(kind: TokenKind) -> bool {
    !matches!(
        kind,
        TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Semi
            | TokenKind::Colon
    )
}

fn mistake(range: TextRange) -> ParseError {
    ParseError {
        range,
        message: "nested too deeply to be checked".to_owned(),
    }
}
