//! Comments that ignore findings: `# antifreeze: ignore[rule, AF102]`, or without names for every
//! rule.
//!
//! At the end of a line a comment applies to that line, and to the whole statement if the line is
//! its first or last. On a line of its own it applies to the next line of code. `ignore-file` above
//! the first line of code applies to the whole file. Comments that ignore nothing or name an
//! unknown rule are reported.

use crate::position::PositionMap;
use crate::rule_names::{self, RuleMatch};
use crate::rules::{UNKNOWN_RULE_IN_IGNORE, UNUSED_IGNORE};
use crate::statements::Statements;
use antifreeze_lint::finding::{Edit, Finding, Fix, Safety};
use antifreeze_lint::rule::Rule;
use ruff_text_size::{TextRange, TextSize};

pub struct Suppressions<'a> {
    positions: &'a PositionMap,
    statements: Statements,
    suppressions: Vec<Suppression>,
}

struct Suppression {
    /// From `#` to the end; another suppression may follow in the same comment.
    range: TextRange,
    scope: Scope,
    /// The rules to ignore, or `None` for every rule.
    names: Option<Vec<Name>>,
    is_used: bool,
    /// Why the comment cannot be parsed.
    parse_error: Option<String>,
}

/// The part of the file that a comment applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    File,
    /// Findings on this row, and in the statement that begins or ends there.
    Row(usize),
    /// An `ignore-file` below the first line of code.
    Nothing,
}

struct Name {
    text: String,
    range: TextRange,
    is_used: bool,
}

impl<'a> Suppressions<'a> {
    /// Parses the comments that contain `antifreeze:`.
    pub fn parse_all(
        positions: &'a PositionMap,
        comments: &[TextRange],
        statements: Statements,
    ) -> Suppressions<'a> {
        let suppressions = comments
            .iter()
            .filter_map(|comment| parse_comment(positions, *comment))
            .collect();
        Suppressions {
            positions,
            statements,
            suppressions,
        }
    }

    /// Whether a comment ignores this finding. The comment then counts as used.
    pub fn ignore(&mut self, finding: &Finding) -> bool {
        let first = self.positions.row(finding.range.start());
        let last = self.positions.row(finding.range.end());
        let mut ignored = false;
        for suppression in &mut self.suppressions {
            let is_reached = match suppression.scope {
                Scope::File => true,
                Scope::Row(row) => {
                    row == first || row == last || self.statements.is_boundary_of(row, first)
                }
                Scope::Nothing => false,
            };
            if is_reached && suppression.parse_error.is_none() {
                ignored |= suppression.matches_rule(finding.rule);
            }
        }
        ignored
    }

    /// Whether any comment is still unused.
    pub fn has_unused(&self) -> bool {
        self.suppressions
            .iter()
            .any(|suppression| !suppression.is_used_up())
    }

    /// Returns the findings about the comments themselves.
    pub fn findings_about_comments(&self) -> Vec<Finding> {
        let unused = self
            .suppressions
            .iter()
            .filter_map(|suppression| self.unused_finding(suppression));
        let unknown = self
            .suppressions
            .iter()
            .flat_map(|suppression| self.unknown_rule_findings(suppression));
        unused.chain(unknown).collect()
    }

    fn unused_finding(&self, suppression: &Suppression) -> Option<Finding> {
        if suppression.is_used_up() || suppression.parse_error.is_some() {
            return None;
        }
        let known = |name: &&Name| rule_names::resolve_rules(&name.text).is_ok();
        let names = suppression.names.as_deref().unwrap_or_default();
        let unused: Vec<_> = names
            .iter()
            .filter(known)
            .filter(|name| !name.is_used)
            .map(|name| format!("`{}`", name.text))
            .collect();
        let (message, fix) = if suppression.scope == Scope::Nothing {
            let message = "`ignore-file` only works above the first line of code".to_owned();
            (message, self.remove_suppression(suppression))
        } else if suppression.names.is_none() {
            let message = "this comment ignores nothing: there is no finding here".to_owned();
            (message, self.remove_suppression(suppression))
        } else if unused.is_empty() {
            return None;
        } else {
            let message = format!("no finding to ignore here for {}", unused.join(", "));
            let kept = names.iter().filter(|name| name.is_used || !known(name));
            (message, self.keep_names(suppression, kept))
        };
        Some(Finding {
            rule: &UNUSED_IGNORE,
            range: suppression.range,
            message,
            label: String::new(),
            help: "remove it, so that it cannot hide a later finding".to_owned(),
            fix: Some(Fix {
                edits: vec![fix],
                safety: Safety::Safe,
                title: "Remove the unused ignore".to_owned(),
            }),
        })
    }

    fn unknown_rule_findings(&self, suppression: &Suppression) -> Vec<Finding> {
        let finding = |range, message, help: &str, fix: Option<Edit>| Finding {
            rule: &UNKNOWN_RULE_IN_IGNORE,
            range,
            message,
            label: String::new(),
            help: help.to_owned(),
            fix: fix.map(|edit| Fix {
                edits: vec![edit],
                safety: Safety::Safe,
                title: "Use an existing rule, or none".to_owned(),
            }),
        };
        if let Some(parse_error) = &suppression.parse_error {
            let help =
                "write `# antifreeze: ignore[rule]`, or `# antifreeze: ignore` for all rules";
            return vec![finding(suppression.range, parse_error.clone(), help, None)];
        }
        let names = suppression.names.as_deref().unwrap_or_default();
        let unknown = names
            .iter()
            .filter(|name| rule_names::resolve_rules(&name.text).is_err());
        let complaint = |name: &Name| {
            let message = format!("there is no rule `{}`", name.text);
            if let Some(rule) = rule_names::nearest_rule(&name.text) {
                let help = format!("write `{}` if you meant that", rule.name);
                let edit = Edit {
                    range: name.range,
                    content: rule.name.to_owned(),
                };
                return finding(name.range, message, &help, Some(edit));
            }
            let others = names.iter().filter(|other| other.range != name.range);
            let help = "`antifreeze check --explain` lists the rules";
            finding(
                name.range,
                message,
                help,
                Some(self.keep_names(suppression, others)),
            )
        };
        unknown.map(complaint).collect()
    }

    /// Returns an edit that keeps only these names, or removes the comment if there are none.
    fn keep_names<'n>(
        &self,
        suppression: &Suppression,
        names: impl Iterator<Item = &'n Name>,
    ) -> Edit {
        let kept: Vec<_> = names.map(|name| name.text.as_str()).collect();
        let all = suppression.names.as_deref().unwrap_or_default();
        match (all.first(), all.last(), kept.is_empty()) {
            (Some(first), Some(last), false) => Edit {
                range: TextRange::new(first.range.start(), last.range.end()),
                content: kept.join(", "),
            },
            _ => self.remove_suppression(suppression),
        }
    }

    /// Returns an edit that removes the comment, with its line if nothing else is on it, otherwise
    /// with the space before it.
    fn remove_suppression(&self, suppression: &Suppression) -> Edit {
        let row = self.positions.row(suppression.range.start());
        let line_start = self.positions.start_of_row(row);
        let line = self.positions.line(row);
        let line_end = line_start + TextSize::of(line);
        let before = self.between(line_start, suppression.range.start());
        let after = self.between(suppression.range.end(), line_end);
        let range = match (before.trim().is_empty(), after.trim().is_empty()) {
            (true, true) => TextRange::new(line_start, self.positions.start_of_row(row + 1)),
            (false, true) => TextRange::new(line_start + TextSize::of(before.trim_end()), line_end),
            _ => suppression.range,
        };
        Edit {
            range,
            content: String::new(),
        }
    }

    fn between(&self, start: TextSize, end: TextSize) -> &str {
        let text = self.positions.text();
        text.get(start.to_usize()..end.to_usize())
            .unwrap_or_default()
    }
}

impl Suppression {
    fn matches_rule(&mut self, rule: &'static Rule) -> bool {
        let Some(names) = &mut self.names else {
            self.is_used = true;
            return true;
        };
        let mut taken = false;
        for name in names {
            let means_it = match rule_names::resolve_rules(&name.text) {
                Ok(RuleMatch::One(named)) => named.code == rule.code,
                Ok(RuleMatch::Many(many)) => many.iter().any(|named| named.code == rule.code),
                Err(_) => false,
            };
            name.is_used |= means_it;
            taken |= means_it;
        }
        taken
    }

    fn is_used_up(&self) -> bool {
        match &self.names {
            None => self.is_used,
            Some(names) => names.iter().all(|name| name.is_used),
        }
    }
}

/// Parses the suppression in a comment, if there is one.
fn parse_comment(positions: &PositionMap, comment: TextRange) -> Option<Suppression> {
    let text = positions.text().get(comment.to_std_range())?;
    let (start, after) = text.match_indices('#').find_map(|(start, _)| {
        let rest = text.get(start + 1..)?.trim_start();
        Some((start, rest.strip_prefix("antifreeze:")?.trim_start()))
    })?;
    let (is_for_file, after) = match after.strip_prefix("ignore-file") {
        Some(after) => (true, after),
        None => (false, after.strip_prefix("ignore")?),
    };
    let at = |part: &str| {
        // `part` is a slice of `text`, which starts where the comment does.
        let offset = part.as_ptr() as usize - text.as_ptr() as usize;
        comment.start() + TextSize::try_from(offset).unwrap_or_default()
    };
    let mut parse_error = None;
    let mut names = None;
    let mut end = after;
    let listed = after.trim_start();
    if let Some(list) = listed.strip_prefix('[') {
        match list.split_once(']') {
            None => parse_error = Some("the list of rules is not closed".to_owned()),
            Some((list, rest)) => {
                end = rest;
                let pieces = list.split(',').map(str::trim);
                let pieces: Vec<_> = pieces
                    .filter(|piece| !piece.is_empty())
                    .map(|piece| Name {
                        text: piece.to_owned(),
                        range: TextRange::at(at(piece), TextSize::of(piece)),
                        is_used: false,
                    })
                    .collect();
                if pieces.is_empty() {
                    parse_error = Some("the list of rules is empty".to_owned());
                }
                names = Some(pieces);
            }
        }
    } else if after.starts_with(|next: char| next.is_alphanumeric() || "-_(:".contains(next)) {
        let word = after.split_whitespace().next().unwrap_or_default();
        let file = if is_for_file { "-file" } else { "" };
        parse_error = Some(format!("`ignore{file}{word}` is not understood"));
    }
    let end = end.find('#').map_or(comment.end(), |next| {
        at(end) + TextSize::try_from(next).unwrap_or_default()
    });
    let start = comment.start() + TextSize::try_from(start).unwrap_or_default();
    Some(Suppression {
        range: TextRange::new(start, end),
        scope: suppression_scope(positions, comment, is_for_file),
        names,
        is_used: false,
        parse_error,
    })
}

fn suppression_scope(positions: &PositionMap, comment: TextRange, is_for_file: bool) -> Scope {
    let row = positions.row(comment.start());
    let is_code = |row: usize| {
        let line = positions.line(row).trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    match is_for_file {
        true if (0..=row).any(is_code) => Scope::Nothing,
        true => Scope::File,
        false if is_code(row) => Scope::Row(row),
        false => {
            let last = positions.row(TextSize::of(positions.text()));
            Scope::Row((row..=last).find(|row| is_code(*row)).unwrap_or(row))
        }
    }
}

#[cfg(test)]
#[path = "suppressions_tests.rs"]
mod tests;
