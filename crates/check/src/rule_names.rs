//! Resolves rule names, and suggests a rule for a misspelled name.

use crate::error::UnknownRule;
use crate::rules;
use antifreeze_lint::rule::Rule;

/// The rules that a name stands for.
#[derive(Debug)]
pub enum RuleMatch {
    One(&'static Rule),
    /// All rules, or all whose code starts with this prefix.
    Many(Vec<&'static Rule>),
}

/// Resolves a code, a name, a code prefix such as `AF1`, or `ALL`.
pub fn resolve_rules(name: &str) -> Result<RuleMatch, UnknownRule> {
    let name = name.trim();
    if let Some(rule) = rules::find_rule(name) {
        return Ok(RuleMatch::One(rule));
    }
    let is_all = name.eq_ignore_ascii_case("all");
    let prefix = name.to_ascii_uppercase();
    let many: Vec<_> = rules::all_rules()
        .filter(|rule| is_all || (prefix.starts_with("AF") && rule.code.starts_with(&prefix)))
        .collect();
    match many.is_empty() {
        false => Ok(RuleMatch::Many(many)),
        true => Err(unknown_rule(name)),
    }
}

/// Returns the error for a name that is no rule.
pub fn unknown_rule(name: &str) -> UnknownRule {
    UnknownRule {
        name: name.to_owned(),
        suggestion: nearest_rule(name),
    }
}

/// Returns the rule with the most similar name.
pub fn nearest_rule(name: &str) -> Option<&'static Rule> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let distance = |rule: &&'static Rule| edit_distance(&name, rule.name);
    let by_slips = rules::all_rules()
        .min_by_key(distance)
        .filter(|rule| distance(rule) <= name.chars().count() / 3);
    let is_part = |rule: &&'static Rule| name.len() >= 4 && rule.name.contains(&name);
    by_slips.or_else(|| rules::all_rules().find(is_part))
}

/// Returns the Levenshtein distance of two strings.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, character) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut diagonal = index;
        row[0] = left;
        for (column, wanted) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(character != *wanted);
            diagonal = row[column + 1];
            left = exchanged.min(left + 1).min(diagonal + 1);
            row[column + 1] = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (one, other, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("graph", "graph", 0),
        ] {
            assert_eq!(edit_distance(one, other), count, "{one} {other}");
            assert_eq!(edit_distance(other, one), count, "{other} {one}");
        }
    }

    #[test]
    fn rules_are_found_by_code_name_and_beginning() {
        for name in ["AF001", "af001", "unused-ignore"] {
            assert!(
                matches!(resolve_rules(name), Ok(RuleMatch::One(rule)) if rule.code == "AF001")
            );
        }
        assert!(matches!(resolve_rules("AF00"), Ok(RuleMatch::Many(many)) if many.len() == 3));
        assert!(matches!(resolve_rules("ALL"), Ok(RuleMatch::Many(many)) if many.len() >= 3));
    }

    #[test]
    fn a_slip_of_the_hand_is_answered_with_the_name() {
        for name in ["unused-ignor", "unused_ignore", "unusedignore"] {
            assert!(
                resolve_rules(name)
                    .unwrap_err()
                    .to_string()
                    .contains("`unused-ignore`"),
                "{name}"
            );
        }
        for name in ["quux", "", "A", "AF999"] {
            assert!(
                resolve_rules(name)
                    .unwrap_err()
                    .to_string()
                    .contains("--explain"),
                "{name}"
            );
        }
    }
}
