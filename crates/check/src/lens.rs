//! One look at one source: what the rules find that no comment ignores.

use crate::place::Places;
use crate::python2;
use crate::remarks::Remarks;
use crate::rules::{self, SYNTAX_ERROR, UNKNOWN_RULE_IN_IGNORE, UNUSED_IGNORE};
use crate::source::Source;
use crate::statements::Statements;
use antifreeze_lint::finding::Finding;
use antifreeze_lint::here::Here;
use antifreeze_lint::rule::Rule;
use antifreeze_lint::{Checked, Mistake};
use ruff_text_size::TextRange;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What to look for, and for which machine.
pub struct Lens {
    pub here: Here,
    /// By code.
    pub rules: Vec<&'static Rule>,
}

/// A machine on which everything is too large.
const TINY: Here = Here {
    ram: Some(1),
    vram: Some(1),
    cores: Some(1),
};

impl Lens {
    /// What is found, in the order of the text.
    pub fn at(&self, source: &Source) -> Vec<Finding> {
        let mut findings = match memchr::memmem::find(source.text.as_bytes(), b"antifreeze:") {
            None => self.without_remarks(source),
            Some(_) => self.with_remarks(source),
        };
        findings.sort_by_key(|finding| (finding.range.start(), finding.rule.code));
        findings
    }

    fn without_remarks(&self, source: &Source) -> Vec<Finding> {
        let checked = check(source, &self.here, &self.rules);
        let syntax_error = self.syntax_error(source, &checked.mistakes);
        let mut findings = checked.findings;
        findings.extend(syntax_error);
        findings
    }

    /// Every rule has to look, for a comment is not unused because its rule is off.
    fn with_remarks(&self, source: &Source) -> Vec<Finding> {
        let all: Vec<_> = rules::all().collect();
        let checked = check(source, &self.here, &all);
        let is_whole = checked.mistakes.is_empty();
        let places = Places::new(source.text.clone(), source.cells().cloned());
        let statements = match is_whole {
            true => Statements::of(&places, source.dialect()),
            false => Statements::default(),
        };
        let mut remarks = Remarks::read(&places, &checked.remarks, statements);
        let syntax_error = self.syntax_error(source, &checked.mistakes);
        let mut findings: Vec<_> = checked.findings;
        findings.retain(|finding| !remarks.ignore(finding) && self.wants(finding.rule));
        findings.extend(syntax_error);
        if is_whole && (self.wants(&UNUSED_IGNORE) || self.wants(&UNKNOWN_RULE_IN_IGNORE)) {
            if remarks.has_unused() {
                for finding in check(source, &TINY, &all).findings {
                    remarks.ignore(&finding);
                }
            }
            let complaints = remarks.complaints().into_iter();
            findings.extend(complaints.filter(|finding| self.wants(finding.rule)));
        }
        findings
    }

    /// The first mistake: those after it are mostly its consequences.
    fn syntax_error(&self, source: &Source, mistakes: &[Mistake]) -> Option<Finding> {
        let first = mistakes.first().filter(|_| self.wants(&SYNTAX_ERROR))?;
        let mut finding = Finding {
            rule: &SYNTAX_ERROR,
            range: first.range,
            message: first.message.clone(),
            label: String::new(),
            help: String::new(),
            fix: None,
        };
        if let Some((range, sign)) = python2::sign(&source.text, mistakes) {
            finding.range = range;
            finding.message = format!("looks like Python 2 ({sign}), which is not checked");
        } else if mistakes.len() > 1 {
            let more = mistakes.len() - 1;
            finding.label = format!("and {more} more after it");
        }
        Some(finding)
    }

    fn wants(&self, rule: &Rule) -> bool {
        self.rules.iter().any(|wanted| wanted.code == rule.code)
    }
}

/// What the linter makes of a source. Its parser has bugs that end in a panic; for whoever
/// wrote the file that is a file that cannot be parsed, and no more.
pub fn check(source: &Source, here: &Here, rules: &[&'static Rule]) -> Checked {
    let with = |rules: &[&'static Rule]| {
        catch_unwind(AssertUnwindSafe(|| {
            antifreeze_lint::check(&source.text, source.dialect(), here, rules)
        }))
    };
    with(rules).unwrap_or_else(|panic| match with(&[]) {
        // It parses, so the fault is a rule's, which is no fault of the file.
        Ok(_) => resume_unwind(panic),
        Err(_) => Checked {
            mistakes: vec![Mistake {
                range: TextRange::default(),
                message: "this cannot be parsed".to_owned(),
            }],
            ..Checked::default()
        },
    })
}
