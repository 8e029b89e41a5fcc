//! # no-prefetch (AF209)
//!
//! A `tf.data` pipeline prepares the next batch only after the current step has finished.
//!
//! ## Why it is slow
//!
//! Without `prefetch` the GPU waits while the CPU prepares a batch, and the CPU waits while the GPU
//! trains. With it both work at once. TensorFlow 2.12 and later adds it automatically
//! (`inject_prefetch`) unless that is turned off; older versions do not.
//!
//! ## Wrong
//!
//! ```python
//! data = tf.data.Dataset.from_tensor_slices((paths, labels)).map(load).batch(32)
//! ```
//!
//! ## Right
//!
//! ```python
//! data = tf.data.Dataset.from_tensor_slices((paths, labels)).map(load).batch(32).prefetch(tf.data.AUTOTUNE)
//! ```
//!
//! ## When it is fine
//!
//! When a step takes far longer than preparing a batch, or `tf.distribute` prefetches for you.
//! Files that use `prefetch` anywhere are not reported.
//!
//! ## Fix
//!
//! Safe: `.prefetch(tf.data.AUTOTUNE)` at the end of the chain.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, Module};
use crate::queries::tf_data::{
    is_tf_dataset, method_range, tensorflow_alias, trains_with_tensorflow,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF209",
    name: "no-prefetch",
    severity: Severity::Info,
    stage: Stage::Preview,
    source: include_str!("no_prefetch.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("tensorflow")
        || module.text.contains(".prefetch(")
        || module.text.contains("tf.distribute")
    {
        return;
    }
    let mut batches = module
        .calls()
        .iter()
        .filter(|call| is_batch(module, call))
        .peekable();
    if batches.peek().is_some() && trains_with_tensorflow(module) {
        for call in batches {
            findings.push(finding(module, call));
        }
    }
}

fn is_batch<'a>(module: &Module<'a>, call: &Call<'a>) -> bool {
    matches!(call.method(), Some("batch" | "padded_batch"))
        && !call.context.inline
        && call
            .object()
            .is_some_and(|object| is_tf_dataset(module, object, call.context.frame))
}

fn finding(module: &Module<'_>, call: &Call<'_>) -> Finding {
    let whole = whole_chain(module, call);
    let name = tensorflow_alias(module);
    Finding {
        rule: &RULE,
        range: method_range(call),
        message: "the pipeline does not prefetch: the GPU waits for each batch, and the CPU for each step".to_owned(),
        label: "no batch is prepared ahead".to_owned(),
        help: format!("end the chain with .prefetch({}.data.AUTOTUNE)", name.unwrap_or("tf")),
        fix: name.map(|name| Fix {
            edits: vec![Edit {
                range: TextRange::empty(whole.end()),
                content: format!(".prefetch({name}.data.AUTOTUNE)"),
            }],
            safety: Safety::Safe,
            title: "Prepare the next batch during the step".to_owned(),
        }),
    }
}

/// Returns the range of the longest method chain that contains a call.
fn whole_chain(module: &Module<'_>, call: &Call<'_>) -> TextRange {
    let begins = module.calls().iter().filter(|other| {
        other.expr.start() == call.expr.start()
            && other.method().is_some()
            && other.expr.end() >= call.expr.end()
    });
    let longest = begins
        .map(|other| other.expr.range())
        .max_by_key(|range| range.end());
    longest.unwrap_or(call.expr.range())
}
