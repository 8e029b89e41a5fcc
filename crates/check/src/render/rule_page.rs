//! Prints a rule's page and the list of rules on a terminal.

use crate::{pages, rules};
use antifreeze_lint::rule::{Rule, Stage};
use antifreeze_text::TermStyle;

/// Renders a rule's page: headings in bold, code indented.
pub fn rule_page(rule: &Rule, style: &TermStyle) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in pages::rule_page(rule).lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let heading = line.trim_start_matches('#');
        match (is_code, heading.len() < line.len()) {
            (true, _) if line.is_empty() => {}
            (true, _) => text.push_str(&format!("    {line}")),
            (false, true) => text.push_str(&style.paint("1", heading.trim())),
            (false, false) => text.push_str(line),
        }
        text.push('\n');
    }
    style.glyphs.render(text)
}

/// Renders every rule in one line.
pub fn rule_list(style: &TermStyle) -> String {
    let widest = rules::all_rules()
        .map(|rule| rule.name.len())
        .max()
        .unwrap_or(0);
    let lines = rules::all_rules().map(|rule| {
        let stage = match rule.stage {
            Stage::Stable => "",
            Stage::Preview => " (preview)",
        };
        let name = style.paint("1", &format!("{:widest$}", rule.name));
        format!("{}  {name}  {}{stage}\n", rule.code, rule.summary())
    });
    style.glyphs.render(lines.collect())
}
