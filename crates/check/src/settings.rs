//! Selects the rules for each file from the configuration and the command line.

use crate::error::SettingsError;
use crate::rule_names::{self, RuleMatch};
use crate::rules::{self, SYNTAX_ERROR};
use antifreeze_lint::rule::{Rule, Stage};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The `[check]` table of the configuration.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    select: Option<Vec<String>>,
    #[serde(default)]
    extend_select: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    per_file_ignores: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    preview: bool,
    #[serde(default)]
    exclude: Vec<String>,
}

/// The command-line flags about rules.
#[derive(Clone, Debug, Default)]
pub struct RuleFlags {
    /// The rules to select; empty if the flag is not given.
    pub select: Vec<String>,
    pub ignore: Vec<String>,
    pub preview: bool,
}

/// The rules that apply to each file.
#[derive(Debug)]
pub struct RuleSelection {
    on: Vec<&'static Rule>,
    per_file: Vec<(PathPatterns, Vec<&'static Rule>)>,
    excluded: PathPatterns,
}

impl Settings {
    /// Combines the settings with the flags, which win. Patterns are relative to `folder`, which
    /// contains the configuration.
    pub fn resolve(
        &self,
        flags: &RuleFlags,
        folder: &Path,
    ) -> Result<RuleSelection, SettingsError> {
        let preview = self.preview || flags.preview;
        let usual = || vec!["ALL".to_owned()];
        let selected = if flags.select.is_empty() {
            let mut names = self.select.clone().unwrap_or_else(usual);
            names.extend(self.extend_select.iter().cloned());
            names
        } else {
            flags.select.clone()
        };
        let mut on = enabled_rules(&selected, preview)?;
        // A rule selected by name on the command line cannot be ignored by the configuration.
        let asked_for: Vec<_> = flags
            .select
            .iter()
            .filter_map(|name| rules::find_rule(name))
            .collect();
        let ignored = named_rules(&self.ignore)?;
        on.retain(|rule| !contains_rule(&ignored, rule) || contains_rule(&asked_for, rule));
        if !contains_rule(&ignored, &SYNTAX_ERROR) && !contains_rule(&on, &SYNTAX_ERROR) {
            on.insert(0, &SYNTAX_ERROR);
        }
        let ignored = named_rules(&flags.ignore)?;
        on.retain(|rule| !contains_rule(&ignored, rule));
        let per_file = self.per_file_ignores.iter().map(|(pattern, names)| {
            let paths = PathPatterns::new(std::slice::from_ref(pattern), folder)?;
            Ok((paths, named_rules(names)?))
        });
        Ok(RuleSelection {
            on,
            per_file: per_file.collect::<Result<_, SettingsError>>()?,
            excluded: PathPatterns::new(&self.exclude, folder)?,
        })
    }
}

impl RuleSelection {
    /// Returns the rules for a file, sorted by code.
    pub fn rules_for(&self, path: &Path) -> Vec<&'static Rule> {
        let mut on = self.on.clone();
        if self.per_file.is_empty() {
            return on;
        }
        for (paths, ignored) in &self.per_file {
            if paths.contain(path) {
                on.retain(|rule| !contains_rule(ignored, rule));
            }
        }
        on
    }

    /// Whether to skip a folder or file when a folder above it is walked.
    pub fn excludes(&self, path: &Path) -> bool {
        self.excluded.contain(path)
    }
}

/// Returns the rules of these names. A rule in preview is enabled by its name, or if preview is on.
fn enabled_rules(names: &[String], preview: bool) -> Result<Vec<&'static Rule>, SettingsError> {
    let mut on: Vec<&'static Rule> = Vec::new();
    for name in names {
        match rule_names::resolve_rules(name)? {
            RuleMatch::One(rule) => on.push(rule),
            RuleMatch::Many(rules) => on.extend(
                rules
                    .into_iter()
                    .filter(|rule| preview || rule.stage == Stage::Stable),
            ),
        }
    }
    on.sort_unstable_by_key(|rule| rule.code);
    on.dedup_by_key(|rule| rule.code);
    Ok(on)
}

fn named_rules(names: &[String]) -> Result<Vec<&'static Rule>, SettingsError> {
    enabled_rules(names, true)
}

fn contains_rule(rules: &[&'static Rule], rule: &Rule) -> bool {
    rules.iter().any(|other| other.code == rule.code)
}

/// Patterns for paths below a folder. They match a path, a file name, or a folder above it.
#[derive(Debug)]
struct PathPatterns {
    patterns: GlobSet,
    folder: PathBuf,
}

impl PathPatterns {
    fn new(patterns: &[String], folder: &Path) -> Result<PathPatterns, SettingsError> {
        let invalid = |pattern: &str, error| SettingsError::Pattern {
            pattern: pattern.to_owned(),
            error,
        };
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let bare = pattern.trim_start_matches("./").trim_end_matches('/');
            let glob = GlobBuilder::new(bare)
                .literal_separator(true)
                .build()
                .map_err(|error| invalid(pattern, error))?;
            set.add(glob);
        }
        Ok(PathPatterns {
            patterns: set
                .build()
                .map_err(|error| invalid(&patterns.join(", "), error))?,
            folder: folder.to_owned(),
        })
    }

    fn contain(&self, path: &Path) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let below = absolute.strip_prefix(&self.folder).unwrap_or(&absolute);
        below.ancestors().any(|part| {
            self.patterns.is_match(part)
                || part
                    .file_name()
                    .is_some_and(|name| self.patterns.is_match(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        serde_json::from_str(text).unwrap()
    }

    fn on(settings: &Settings, select: &[&str], ignore: &[&str]) -> Vec<&'static str> {
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let flags = RuleFlags {
            select: strings(select),
            ignore: strings(ignore),
            preview: false,
        };
        let selection = settings.resolve(&flags, Path::new("/project")).unwrap();
        let rules = selection.rules_for(Path::new("/project/train.py"));
        rules.iter().map(|rule| rule.code).collect()
    }

    #[test]
    fn files_choose_and_flags_win() {
        let file = settings(r#"{"select": ["AF00"], "ignore": ["unused-ignore"]}"#);
        assert_eq!(on(&file, &[], &[]), ["AF000", "AF002"]);
        assert_eq!(on(&file, &["AF001"], &[]), ["AF000", "AF001"]);
        assert_eq!(on(&file, &["AF00"], &[]), ["AF000", "AF002"]);
        assert_eq!(on(&file, &[], &["AF000", "AF002"]), [""; 0]);
        let more = settings(r#"{"select": [], "extend-select": ["AF002"]}"#);
        assert_eq!(on(&more, &[], &[]), ["AF000", "AF002"]);
    }

    #[test]
    fn only_stable_rules_are_on_unless_one_is_named() {
        let usual = on(&Settings::default(), &[], &[]);
        for rule in rules::all_rules() {
            assert_eq!(usual.contains(&rule.code), rule.stage == Stage::Stable);
            assert!(on(&Settings::default(), &[rule.name], &[]).contains(&rule.code));
        }
    }

    #[test]
    fn files_have_their_own_ignores() {
        let file = settings(
            r#"{"select": ["AF00"], "per-file-ignores": {"tests/*": ["AF001"], "old_*.py": ["ALL"]}}"#,
        );
        let selection = file
            .resolve(&RuleFlags::default(), Path::new("/p"))
            .unwrap();
        let count = |path: &str| selection.rules_for(Path::new(path)).len();
        assert_eq!(count("/p/train.py"), 3);
        assert_eq!(count("/p/tests/a.py"), 2);
        assert_eq!(count("/p/tests/deep/a.py"), 2);
        assert_eq!(count("/p/deep/old_train.py"), 0);
    }

    #[test]
    fn folders_and_files_are_excluded_by_pattern() {
        let file = settings(r#"{"exclude": ["vendor/", "./data/raw", "*_pb2.py"]}"#);
        let selection = file
            .resolve(&RuleFlags::default(), Path::new("/p"))
            .unwrap();
        for (path, excluded) in [
            ("/p/vendor", true),
            ("/p/deep/vendor/a.py", true),
            ("/p/data/raw/a.py", true),
            ("/p/deep/data/raw", false),
            ("/p/x_pb2.py", true),
            ("/p/x.py", false),
        ] {
            assert_eq!(selection.excludes(Path::new(path)), excluded, "{path}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_an_error() {
        for text in [
            r#"{"select": ["unused-ignor"]}"#,
            r#"{"ignore": ["unused-ignor"]}"#,
            r#"{"per-file-ignores": {"*": ["unused-ignor"]}}"#,
        ] {
            let error = settings(text).resolve(&RuleFlags::default(), Path::new("/"));
            assert!(
                error
                    .unwrap_err()
                    .to_string()
                    .contains("did you mean `unused-ignore`")
            );
        }
        let error =
            settings(r#"{"exclude": ["a["]}"#).resolve(&RuleFlags::default(), Path::new("/"));
        assert!(error.unwrap_err().to_string().contains("`a[`"));
        assert!(serde_json::from_str::<Settings>(r#"{"selct": []}"#).is_err());
    }
}
