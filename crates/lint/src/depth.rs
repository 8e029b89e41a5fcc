//! How deep a text is nested, found without recursion: whoever walks or drops a tree that is
//! too deep overflows the stack, which no program survives.

use crate::ParseError;
use ruff_python_ast::token::{Token, TokenKind};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Far beyond what a person writes, and what [`crate::STACK`] has room for.
const MAX_DEPTH: usize = 2_000;

/// Brackets inside brackets, as the parser would have to descend. Brackets in strings count
/// too; a text with so many of them is no program either.
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

/// An upper bound of the depth of the tree: within one bracket each operator, dot, call or
/// keyword may be one level more, until a comma or a new line ends what they belong to.
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

/// Names, literals and comments are leaves.
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
