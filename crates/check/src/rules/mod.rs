//! All rules: those of the linter, and those about files and comments.

mod syntax_error;
mod unknown_rule_in_ignore;
mod unused_ignore;

pub use syntax_error::SYNTAX_ERROR;
pub use unknown_rule_in_ignore::UNKNOWN_RULE_IN_IGNORE;
pub use unused_ignore::UNUSED_IGNORE;

use antifreeze_lint::rule::Rule;
use antifreeze_lint::rules::RULES;

/// Returns every rule, sorted by code.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    [&SYNTAX_ERROR, &UNUSED_IGNORE, &UNKNOWN_RULE_IN_IGNORE]
        .into_iter()
        .chain(RULES.iter().copied())
}

/// Returns a rule by its code or its name.
pub fn find_rule(text: &str) -> Option<&'static Rule> {
    all_rules().find(|rule| rule.name == text || rule.code.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_given_once_and_codes_are_in_order() {
        let codes: Vec<_> = all_rules().map(|rule| rule.code).collect();
        assert!(codes.is_sorted_by(|one, other| one < other), "{codes:?}");
        let mut names: Vec<_> = all_rules().map(|rule| rule.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
    }
}
