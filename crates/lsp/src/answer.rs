//! What is found in a text, and how it can be fixed, in the protocol's words.

use crate::Surroundings;
use crate::texts::{Encoding, Text, Texts};
use antifreeze_check::examine::{self, Fixes, Orders, Report};
use antifreeze_lint::finding::{Edit, Finding, Safety};
use antifreeze_lint::rule::Severity;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Diagnostic,
    DiagnosticSeverity, NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};
use percent_encoding::percent_decode_str;
use ruff_text_size::TextRange;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub struct Answerer<'a, S> {
    pub surroundings: &'a S,
    pub encoding: Encoding,
}

impl<S: Surroundings> Answerer<'_, S> {
    pub fn diagnostics(&self, uri: &Uri, text: &Text) -> Vec<Diagnostic> {
        let lines = text.places();
        self.examined(uri, text, Fixes::None)
            .findings
            .iter()
            .map(|finding| diagnostic(finding, lines.range(finding.range, self.encoding)))
            .collect()
    }

    /// The fixes of what is found where the cursor is, and one that makes all safe ones.
    pub fn actions(&self, asked: CodeActionParams, texts: &Texts) -> Vec<CodeActionOrCommand> {
        let uri = asked.text_document.uri;
        let Some(text) = texts.get(&uri) else {
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
            let findings = self.examined(&uri, text, Fixes::None).findings;
            actions.extend(findings.iter().filter_map(|finding| {
                let lines = text.places();
                let range = lines.range(finding.range, self.encoding);
                touches(range, asked.range)
                    .then(|| self.quick_fix(&uri, text, finding, diagnostic(finding, range)))?
            }));
        }
        if wants(&CodeActionKind::SOURCE_FIX_ALL) {
            actions.extend(self.fix_all(&uri, text));
        }
        actions
            .into_iter()
            .map(CodeActionOrCommand::CodeAction)
            .collect()
    }

    fn quick_fix(
        &self,
        uri: &Uri,
        text: &Text,
        finding: &Finding,
        diagnostic: Diagnostic,
    ) -> Option<CodeAction> {
        let fix = finding.fix.as_ref()?;
        let title = match fix.safety {
            Safety::Safe => fix.title.clone(),
            Safety::Unsafe => format!("{} (may change what is computed)", fix.title),
        };
        Some(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic]),
            edit: Some(self.workspace_edit(uri, text, &fix.edits)),
            is_preferred: Some(fix.safety == Safety::Safe),
            ..CodeAction::default()
        })
    }

    fn fix_all(&self, uri: &Uri, text: &Text) -> Option<CodeAction> {
        let change = self.examined(uri, text, Fixes::Show(Safety::Safe)).change?;
        let whole = TextRange::up_to(text.content.len().try_into().ok()?);
        let all = Edit {
            range: whole,
            content: String::from_utf8(change.after).ok()?,
        };
        Some(CodeAction {
            title: "Make all safe fixes of antifreeze".to_owned(),
            kind: Some(CodeActionKind::SOURCE_FIX_ALL),
            edit: Some(self.workspace_edit(uri, text, &[all])),
            ..CodeAction::default()
        })
    }

    // The protocol keys its edits by address, as the library for it does.
    #[allow(clippy::mutable_key_type)]
    fn workspace_edit(&self, uri: &Uri, text: &Text, edits: &[Edit]) -> WorkspaceEdit {
        let lines = text.places();
        let edits = edits
            .iter()
            .map(|edit| TextEdit::new(lines.range(edit.range, self.encoding), edit.content.clone()))
            .collect();
        WorkspaceEdit::new([(uri.clone(), edits)].into())
    }

    fn examined(&self, uri: &Uri, text: &Text, fixes: Fixes) -> Report {
        let file = file_of(uri);
        // A mistake in the configuration must not silence the editor; it is told by the command.
        let Ok(selection) = self.surroundings.selection(&file) else {
            return Report::default();
        };
        let orders = Orders {
            selection: &selection,
            here: self.surroundings.here(),
            fixes,
        };
        examine::bytes_at(text.content.clone().into_bytes(), &file, &orders)
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

/// The file an address names; an address of something else serves as a name.
fn file_of(uri: &Uri) -> PathBuf {
    let path = match uri.scheme() {
        Some(scheme) if scheme.as_str() == "file" => uri.path().as_str(),
        _ => uri.as_str(),
    };
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    PathBuf::from(OsStr::from_bytes(&decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file() {
        let file = |text: &str| file_of(&text.parse().unwrap());
        assert_eq!(
            file("file:///home/a%20b/train.py"),
            PathBuf::from("/home/a b/train.py")
        );
        assert_eq!(
            file("untitled:Untitled-1"),
            PathBuf::from("untitled:Untitled-1")
        );
    }
}
