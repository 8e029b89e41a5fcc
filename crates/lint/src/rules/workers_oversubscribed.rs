//! # workers-oversubscribed (AF206)
//!
//! A DataLoader has more workers than this machine has cores.
//!
//! ## Why it freezes
//!
//! Each worker is a process that needs a core, holds its own batches (two by default) and, over
//! time, its own copy of the dataset's objects. More workers than cores only take turns: loading
//! gets no faster, everything else on the machine waits, and memory use multiplies. Several
//! training processes each start their own workers.
//!
//! ## Wrong
//!
//! ```python
//! loader = DataLoader(dataset, batch_size=64, num_workers=32)  # on 8 cores
//! ```
//!
//! ## Right
//!
//! ```python
//! loader = DataLoader(dataset, batch_size=64, num_workers=6)
//! ```
//!
//! ## When it is fine
//!
//! When the script runs on a larger machine: name its cores with `--cores`. A number known only at
//! run time is not reported.
//!
//! ## Fix
//!
//! Unsafe: as many workers as cores, if the number is written in the call.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{FrameId, Module, ValueKind};
use crate::queries::loaders::{find_loaders, reachable_functions, worker_count};
use crate::rule::{Rule, Severity, Stage};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF206",
    name: "workers-oversubscribed",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("workers_oversubscribed.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    let Some(cores) = module.target.cores.map(f64::from) else {
        return;
    };
    for loader in find_loaders(module) {
        if let Some((each, written)) = worker_count(module, loader) {
            let processes = process_count(module, loader.context.frame);
            if each * processes > cores && each >= 1.0 {
                let mut finding = finding(each, processes, cores);
                finding.range = written.map_or(loader.expr.range(), Ranged::range);
                finding.fix = written
                    .filter(|written| written.is_number_literal_expr())
                    .map(|written| Fix {
                        edits: vec![Edit {
                            range: written.range(),
                            content: format!("{}", fitting_worker_count(processes, cores)),
                        }],
                        safety: Safety::Unsafe,
                        title: "Start at most as many workers as cores".to_owned(),
                    });
                findings.push(finding);
            }
        }
    }
}

fn fitting_worker_count(processes: f64, cores: f64) -> f64 {
    (cores / processes).floor().max(0.0)
}

/// Returns how many processes run this function at once, as far as the text says: `mp.spawn(work,
/// nprocs=4)`.
fn process_count(module: &Module<'_>, frame: FrameId) -> f64 {
    let spawned = module.calls().iter().find_map(|call| {
        call.path
            .filter(|path| path.is("torch.multiprocessing.spawn"))?;
        let number = module.argument(call, 2, "nprocs")?.as_number()?;
        let ValueKind::Function(id) = module.argument(call, 0, "fn")?.kind else {
            return None;
        };
        reachable_functions(module, FrameId(id), 3)
            .contains(&frame)
            .then_some(number)
    });
    spawned.filter(|number| *number >= 1.0).unwrap_or(1.0)
}

fn finding(each: f64, processes: f64, cores: f64) -> Finding {
    let (message, label) = if processes > 1.0 {
        let all = each * processes;
        (
            format!(
                "{processes} processes with {each} workers each are {all} on {cores} cores: they slow each other and the machine"
            ),
            format!("{all} in total"),
        )
    } else {
        (
            format!("{each} workers on {cores} cores slow each other and the machine"),
            format!("{} more than cores", each - cores),
        )
    };
    let fits = fitting_worker_count(processes, cores);
    Finding {
        rule: &RULE,
        range: Default::default(),
        message,
        label,
        help: format!(
            "start at most as many as cores, with one core left for training: num_workers={}",
            (fits - 1.0).max(0.0)
        ),
        fix: None,
    }
}
