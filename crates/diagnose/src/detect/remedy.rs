//! Remedies that are changes to the script, made from what the shim knows of the place, and advice in words in terms
//! of the frameworks that are loaded. No code is offered that was not made for the line that it is offered for.

use crate::case::Case;
use crate::ending::{place_of, user_file};
use crate::shim::{
    BatchFacts, BatchSize, ChangeAction, ChangeReason, Holder, ScriptChange, ScriptChanges,
};
use crate::verdict::{Action, Edit, Location, Remedy};
use antifreeze_text::sanitize;

/// What makes a name hold less.
pub(super) fn for_holder(case: &Case<'_>, holder: &Holder) -> Option<Remedy> {
    let changes = case.facts.told.changes_for(&holder.name)?;
    let name = sanitize::escape(holder.name.as_bytes());
    Some(from_changes(case, &changes.file, &changes.edits, &name))
}

/// What has a pipeline of tf.data hold less.
pub(super) fn for_pipeline(case: &Case<'_>) -> Option<Remedy> {
    let ScriptChanges { file, edits, .. } = case.facts.told.changes_for("tf.data")?;
    Some(from_changes(case, file, edits, "tf.data"))
}

/// What has the dataset of a loader hold less.
pub(super) fn for_dataset(case: &Case<'_>) -> Option<Remedy> {
    let ScriptChanges {
        file, edits, shown, ..
    } = case.facts.told.changes_for("torch.utils.data")?;
    let name = sanitize::escape(shown.as_deref().unwrap_or("the dataset").as_bytes());
    Some(from_changes(case, file, edits, &name))
}

/// The line that a remedy changes first.
pub(super) fn first_place(remedy: &Remedy) -> Option<Location> {
    let edit = remedy.edits.first()?;
    Some(Location {
        file: edit.file.clone(),
        line: edit.line,
        name: None,
    })
}

/// What gives a model its samples in parts.
pub(super) fn for_whole_set(case: &Case<'_>) -> Option<Remedy> {
    let BatchFacts { file, edits, .. } = case.facts.told.batch.as_ref()?;
    (!edits.is_empty()).then(|| from_changes(case, file, edits, "the model"))
}

/// A smaller batch, at the line where its size is written. `fitting` is the size that is known to fit.
pub(super) fn for_batch(case: &Case<'_>, fitting: Option<u64>) -> Option<Remedy> {
    /// Of a batch whose first step did not fit; how much is missing is not known.
    const PART: u64 = 8;
    // Without a framework that trains, a number of that name may be anything.
    let told = &case.facts.told;
    let trains = ["torch", "tensorflow", "keras", "jax"]
        .iter()
        .any(|name| told.has_loaded(name));
    if !trains {
        return None;
    }
    let facts = case.facts.told.batch.as_ref()?;
    let BatchSize {
        line,
        before,
        after,
        value,
    } = facts.size.as_ref()?;
    // What else a step takes is not known either.
    let size = fitting.unwrap_or(value / PART).min(value / 2).max(1);
    let code = format!("{before}{size}{after}");
    let file = user_file(facts.file.as_bytes(), case.facts);
    let parts = value.div_ceil(size);
    let note = match facts.batch_norm {
        true => "BatchNorm then learns from fewer samples at a time".to_owned(),
        false => format!(
            "to train as before, sum the gradients of {parts} of them before each optimizer step"
        ),
    };
    Some(Remedy {
        text: format!(
            "a batch of {size} instead of {value} at {}; {note}",
            place_of(&file, *line)
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

/// Where a leak is to be looked for, when nothing of the script could be named.
pub(super) fn advice_on_leak(case: &Case<'_>) -> &'static str {
    let told = &case.facts.told;
    if told.has_loaded("torch") {
        "look for a list, a sum or an attribute that keeps a tensor of every step; keep its value without the graph \
         (`.detach()`, or `.item()` of a single number)"
    } else if told.has_loaded("tensorflow") || told.has_loaded("keras") {
        "look for a list, a callback or a `cache()` that keeps the tensors of every step; keep the numbers that you \
         need of them, or only the newest"
    } else if told.has_loaded("jax") {
        "look for a list or a dictionary that keeps the arrays of every step; keep the numbers that you need of them, \
         or only the newest"
    } else {
        "look for a list or a dictionary that keeps something of every step; keep the numbers that you need of it, or \
         only the newest"
    }
}

/// What to do about a name that grows, when no change to the script is certain to work.
pub(super) fn advice_on_holder(holder: &Holder, place: &str) -> String {
    let name = sanitize::escape(holder.name.as_bytes());
    if holder.nodes > 0 {
        return format!(
            "`{name}` keeps the graphs of many steps ({place}): let go of it after each backward pass, or detach what \
             no gradient is needed of"
        );
    }
    let lines: Vec<String> = holder.used.iter().map(u32::to_string).collect();
    match lines.is_empty() {
        true => format!(
            "`{name}` grows at {place}: keep of each step only the numbers that are used later, write the rest to a \
             file, or let go of what is old"
        ),
        false => format!(
            "`{name}` grows at {place} and is used as a whole at line {}: keep of each step only the numbers that are \
             needed there (for a mean, a sum and a count), or write the rest to a file",
            lines.join(", ")
        ),
    }
}

/// Changes that belong together, in words and in code.
fn from_changes(case: &Case<'_>, file: &str, changes: &[ScriptChange], name: &str) -> Remedy {
    let file = user_file(file.as_bytes(), case.facts);
    let mut texts: Vec<String> = changes
        .iter()
        .map(|change| text(change, &file, name))
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

/// The code of a change with the indentation of the line that it is for.
fn indented(change: &ScriptChange) -> String {
    let is_blank = |indent: &&str| indent.bytes().all(|byte| byte == b' ' || byte == b'\t');
    let indent = Some(change.indent.as_str())
        .filter(is_blank)
        .unwrap_or_default();
    // Further lines of a statement of several lines have the indentation that they had in the script.
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

fn text(change: &ScriptChange, file: &str, name: &str) -> String {
    let place = match change.action {
        ChangeAction::Replace => format!("replace {}", place_of(file, change.line)),
        ChangeAction::Before => format!("insert before {}", place_of(file, change.line)),
        ChangeAction::After => format!("insert after {}", place_of(file, change.last_line)),
    };
    let keep = change.keep.unwrap_or(1);
    match change.why {
        ChangeReason::Detach => format!("store in `{name}` values without their graphs: {place}"),
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
                    "line {used} may use all of `{name}`: keep it in files of the current folder: {place}"
                )
            }
            None => format!("keep what `{name}` holds in files of the current folder: {place}"),
        },
        ChangeReason::State => {
            format!("hand on `{name}` without the graph of the steps before: {place}")
        }
        ChangeReason::Cache => format!("let the cache of `{name}` hold {keep} results: {place}"),
        ChangeReason::TfCache if change.code.is_empty() => {
            format!(
                "`cache()` keeps every sample in memory: remove {}",
                place_of(file, change.line)
            )
        }
        ChangeReason::TfCache => format!("`cache()` keeps every sample in memory: {place}"),
        ChangeReason::TfShuffle => {
            format!("`shuffle` holds as many samples in memory as its buffer has places: {place}")
        }
        ChangeReason::DatasetCache => {
            format!("let `{name}` keep {keep} samples in each worker instead of all: {place}")
        }
        ChangeReason::WholeSet => format!("give `{name}` {keep} samples at a time: {place}"),
        ChangeReason::Other => place,
    }
}
