//! The rules, one a file.

use crate::rule::Rule;

/// All of them, by code.
pub static RULES: &[Rule] = &[];

/// A rule by its code or its name.
pub fn find(text: &str) -> Option<&'static Rule> {
    RULES
        .iter()
        .find(|rule| rule.name == text || rule.code.eq_ignore_ascii_case(text))
}
