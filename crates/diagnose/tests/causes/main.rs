//! Each cause in a made-up run in which it is the cause, and in one that looks much like it and is not.

mod attribution;
mod code;
mod error_words;
mod gpus;
mod hardware_relevance;
mod log;
mod memory;
mod numbers;
mod output_only;
mod scenes;
mod speed;
mod tracebacks;

use antifreeze_diagnose::Code;
use scenes::Scene;

/// That the first cause is this one, at least so sure.
#[track_caller]
fn blames(scene: &Scene, code: Code, at_least: f64) {
    let verdict = scene.verdict();
    let first = verdict.causes.first();
    let found = first.map(|cause| (cause.code, cause.confidence));
    assert!(
        found.is_some_and(|(first, confidence)| first == code && confidence >= at_least),
        "{:?}: {:#?}",
        verdict.end.kind,
        verdict.causes
    );
}

/// That this one is not named at all.
#[track_caller]
fn spares(scene: &Scene, code: Code) {
    let causes = scene.verdict().causes;
    assert!(causes.iter().all(|cause| cause.code != code), "{causes:#?}");
}

/// That it is named among what it was not.
#[track_caller]
fn rules_out(scene: &Scene, code: Code) {
    let ruled_out = scene.verdict().ruled_out;
    assert!(
        ruled_out.iter().any(|ruled| ruled.code == code),
        "{ruled_out:#?}"
    );
    spares(scene, code);
}

/// That nothing is wrong.
#[track_caller]
fn is_healthy(scene: &Scene) {
    let causes = scene.verdict().causes;
    assert!(causes.is_empty(), "{causes:#?}");
}
