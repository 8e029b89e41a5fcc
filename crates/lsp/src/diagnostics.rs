//! Converts findings and fixes to the types of the protocol.

use crate::Project;
use crate::documents::{Document, Documents};
use crate::open_texts::Encoding;
use antifreeze_check::check_file::{self, CheckOptions, FileReport, FixMode};
use antifreeze_check::position::PositionMap;
use antifreeze_lint::finding::{Edit, Finding, Safety};
use antifreeze_lint::rule::Severity;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Diagnostic,
    DiagnosticSeverity, Location, NumberOrString, PublishDiagnosticsParams, Range, TextEdit, Uri,
    WorkspaceEdit,
};
use ruff_text_size::TextRange;
use std::collections::HashMap;

pub struct DiagnosticsProvider<'a, S> {
    pub project: &'a S,
    pub encoding: Encoding,
}

impl<S: Project> DiagnosticsProvider<'_, S> {
    /// Returns the diagnostics of each part of a document, including parts without findings.
    pub fn diagnostics(&self, document: &Document) -> Vec<PublishDiagnosticsParams> {
        let found = self.found(document);
        let parts = document.parts.iter().map(|part| {
            let here = found.iter().filter(|(place, _)| place.uri == *part.uri);
            let told = here.map(|(place, finding)| diagnostic(finding, place.range));
            let version = Some(part.text.version);
            PublishDiagnosticsParams::new(part.uri.clone(), told.collect(), version)
        });
        parts.collect()
    }

    /// Returns the fixes of the findings at the cursor, and an action that makes all safe fixes.
    pub fn actions(
        &self,
        asked: &CodeActionParams,
        documents: &Documents,
    ) -> Vec<CodeActionOrCommand> {
        let Some(document) = documents.get(&asked.text_document.uri) else {
            return Vec::new();
        };
        let wants = |kind: &CodeActionKind| {
            let only = asked.context.only.as_ref();
            only.is_none_or(|only| {
                only.iter()
                    .any(|asked| kind.as_str().starts_with(asked.as_str()))
            })
        };
        let mut actions = Vec::new();
        if wants(&CodeActionKind::QUICKFIX) {
            actions.extend(self.quick_fixes(&document, asked));
        }
        if wants(&CodeActionKind::SOURCE_FIX_ALL) {
            actions.extend(self.fix_all(&document));
        }
        actions
            .into_iter()
            .map(CodeActionOrCommand::CodeAction)
            .collect()
    }

    fn quick_fixes(&self, document: &Document, asked: &CodeActionParams) -> Vec<CodeAction> {
        let report = self.examined(document, FixMode::Off);
        let Some(positions) = &report.positions else {
            return Vec::new();
        };
        let fixes = report.findings.iter().filter_map(|finding| {
            let place = self.place(document, finding.range, positions)?;
            let is_meant =
                place.uri == asked.text_document.uri && touches(place.range, asked.range);
            let fix = finding.fix.as_ref().filter(|_| is_meant)?;
            let title = match fix.safety {
                Safety::Safe => fix.title.clone(),
                Safety::Unsafe => format!("{} (may change results)", fix.title),
            };
            Some(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![diagnostic(finding, place.range)]),
                edit: Some(self.workspace_edit(document, &fix.edits, positions)?),
                is_preferred: Some(fix.safety == Safety::Safe),
                ..CodeAction::default()
            })
        });
        fixes.collect()
    }

    // `lsp_types` uses URIs as keys.
    #[allow(clippy::mutable_key_type)]
    fn fix_all(&self, document: &Document) -> Option<CodeAction> {
        let report = self.examined(document, FixMode::Preview(Safety::Safe));
        let contents = document.contents(report.change?.after)?;
        let mut changes = HashMap::new();
        for (part, new) in document.parts.iter().zip(contents) {
            let old = &part.text.content;
            if *old != new {
                let whole = TextRange::up_to(old.len().try_into().ok()?);
                let range = part.text.lines().range(whole, self.encoding);
                changes.insert(part.uri.clone(), vec![TextEdit::new(range, new)]);
            }
        }
        Some(CodeAction {
            title: "Apply all safe antifreeze fixes".to_owned(),
            kind: Some(CodeActionKind::SOURCE_FIX_ALL),
            edit: Some(WorkspaceEdit::new(changes)),
            ..CodeAction::default()
        })
    }

    /// Returns `None` if an edit has no position in the editor.
    #[allow(clippy::mutable_key_type)]
    fn workspace_edit(
        &self,
        document: &Document,
        edits: &[Edit],
        positions: &PositionMap,
    ) -> Option<WorkspaceEdit> {
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for edit in edits {
            let place = self.place(document, edit.range, positions)?;
            let edit = TextEdit::new(place.range, edit.content.clone());
            changes.entry(place.uri).or_default().push(edit);
        }
        Some(WorkspaceEdit::new(changes))
    }

    fn found(&self, document: &Document) -> Vec<(Location, Finding)> {
        let report = self.examined(document, FixMode::Off);
        let Some(positions) = &report.positions else {
            return Vec::new();
        };
        let found = report
            .findings
            .into_iter()
            .filter_map(|finding| Some((self.place(document, finding.range, positions)?, finding)));
        found.collect()
    }

    /// Returns the location of a checked range in the editor.
    fn place(
        &self,
        document: &Document,
        range: TextRange,
        positions: &PositionMap,
    ) -> Option<Location> {
        let (part, range) = document.locate(range, positions)?;
        let range = part.text.lines().range(range, self.encoding);
        Some(Location::new(part.uri.clone(), range))
    }

    fn examined(&self, document: &Document, fixes: FixMode) -> FileReport {
        let file = document.file();
        // An invalid configuration must not stop the server; `antifreeze check` reports it.
        let Some(selection) = self.project.rule_selection(&file) else {
            return FileReport::default();
        };
        let options = CheckOptions {
            selection: &selection,
            target: self.project.target_machine(),
            fixes,
        };
        check_file::check_bytes(document.bytes(), &file, &options)
    }
}

fn diagnostic(finding: &Finding, range: Range) -> Diagnostic {
    let message = match finding.help.as_str() {
        "" => finding.message.clone(),
        help => format!("{}\n{help}", finding.message),
    };
    Diagnostic {
        range,
        severity: Some(match finding.rule.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Info => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(finding.rule.name.to_owned())),
        source: Some("antifreeze".to_owned()),
        message,
        ..Diagnostic::default()
    }
}

fn touches(one: Range, other: Range) -> bool {
    one.start <= other.end && other.start <= one.end
}
