//! Comments that ignore findings: `# antifreeze: ignore[rule, AF102]`, or without names for
//! every rule. At the end of a line it counts for that line, and for the whole statement if
//! the line is its first or last; on a line of its own for the next line of code; as
//! `ignore-file` above the first line of code for the whole file. What ignores nothing, and
//! what names no rule, is said.

use crate::names::{self, Named};
use crate::place::Places;
use crate::rules::{UNKNOWN_RULE_IN_IGNORE, UNUSED_IGNORE};
use crate::statements::Statements;
use antifreeze_lint::finding::{Edit, Finding, Fix, Safety};
use antifreeze_lint::rule::Rule;
use ruff_text_size::{TextRange, TextSize};

pub struct Remarks<'a> {
    places: &'a Places,
    statements: Statements,
    remarks: Vec<Remark>,
}

struct Remark {
    /// From its `#` to its end; another remark may follow in the same comment.
    range: TextRange,
    reach: Reach,
    /// None ignores every rule.
    names: Option<Vec<Name>>,
    is_used: bool,
    /// Why it cannot be read.
    flaw: Option<String>,
}

/// What a remark counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    File,
    /// What is on this row, and the statement that begins or ends there.
    Row(usize),
    /// For a file, but too late in it.
    Nothing,
}

struct Name {
    text: String,
    range: TextRange,
    is_used: bool,
}

impl<'a> Remarks<'a> {
    /// `comments` are the comments with an `antifreeze:` in them.
    pub fn read(places: &'a Places, comments: &[TextRange], statements: Statements) -> Remarks<'a> {
        let remarks = comments
            .iter()
            .filter_map(|comment| read(places, *comment))
            .collect();
        Remarks {
            places,
            statements,
            remarks,
        }
    }

    /// Whether a remark ignores this finding; the remark is then of use.
    pub fn ignore(&mut self, finding: &Finding) -> bool {
        let first = self.places.row(finding.range.start());
        let last = self.places.row(finding.range.end());
        let mut ignored = false;
        for remark in &mut self.remarks {
            let is_reached = match remark.reach {
                Reach::File => true,
                Reach::Row(row) => {
                    row == first || row == last || self.statements.ends_hold(row, first)
                }
                Reach::Nothing => false,
            };
            if is_reached && remark.flaw.is_none() {
                ignored |= remark.takes(finding.rule);
            }
        }
        ignored
    }

    /// Whether there is a remark that was of no use so far.
    pub fn has_unused(&self) -> bool {
        self.remarks.iter().any(|remark| !remark.is_of_use())
    }

    /// What is wrong with the remarks themselves.
    pub fn complaints(&self) -> Vec<Finding> {
        let unused = self.remarks.iter().filter_map(|remark| self.unused(remark));
        let unknown = self.remarks.iter().flat_map(|remark| self.unknown(remark));
        unused.chain(unknown).collect()
    }

    fn unused(&self, remark: &Remark) -> Option<Finding> {
        if remark.is_of_use() || remark.flaw.is_some() {
            return None;
        }
        let known = |name: &&Name| names::resolve(&name.text).is_ok();
        let names = remark.names.as_deref().unwrap_or_default();
        let unused: Vec<_> = names
            .iter()
            .filter(known)
            .filter(|name| !name.is_used)
            .map(|name| format!("`{}`", name.text))
            .collect();
        let (message, fix) = if remark.reach == Reach::Nothing {
            let message = "`ignore-file` counts only above the first line of code".to_owned();
            (message, self.removal(remark))
        } else if remark.names.is_none() {
            let message = "this comment ignores nothing: no rule finds anything here".to_owned();
            (message, self.removal(remark))
        } else if unused.is_empty() {
            return None;
        } else {
            let message = format!("nothing here to ignore for {}", unused.join(", "));
            let kept = names.iter().filter(|name| name.is_used || !known(name));
            (message, self.keeping(remark, kept))
        };
        Some(Finding {
            rule: &UNUSED_IGNORE,
            range: remark.range,
            message,
            label: String::new(),
            help: "remove what is not needed, so that it cannot hide a later finding".to_owned(),
            fix: Some(Fix {
                edits: vec![fix],
                safety: Safety::Safe,
                title: "Remove what ignores nothing".to_owned(),
            }),
        })
    }

    fn unknown(&self, remark: &Remark) -> Vec<Finding> {
        let finding = |range, message, help: &str, fix: Option<Edit>| Finding {
            rule: &UNKNOWN_RULE_IN_IGNORE,
            range,
            message,
            label: String::new(),
            help: help.to_owned(),
            fix: fix.map(|edit| Fix {
                edits: vec![edit],
                safety: Safety::Safe,
                title: "Name a rule that there is, or none".to_owned(),
            }),
        };
        if let Some(flaw) = &remark.flaw {
            let help =
                "write `# antifreeze: ignore[rule]`, or `# antifreeze: ignore` for all rules";
            return vec![finding(remark.range, flaw.clone(), help, None)];
        }
        let names = remark.names.as_deref().unwrap_or_default();
        let unknown = names
            .iter()
            .filter(|name| names::resolve(&name.text).is_err());
        let complaint = |name: &Name| {
            let message = format!("there is no rule `{}`", name.text);
            if let Some(rule) = names::nearest(&name.text) {
                let help = format!("write `{}`, if that is what was meant", rule.name);
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
                Some(self.keeping(remark, others)),
            )
        };
        unknown.map(complaint).collect()
    }

    /// The remark with these names alone; none of it if there are none.
    fn keeping<'n>(&self, remark: &Remark, names: impl Iterator<Item = &'n Name>) -> Edit {
        let kept: Vec<_> = names.map(|name| name.text.as_str()).collect();
        let all = remark.names.as_deref().unwrap_or_default();
        match (all.first(), all.last(), kept.is_empty()) {
            (Some(first), Some(last), false) => Edit {
                range: TextRange::new(first.range.start(), last.range.end()),
                content: kept.join(", "),
            },
            _ => self.removal(remark),
        }
    }

    /// Takes the remark out: with its line if nothing else is on it, else with the space
    /// before it.
    fn removal(&self, remark: &Remark) -> Edit {
        let row = self.places.row(remark.range.start());
        let line_start = self.places.start_of_row(row);
        let line = self.places.line(row);
        let line_end = line_start + TextSize::of(line);
        let before = self.between(line_start, remark.range.start());
        let after = self.between(remark.range.end(), line_end);
        let range = match (before.trim().is_empty(), after.trim().is_empty()) {
            (true, true) => TextRange::new(line_start, self.places.start_of_row(row + 1)),
            (false, true) => TextRange::new(line_start + TextSize::of(before.trim_end()), line_end),
            _ => remark.range,
        };
        Edit {
            range,
            content: String::new(),
        }
    }

    fn between(&self, start: TextSize, end: TextSize) -> &str {
        let text = self.places.text();
        text.get(start.to_usize()..end.to_usize())
            .unwrap_or_default()
    }
}

impl Remark {
    fn takes(&mut self, rule: &'static Rule) -> bool {
        let Some(names) = &mut self.names else {
            self.is_used = true;
            return true;
        };
        let mut taken = false;
        for name in names {
            let means_it = match names::resolve(&name.text) {
                Ok(Named::One(named)) => named.code == rule.code,
                Ok(Named::Many(many)) => many.iter().any(|named| named.code == rule.code),
                Err(_) => false,
            };
            name.is_used |= means_it;
            taken |= means_it;
        }
        taken
    }

    fn is_of_use(&self) -> bool {
        match &self.names {
            None => self.is_used,
            Some(names) => names.iter().all(|name| name.is_used),
        }
    }
}

/// The remark of a comment, if it has one for us.
fn read(places: &Places, comment: TextRange) -> Option<Remark> {
    let text = places.text().get(comment.to_std_range())?;
    let (start, after) = text.match_indices('#').find_map(|(start, _)| {
        let rest = text.get(start + 1..)?.trim_start();
        Some((start, rest.strip_prefix("antifreeze:")?.trim_start()))
    })?;
    let (is_for_file, after) = match after.strip_prefix("ignore-file") {
        Some(after) => (true, after),
        None => (false, after.strip_prefix("ignore")?),
    };
    let at = |part: &str| {
        // `part` is a piece of `text`, which begins where the comment does.
        let offset = part.as_ptr() as usize - text.as_ptr() as usize;
        comment.start() + TextSize::try_from(offset).unwrap_or_default()
    };
    let mut flaw = None;
    let mut names = None;
    let mut end = after;
    let listed = after.trim_start();
    if let Some(list) = listed.strip_prefix('[') {
        match list.split_once(']') {
            None => flaw = Some("the list of rules has no end".to_owned()),
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
                    flaw = Some("the list of rules is empty".to_owned());
                }
                names = Some(pieces);
            }
        }
    } else if after.starts_with(|next: char| next.is_alphanumeric() || "-_(:".contains(next)) {
        let word = after.split_whitespace().next().unwrap_or_default();
        let file = if is_for_file { "-file" } else { "" };
        flaw = Some(format!("`ignore{file}{word}` cannot be understood"));
    }
    let end = end.find('#').map_or(comment.end(), |next| {
        at(end) + TextSize::try_from(next).unwrap_or_default()
    });
    let start = comment.start() + TextSize::try_from(start).unwrap_or_default();
    Some(Remark {
        range: TextRange::new(start, end),
        reach: reach(places, comment, is_for_file),
        names,
        is_used: false,
        flaw,
    })
}

fn reach(places: &Places, comment: TextRange, is_for_file: bool) -> Reach {
    let row = places.row(comment.start());
    let is_code = |row: usize| {
        let line = places.line(row).trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    match is_for_file {
        true if (0..=row).any(is_code) => Reach::Nothing,
        true => Reach::File,
        false if is_code(row) => Reach::Row(row),
        false => {
            let last = places.row(TextSize::of(places.text()));
            Reach::Row((row..=last).find(|row| is_code(*row)).unwrap_or(row))
        }
    }
}

#[cfg(test)]
#[path = "remarks_tests.rs"]
mod tests;
