//! Remedies that are changes to the script, from what the shim knows about the line, and advice for the imported
//! frameworks. Code is offered only for the line that it was made for.

use crate::run::evidence::RunEvidence;
use crate::shim::{
    BatchFacts, BatchSize, ChangeAction, ChangeReason, Holder, ScriptChange, ScriptChanges,
};
use crate::verdict::place::{format_place, user_file};
use crate::verdict::{Action, Edit, Location, Remedy};
use antifreeze_text::sanitize;

/// The change that makes a variable hold less.
pub(super) fn for_holder(evidence: &RunEvidence<'_>, holder: &Holder) -> Option<Remedy> {
    let changes = evidence.facts.shim.script_changes_for(&holder.name)?;
    let name = sanitize::escape(holder.name.as_bytes());
    Some(from_changes(evidence, &changes.file, &changes.edits, &name))
}

/// The change that makes a tf.data pipeline hold less.
pub(super) fn for_pipeline(evidence: &RunEvidence<'_>) -> Option<Remedy> {
    let ScriptChanges { file, edits, .. } = evidence.facts.shim.script_changes_for("tf.data")?;
    Some(from_changes(evidence, file, edits, "tf.data"))
}

/// The change that makes the dataset of a loader hold less.
pub(super) fn for_dataset(evidence: &RunEvidence<'_>) -> Option<Remedy> {
    let ScriptChanges {
        file, edits, shown, ..
    } = evidence.facts.shim.script_changes_for("torch.utils.data")?;
    let name = sanitize::escape(shown.as_deref().unwrap_or("the dataset").as_bytes());
    Some(from_changes(evidence, file, edits, &name))
}

/// The first line that a remedy changes.
pub(super) fn first_place(remedy: &Remedy) -> Option<Location> {
    let edit = remedy.edits.first()?;
    Some(Location {
        file: edit.file.clone(),
        line: edit.line,
        name: None,
    })
}

/// The change that gives a model its samples in batches.
pub(super) fn for_whole_set(evidence: &RunEvidence<'_>) -> Option<Remedy> {
    let BatchFacts { file, edits, .. } = evidence.facts.shim.batch.as_ref()?;
    (!edits.is_empty()).then(|| from_changes(evidence, file, edits, "the model"))
}

/// A smaller batch, at the line that sets its size. `fitting` is a size that is known to fit.
pub(super) fn for_batch(evidence: &RunEvidence<'_>, fitting: Option<u64>) -> Option<Remedy> {
    /// The divisor for a batch whose first step did not fit; how much memory is missing is not known.
    const DIVISOR: u64 = 8;
    // Without a training framework, a number with that name may be anything.
    let told = &evidence.facts.shim;
    let trains = ["torch", "tensorflow", "keras", "jax"]
        .iter()
        .any(|name| told.has_loaded(name));
    if !trains {
        return None;
    }
    let facts = evidence.facts.shim.batch.as_ref()?;
    let BatchSize {
        line,
        before,
        after,
        value,
    } = facts.size.as_ref()?;
    // What else a step needs is not known either.
    let size = fitting.unwrap_or(value / DIVISOR).min(value / 2).max(1);
    let code = format!("{before}{size}{after}");
    let file = user_file(facts.file.as_bytes(), evidence.facts);
    let parts = value.div_ceil(size);
    let note = match facts.batch_norm {
        true => "BatchNorm then sees fewer samples at a time".to_owned(),
        false => format!(
            "to train as before, accumulate gradients over {parts} of them before each optimizer step"
        ),
    };
    Some(Remedy {
        text: format!(
            "a batch of {size} instead of {value} at {}; {note}",
            format_place(&file, *line)
        ),
        code: Some(code.clone()),
        docs: None,
        edits: vec![Edit {
            file,
            action: Action::Replace,
            line: *line,
            last_line: *line,
            before: format!("{before}{value}{after}"),
            code,
            imports: Vec::new(),
        }],
    })
}

/// Where to look for a leak, if no variable is known.
pub(super) fn advice_on_leak(evidence: &RunEvidence<'_>) -> &'static str {
    let told = &evidence.facts.shim;
    if told.has_loaded("torch") {
        "look for a list, a sum or an attribute that keeps a tensor of every step; store its value without the graph \
         (`.detach()`, or `.item()` of a single number)"
    } else if told.has_loaded("tensorflow") || told.has_loaded("keras") {
        "look for a list, a callback or a `cache()` that keeps the tensors of every step; keep only the numbers that \
         you need, or the newest"
    } else if told.has_loaded("jax") {
        "look for a list or a dictionary that keeps the arrays of every step; keep only the numbers that you need, \
         or the newest"
    } else {
        "look for a list or a dictionary that keeps data of every step; keep only the numbers that you need, or \
         the newest"
    }
}

/// What to do about a variable that grows, if no change is certain to work.
pub(super) fn advice_on_holder(holder: &Holder, place: &str) -> String {
    let name = sanitize::escape(holder.name.as_bytes());
    if holder.nodes > 0 {
        return format!(
            "`{name}` keeps the graphs of many steps ({place}): drop it after each backward pass, or detach what \
             needs no gradient"
        );
    }
    let lines: Vec<String> = holder.used.iter().map(u32::to_string).collect();
    match lines.is_empty() {
        true => format!(
            "`{name}` grows at {place}: keep only the numbers that are used later, write the rest to a \
             file, or drop old elements"
        ),
        false => format!(
            "`{name}` grows at {place} and is used as a whole at line {}: keep only the numbers that are \
             needed there (for a mean, a sum and a count), or write the rest to a file",
            lines.join(", ")
        ),
    }
}

/// One remedy from changes that belong together.
fn from_changes(
    evidence: &RunEvidence<'_>,
    file: &str,
    changes: &[ScriptChange],
    name: &str,
) -> Remedy {
    let file = user_file(file.as_bytes(), evidence.facts);
    let mut texts: Vec<String> = changes
        .iter()
        .map(|change| describe_change(change, &file, name))
        .collect();
    texts.dedup();
    let code = changes.iter().flat_map(|change| {
        let imports = change.imports.iter().cloned();
        imports.chain(Some(indented(change)).filter(|code| !code.is_empty()))
    });
    let code: Vec<String> = code.collect();
    let edits = changes.iter().map(|change| Edit {
        file: file.clone(),
        action: match change.action {
            ChangeAction::Replace => Action::Replace,
            ChangeAction::Before => Action::InsertBefore,
            ChangeAction::After => Action::InsertAfter,
        },
        line: change.line,
        last_line: change.last_line.max(change.line),
        before: change.before.clone(),
        code: change.code.clone(),
        imports: change.imports.clone(),
    });
    Remedy {
        text: texts.join("; "),
        code: (!code.is_empty()).then(|| code.join("\n")),
        docs: None,
        edits: edits.collect(),
    }
}

/// The code of a change, indented like its line.
fn indented(change: &ScriptChange) -> String {
    let is_blank = |indent: &&str| indent.bytes().all(|byte| byte == b' ' || byte == b'\t');
    let indent = Some(change.indent.as_str())
        .filter(is_blank)
        .unwrap_or_default();
    // Further lines of a statement keep their indentation.
    let keeps_indentation =
        change.action == ChangeAction::Replace && change.last_line > change.line;
    let lines = change.code.lines().enumerate().map(|(number, line)| {
        match number > 0 && keeps_indentation {
            true => line.to_owned(),
            false => format!("{indent}{line}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Describes a change in words.
fn describe_change(change: &ScriptChange, file: &str, name: &str) -> String {
    let place = match change.action {
        ChangeAction::Replace => format!("replace {}", format_place(file, change.line)),
        ChangeAction::Before => format!("insert before {}", format_place(file, change.line)),
        ChangeAction::After => format!("insert after {}", format_place(file, change.last_line)),
    };
    let keep = change.keep.unwrap_or(1);
    match change.why {
        ChangeReason::Detach => format!("store values without their graphs in `{name}`: {place}"),
        ChangeReason::Bound => match change.first {
            Some(1) => format!("keep only the first and the newest {keep} in `{name}`: {place}"),
            Some(first) => {
                format!("keep only the first {first} and the newest {keep} in `{name}`: {place}")
            }
            None => format!("keep only the newest {keep} in `{name}`: {place}"),
        },
        ChangeReason::Spill => match change.whole {
            Some(used) => {
                format!(
                    "line {used} may use all of `{name}`: keep it in files in the current folder: {place}"
                )
            }
            None => {
                format!("keep the contents of `{name}` in files in the current folder: {place}")
            }
        },
        ChangeReason::State => {
            format!("pass `{name}` on without the graph of earlier steps: {place}")
        }
        ChangeReason::Cache => format!("limit the cache of `{name}` to {keep} results: {place}"),
        ChangeReason::TfCache if change.code.is_empty() => {
            format!(
                "`cache()` keeps every sample in memory: remove {}",
                format_place(file, change.line)
            )
        }
        ChangeReason::TfCache => format!("`cache()` keeps every sample in memory: {place}"),
        ChangeReason::TfShuffle => {
            format!("`shuffle` keeps a whole buffer of samples in memory: {place}")
        }
        ChangeReason::DatasetCache => {
            format!("limit `{name}` to {keep} cached samples in each worker: {place}")
        }
        ChangeReason::WholeSet => format!("pass `{name}` {keep} samples at a time: {place}"),
        ChangeReason::Other => place,
    }
}
