//! How often a rule was right on real training code, as measured by `bench/check --write
//! precision`.

use antifreeze_lint::rule::Rule;
use antifreeze_lint::rules::RULES;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::OnceLock;

#[derive(Deserialize)]
struct Measured {
    /// The number of files checked.
    files: usize,
    /// The judged findings by rule name. Rules without findings are missing.
    rules: HashMap<String, Judged>,
}

#[derive(Deserialize)]
struct Judged {
    right: usize,
    doubtful: usize,
    wrong: usize,
    unlabelled: usize,
}

/// Returns the last section of a rule's page.
pub fn precision_section(rule: &Rule) -> String {
    static MEASURED: OnceLock<Option<Measured>> = OnceLock::new();
    let measured =
        MEASURED.get_or_init(|| serde_json::from_str(include_str!("measured.json")).ok());
    let is_measured = RULES.iter().any(|other| other.code == rule.code);
    match measured {
        Some(measured) if is_measured => {
            format!(
                "\n## Measured\n\n{}\n",
                precision_sentence(measured.files, measured.rules.get(rule.name))
            )
        }
        _ => String::new(),
    }
}

fn precision_sentence(files: usize, judged: Option<&Judged>) -> String {
    let Some(judged) = judged else {
        return format!("It found nothing in {files} real files of training code.");
    };
    let Judged {
        right,
        doubtful,
        wrong,
        unlabelled,
    } = judged;
    let found = right + doubtful + wrong + unlabelled;
    if *unlabelled > 0 {
        return format!(
            "It found {found} in {files} real files of training code, which are not all judged yet."
        );
    }
    let others = [(doubtful, "doubtful"), (wrong, "wrong")];
    let others = others.iter().filter(|(count, _)| **count > 0);
    let others: String = others
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    format!("It found {found} in {files} real files of training code: {right} right{others}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_as_it_was_judged() {
        let judged = |right, doubtful, wrong, unlabelled| Judged {
            right,
            doubtful,
            wrong,
            unlabelled,
        };
        let sentence = |judged: Option<Judged>| precision_sentence(300, judged.as_ref());
        assert!(sentence(None).contains("nothing in 300"));
        assert!(sentence(Some(judged(3, 0, 0, 0))).ends_with("3 right."));
        assert!(
            sentence(Some(judged(3, 1, 2, 0)))
                .ends_with("6 in 300 real files of training code: 3 right, 1 doubtful, 2 wrong.")
        );
        assert!(sentence(Some(judged(3, 0, 0, 1))).contains("not all judged"));
    }

    #[test]
    fn the_figures_are_there_and_speak_of_rules() {
        let measured: Measured = serde_json::from_str(include_str!("measured.json")).unwrap();
        assert!(measured.files >= 300);
        for name in measured.rules.keys() {
            let is_a_rule = RULES.iter().any(|rule| rule.name == name);
            assert!(is_a_rule, "{name}");
        }
    }
}
