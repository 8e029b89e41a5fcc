//! The rule pages in `docs/rules` and their index, generated from the rules and their measured
//! precision.

use crate::{precision, rules};
use antifreeze_lint::rule::{Rule, Severity, Stage};

/// The beginning of the index.
const HEAD: &str = "# Rules

What `antifreeze check` finds. `antifreeze check --explain RULE` shows the same page. Rules in preview
run with `--preview`, or when selected by name.

| code | rule | | | |
|---|---|---|---|---|
";

/// Returns the name and the content of every page.
pub fn all_pages() -> Vec<(String, String)> {
    let index = HEAD.to_owned() + &rules::all_rules().map(index_row).collect::<String>();
    let pages = rules::all_rules().map(|rule| (format!("{}.md", rule.name), rule_page(rule)));
    std::iter::once(("README.md".to_owned(), index))
        .chain(pages)
        .collect()
}

/// Returns the page of a rule with its measured precision.
pub fn rule_page(rule: &Rule) -> String {
    rule.page() + &precision::precision_section(rule)
}

fn index_row(rule: &Rule) -> String {
    let severity = match rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let stage = match rule.stage {
        Stage::Stable => "stable",
        Stage::Preview => "preview",
    };
    let summary = rule.summary().replace('|', "\\|");
    let (code, name) = (rule.code, rule.name);
    format!("| {code} | [{name}]({name}.md) | {severity} | {stage} | {summary} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    const COMMAND: &str = "ANTIFREEZE_WRITE_PAGES=1 cargo test -p antifreeze-check pages";

    #[test]
    fn the_pages_in_docs_are_those_of_the_rules() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        let wanted: BTreeMap<_, _> = all_pages().into_iter().collect();
        if std::env::var_os("ANTIFREEZE_WRITE_PAGES").is_some() {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in &wanted {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let there: BTreeMap<_, _> = fs::read_dir(&folder)
            .unwrap_or_else(|_| panic!("no docs/rules; run: {COMMAND}"))
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect();
        assert!(there == wanted, "docs/rules is stale; run: {COMMAND}");
    }

    #[test]
    fn every_page_begins_with_the_rule_and_says_what_it_is() {
        for rule in rules::all_rules() {
            let title = format!("# {} ({})\n\n", rule.name, rule.code);
            assert!(rule_page(rule).starts_with(&title), "{rule:?}");
            assert!(!rule.summary().is_empty(), "{rule:?}");
        }
    }
}
