//! Runs the rules on one source and applies the comments that suppress findings.

use crate::position::PositionMap;
use crate::python2;
use crate::rules::{self, SYNTAX_ERROR, UNKNOWN_RULE_IN_IGNORE, UNUSED_IGNORE};
use crate::source::Source;
use crate::statements::Statements;
use crate::suppressions::Suppressions;
use antifreeze_lint::finding::Finding;
use antifreeze_lint::rule::Rule;
use antifreeze_lint::target_machine::TargetMachine;
use antifreeze_lint::{LintResult, ParseError};
use ruff_text_size::TextRange;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The rules to run and the machine to compare with.
pub struct SourceLinter {
    pub target: TargetMachine,
    /// The enabled rules, sorted by code.
    pub rules: Vec<&'static Rule>,
}

/// A machine on which everything is too large.
const SMALLEST_MACHINE: TargetMachine = TargetMachine {
    ram_bytes: Some(1),
    vram_bytes: Some(1),
    cores: Some(1),
};

impl SourceLinter {
    /// Returns the findings in the order of the text.
    pub fn lint(&self, source: &Source) -> Vec<Finding> {
        let mut findings = match memchr::memmem::find(source.text.as_bytes(), b"antifreeze:") {
            None => self.lint_without_suppressions(source),
            Some(_) => self.lint_with_suppressions(source),
        };
        findings.sort_by_key(|finding| (finding.range.start(), finding.rule.code));
        findings
    }

    fn lint_without_suppressions(&self, source: &Source) -> Vec<Finding> {
        let checked = run_rules(source, &self.target, &self.rules);
        let syntax_error = self.syntax_error_finding(source, &checked.parse_errors);
        let mut findings = checked.findings;
        findings.extend(syntax_error);
        findings
    }

    /// Runs every rule, because a comment is not unused just because its rule is off.
    fn lint_with_suppressions(&self, source: &Source) -> Vec<Finding> {
        let all: Vec<_> = rules::all_rules().collect();
        let checked = run_rules(source, &self.target, &all);
        let is_whole = checked.parse_errors.is_empty();
        let positions = PositionMap::new(source.text.clone(), source.cells().cloned());
        let statements = match is_whole {
            true => Statements::parse(&positions, source.dialect()),
            false => Statements::default(),
        };
        let mut suppressions =
            Suppressions::parse_all(&positions, &checked.antifreeze_comments, statements);
        let syntax_error = self.syntax_error_finding(source, &checked.parse_errors);
        let mut findings: Vec<_> = checked.findings;
        findings.retain(|finding| !suppressions.ignore(finding) && self.wants(finding.rule));
        findings.extend(syntax_error);
        if is_whole && (self.wants(&UNUSED_IGNORE) || self.wants(&UNKNOWN_RULE_IN_IGNORE)) {
            if suppressions.has_unused() {
                for finding in run_rules(source, &SMALLEST_MACHINE, &all).findings {
                    suppressions.ignore(&finding);
                }
            }
            let complaints = suppressions.findings_about_comments().into_iter();
            findings.extend(complaints.filter(|finding| self.wants(finding.rule)));
        }
        findings
    }

    /// Returns the first parse error. Later errors are mostly consequences of it.
    fn syntax_error_finding(
        &self,
        source: &Source,
        parse_errors: &[ParseError],
    ) -> Option<Finding> {
        let first = parse_errors.first().filter(|_| self.wants(&SYNTAX_ERROR))?;
        let mut finding = Finding {
            rule: &SYNTAX_ERROR,
            range: first.range,
            message: first.message.clone(),
            label: String::new(),
            help: String::new(),
            fix: None,
        };
        if let Some((range, sign)) = python2::find_python2_syntax(&source.text, parse_errors) {
            finding.range = range;
            finding.message = format!("looks like Python 2 ({sign}), which is not checked");
        } else if parse_errors.len() > 1 {
            let more = parse_errors.len() - 1;
            finding.label = format!("and {more} more after it");
        }
        Some(finding)
    }

    fn wants(&self, rule: &Rule) -> bool {
        self.rules.iter().any(|wanted| wanted.code == rule.code)
    }
}

/// Runs rules on a source. A panic of the parser counts as a parse error of the file.
pub fn run_rules(source: &Source, target: &TargetMachine, rules: &[&'static Rule]) -> LintResult {
    let with = |rules: &[&'static Rule]| {
        catch_unwind(AssertUnwindSafe(|| {
            antifreeze_lint::check_source(&source.text, source.dialect(), target, rules)
        }))
    };
    with(rules).unwrap_or_else(|panic| match with(&[]) {
        // The file can be parsed, so the panic is a bug in a rule.
        Ok(_) => resume_unwind(panic),
        Err(_) => LintResult {
            parse_errors: vec![ParseError {
                range: TextRange::default(),
                message: "this cannot be parsed".to_owned(),
            }],
            ..LintResult::default()
        },
    })
}
