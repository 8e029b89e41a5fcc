//! Selects the fixes that can be applied together, and applies them until nothing is left to fix.

use crate::lint_source::{self, SourceLinter};
use crate::source::Source;
use antifreeze_lint::finding::{Edit, Finding, Fix, Safety};
use antifreeze_lint::target_machine::TargetMachine;
use ruff_text_size::TextRange;

/// The number of rounds after which fixes that enable each other stop.
const MAX_ROUNDS: usize = 10;

/// A source after its fixes.
pub struct Fixed {
    pub source: Source,
    /// The remaining findings.
    pub findings: Vec<Finding>,
    /// The number of fixes made.
    pub count: usize,
    /// Findings whose fix would have left invalid Python.
    pub refused: Vec<Finding>,
}

/// Applies all fixes up to the given safety. A source that cannot be parsed stays unchanged.
pub fn apply_fixes(source: Source, linter: &SourceLinter, safety: Safety) -> Fixed {
    let mut fixed = Fixed {
        findings: linter.lint(&source),
        source,
        count: 0,
        refused: Vec::new(),
    };
    if !parses(&fixed.source) {
        return fixed;
    }
    for _ in 0..MAX_ROUNDS {
        let chosen = choose_compatible(&fixed.source, &fixed.findings, safety);
        let (made, refused) = split_by_parse(&fixed.source, chosen);
        fixed.refused = refused.into_iter().cloned().collect();
        if made.is_empty() {
            break;
        }
        fixed.count += made.len();
        fixed.source = fixed.source.edited(&edits_of(&made));
        fixed.findings = linter.lint(&fixed.source);
    }
    fixed
}

/// Selects findings whose fixes do not conflict. The first of two conflicting fixes wins.
pub fn choose_compatible<'a>(
    source: &Source,
    findings: &'a [Finding],
    safety: Safety,
) -> Vec<&'a Finding> {
    let mut taken: Vec<TextRange> = Vec::new();
    let mut chosen = Vec::new();
    for finding in findings {
        let Some(fix) = &finding.fix else { continue };
        if fix.safety > safety || !is_applicable(fix, source) {
            continue;
        }
        let is_free = |edit: &Edit| {
            !taken
                .iter()
                .any(|other| ranges_conflict(edit.range, *other))
        };
        if fix.edits.iter().all(is_free) {
            taken.extend(fix.edits.iter().map(|edit| edit.range));
            chosen.push(finding);
        }
    }
    chosen
}

/// Splits the selected findings into those whose fixes leave valid Python and those that do not.
fn split_by_parse<'a>(
    source: &Source,
    chosen: Vec<&'a Finding>,
) -> (Vec<&'a Finding>, Vec<&'a Finding>) {
    if chosen.is_empty() || parses(&source.edited(&edits_of(&chosen))) {
        return (chosen, Vec::new());
    }
    let mut made = Vec::new();
    let mut refused = Vec::new();
    for finding in chosen {
        made.push(finding);
        if !parses(&source.edited(&edits_of(&made))) {
            made.pop();
            refused.push(finding);
        }
    }
    (made, refused)
}

fn parses(source: &Source) -> bool {
    lint_source::run_rules(source, &TargetMachine::default(), &[])
        .parse_errors
        .is_empty()
}

fn edits_of<'a>(findings: &[&'a Finding]) -> Vec<&'a Edit> {
    let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
    let mut edits: Vec<_> = fixes.flat_map(|fix| &fix.edits).collect();
    edits.sort_by_key(|edit| edit.range.start());
    edits
}

/// Whether the edits are sorted, separate and inside the text.
fn is_applicable(fix: &Fix, source: &Source) -> bool {
    let is_within = |edit: &Edit| source.text.get(edit.range.to_std_range()).is_some();
    let are_apart = |pair: &[Edit]| match pair {
        [one, other] => {
            one.range.start() < other.range.start() && !ranges_conflict(one.range, other.range)
        }
        _ => true,
    };
    !fix.edits.is_empty()
        && fix.edits.iter().all(is_within)
        && fix.edits.windows(2).all(are_apart)
        && source
            .cells()
            .is_none_or(|cells| cells.can_take(&fix.edits))
}

/// Whether two edits conflict. Two insertions at one position do, because their order is undefined.
fn ranges_conflict(one: TextRange, other: TextRange) -> bool {
    one.start() == other.start() || (one.start() < other.end() && other.start() < one.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_findings::{BAD, finding, range, range_of, with_fix};
    use proptest::prelude::*;
    use std::path::Path;

    fn script(text: &str) -> Source {
        Source::decode(text.into(), Path::new("a.py"))
            .unwrap()
            .unwrap()
    }

    fn linter() -> SourceLinter {
        SourceLinter {
            target: TargetMachine::default(),
            rules: vec![&BAD],
        }
    }

    #[test]
    fn everything_is_fixed_and_nothing_else_changes() {
        let text = "import torch\r\nbad = 1\r\nif bad:\r\n\tx = 'é'  \n";
        let fixed = apply_fixes(script(text), &linter(), Safety::Safe);
        assert_eq!(fixed.count, 2);
        assert!(fixed.findings.is_empty());
        assert_eq!(fixed.source.text, text.replace("bad", "good"));
    }

    #[test]
    fn what_cannot_be_parsed_is_not_fixed() {
        let fixed = apply_fixes(script("import torch\nbad = (\n"), &linter(), Safety::Safe);
        assert_eq!(fixed.count, 0);
    }

    #[test]
    fn a_fix_that_leaves_no_python_is_left_out_and_said() {
        let text = "a = 1\nb = 2\n";
        let breaking = with_fix(
            finding(&BAD, range_of(text, "1")),
            &[(range_of(text, "1"), "(")],
        );
        let sound = with_fix(
            finding(&BAD, range_of(text, "2")),
            &[(range_of(text, "2"), "3")],
        );
        let source = script(text);
        let findings = [breaking, sound];
        let chosen = choose_compatible(&source, &findings, Safety::Safe);
        let (made, refused) = split_by_parse(&source, chosen);
        assert_eq!((made.len(), refused.len()), (1, 1));
        assert_eq!(source.edited(&edits_of(&made)).text, "a = 1\nb = 3\n");
    }

    #[test]
    fn of_two_that_touch_the_first_is_made() {
        let source = script("abcdef");
        let fixed = |edits: [(TextRange, &str); 2]| {
            let findings = edits.map(|edit| with_fix(finding(&BAD, edit.0), &[edit]));
            let chosen = choose_compatible(&source, &findings, Safety::Safe);
            source.edited(&edits_of(&chosen)).text
        };
        assert_eq!(fixed([(range(1, 3), "X"), (range(2, 4), "Y")]), "aXdef");
        assert_eq!(fixed([(range(2, 4), "Y"), (range(1, 3), "X")]), "abYef");
        assert_eq!(fixed([(range(1, 1), "X"), (range(1, 1), "Y")]), "aXbcdef");
        assert_eq!(fixed([(range(1, 3), "X"), (range(3, 4), "Y")]), "aXYef");
    }

    #[test]
    fn an_edit_beyond_the_text_or_within_a_character_is_not_made() {
        let source = script("é");
        for range in [range(0, 1), range(1, 2), range(0, 9), range(7, 9)] {
            let findings = [with_fix(finding(&BAD, range), &[(range, "x")])];
            assert!(choose_compatible(&source, &findings, Safety::Safe).is_empty());
        }
    }

    proptest! {
        /// The selected fixes can always be applied, with the same result as from the end of the
        /// text to its beginning.
        #[test]
        fn chosen_fixes_are_made_to_the_letter(
            text in "[a-zé\r\n]{0,40}",
            spans in prop::collection::vec((0usize..50, 0usize..8, "[A-Z]{0,3}"), 0..12),
        ) {
            let source = script(&text);
            let findings: Vec<_> = spans
                .iter()
                .map(|(start, length, new)| {
                    let range = range(*start, start + length);
                    with_fix(finding(&BAD, range), &[(range, new)])
                })
                .collect();
            let chosen = choose_compatible(&source, &findings, Safety::Safe);
            let edits = edits_of(&chosen);
            let mut expected = text.clone();
            for edit in edits.iter().rev() {
                expected.replace_range(edit.range.to_std_range(), &edit.content);
            }
            prop_assert_eq!(source.edited(&edits).text, expected);
        }
    }
}
