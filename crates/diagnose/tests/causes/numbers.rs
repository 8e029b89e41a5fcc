//! Values that are no numbers, or run away.

use crate::scenes::{EXIT_1, GB, Scene};
use crate::{blames, is_healthy};
use antifreeze_diagnose::Code;

fn told(first: &str) -> Scene {
    let line = format!(
        r#"{{"what":"numbers","of":"loss","first":"{first}","step":40,"since":39,"file":"t.py","line":9}}"#
    );
    Scene::new().steady(60, GB).said(&line).ended(60, 0)
}

#[test]
fn a_loss_that_is_no_number_is_told_with_its_step() {
    blames(&told("nan"), Code::NumericNan, 0.9);
    blames(&told("inf"), Code::NumericNan, 0.9);
    assert!(
        told("nan").verdict().causes[0]
            .summary
            .contains("at step 40")
    );
}

#[test]
fn a_loss_that_runs_away_is_likely_no_more() {
    blames(&told("divergence"), Code::NumericDivergence, 0.6);
    assert!(told("divergence").verdict().causes[0].confidence < 0.8);
}

#[test]
fn without_the_shim_a_printed_loss_tells() {
    let printed = |line: &str| Scene::new().steady(60, GB).printed(line).ended(60, 0);
    for line in [
        "epoch 3 loss: nan\n",
        "step 9, loss=inf, lr=0.1\n",
        "{'loss': nan}\n",
        "Loss tensor(nan)\n",
    ] {
        blames(&printed(line), Code::NumericNan, 0.75);
    }
    for line in [
        "loss: 0.31 nanoseconds 4\n",
        "loss_info: fine\n",
        "nan loss check passed\n",
        "gloss: nano\n",
    ] {
        is_healthy(&printed(line));
    }
}

#[test]
fn an_error_that_has_nothing_to_do_with_it_comes_first() {
    let mut scene = told("nan");
    scene.events.clear();
    let scene = scene
        .printed(
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'x'\n",
        )
        .ended(60, EXIT_1);
    let codes: Vec<Code> = scene
        .verdict()
        .causes
        .iter()
        .map(|cause| cause.code)
        .collect();
    assert!(
        codes.contains(&Code::UserException) && codes.contains(&Code::NumericNan),
        "{codes:?}"
    );
}
