//! Recognizes Python 2 code among texts that are not valid Python 3.

use antifreeze_lint::ParseError;
use ruff_text_size::{TextRange, TextSize};

/// The number of parse errors that are examined. A Python 2 file shows one early.
const MAX_EXAMINED_ERRORS: usize = 50;

/// Returns the range and the description of the first Python 2 syntax.
pub fn find_python2_syntax(
    text: &str,
    parse_errors: &[ParseError],
) -> Option<(TextRange, &'static str)> {
    parse_errors
        .iter()
        .take(MAX_EXAMINED_ERRORS)
        .find_map(|parse_error| {
            let at = text.floor_char_boundary(parse_error.range.start().to_usize());
            let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[start..].lines().next().unwrap_or_default();
            let statement = line.trim_start();
            let sign = sign_of(statement)?;
            let start = start + line.len() - statement.len();
            Some((
                TextRange::at(
                    TextSize::try_from(start).unwrap_or_default(),
                    TextSize::of(statement.trim_end()),
                ),
                sign,
            ))
        })
}

fn sign_of(line: &str) -> Option<&'static str> {
    let follows = |word: &str| {
        let rest = line.strip_prefix(word)?;
        rest.starts_with([' ', '\t', '"', '\'', '>'])
            .then(|| rest.trim_start())
    };
    if follows("print").is_some_and(|rest| !rest.starts_with(['(', '=', '.', ',', '[', ')'])) {
        return Some("`print` without parentheses");
    }
    if follows("exec").is_some_and(|rest| !rest.starts_with(['(', '=', '.'])) {
        return Some("`exec` without parentheses");
    }
    if follows("raise").is_some_and(|rest| {
        rest.split_once(", ").is_some_and(|(kind, _)| {
            kind.chars()
                .all(|c| c.is_alphanumeric() || "_.".contains(c))
        })
    }) {
        return Some("`raise` with a comma");
    }
    if line.contains(" <> ") {
        return Some("`<>`");
    }
    if line.contains('`') && line.matches('`').count().is_multiple_of(2) {
        return Some("backquotes");
    }
    ["ur\"", "ur'"]
        .iter()
        .any(|prefix| line.contains(prefix))
        .then_some("`ur` strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_lint::Dialect;
    use antifreeze_lint::target_machine::TargetMachine;

    fn sign_in(text: &str) -> Option<&'static str> {
        let checked =
            antifreeze_lint::check_source(text, Dialect::Python, &TargetMachine::default(), &[]);
        find_python2_syntax(text, &checked.parse_errors).map(|(_, sign)| sign)
    }

    #[test]
    fn python_2_is_known_by_its_statements() {
        for text in [
            "import os\nif x:\n    print \"loss\", loss\n",
            "print 'a'\n",
            "exec code in scope\n",
            "raise ValueError, 'no'\n",
            "if a <> b: pass\n",
            "x = `y`\n",
        ] {
            assert!(sign_in(text).is_some(), "{text}");
        }
    }

    #[test]
    fn other_mistakes_are_not_laid_at_its_door() {
        for text in [
            "def f(:\n",
            "print('a'\n",
            "x = = 1\n",
            "print = = 1\n",
            "raise f(a, )) \n",
        ] {
            assert_eq!(sign_in(text), None, "{text}");
        }
    }
}
