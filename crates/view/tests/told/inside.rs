//! What the verdict makes of what a trainer said of itself.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::shown::Shown;
use antifreeze_diagnose::run::checkpoints::{Checkpoint, Kind};
use antifreeze_diagnose::verdict::Code;
use antifreeze_sense::Phase;
use insta::assert_snapshot;

const HELLO: &str = r#"{"what":"hello","framework":"torch","version":"2.15.0","device":"cpu","dtype":"float32","batch":32}
{"what":"model","optimizer":"AdamW","parameters":1200000,"bytes":4800000}
"#;

fn holder(name: &str, bytes: u64, grown: i64, steps: u64) -> String {
    format!(
        r#"{{"what":"holders","step":900,"resident":12000000000,"names":[{{"steps":{steps},"seconds":10,"more":{grown},"name":"{name}","file":"/home/ada/net/train.py","scope":"train","bytes":{bytes},"length":900,"grown":{grown},"nodes":0,"new_nodes":0,"lines":[12]}}]}}
"#
    )
}

fn leak(said: &str) -> Scene {
    Scene::new()
        .memory(252, |second| 3_600 * MB + second * 41 * MB, |_| 0)
        .trained(
            |second| second * 4,
            |second| match second % 4 {
                0 => Phase::Data,
                1 => Phase::Forward,
                2 => Phase::Backward,
                _ => Phase::Optimizer,
            },
        )
        .refused(251, 41_943_040, 13_890 * MB)
        .said(said)
        .ended(252, EXIT_1)
}

fn first(scene: &Scene) -> (Code, f64, Option<String>) {
    let cause = scene.verdict().causes[0].clone();
    let name = cause.location.and_then(|location| location.name);
    (cause.code, cause.confidence, name)
}

#[test]
fn what_grows_with_the_steps_is_named() {
    let said = HELLO.to_owned() + &holder("history", 9_000 * MB, 400_000_000, 100);
    let scene = leak(&said);
    assert_eq!(
        first(&scene),
        (Code::MemoryLeak, 0.94, Some("history".into()))
    );
    assert_snapshot!(scene.show());
}

#[test]
fn what_is_filled_before_anything_is_trained_is_a_dataset() {
    let scene = leak(&holder("samples", 9_000 * MB, 400_000_000, 0));
    assert_eq!(
        first(&scene),
        (Code::DatasetInMemory, 0.75, Some("samples".into()))
    );
    // Steps of JAX are not seen: it may be either.
    let jax = HELLO.to_owned() + &holder("samples", 9_000 * MB, 400_000_000, 0);
    assert_eq!(first(&leak(&jax)).0, Code::MemoryLeak);
}

#[test]
fn a_small_list_does_not_speak_for_one_large_request() {
    let said = HELLO.to_owned() + &holder("history", 20 * MB, 1_000_000, 100);
    let scene = Scene::new()
        .memory(120, |second| 2 * GB + second * 30 * MB, |_| 0)
        .refused(119, 20 * GB, 5 * GB)
        .said(&said)
        .ended(120, EXIT_1);
    assert_eq!(first(&scene).0, Code::BatchTooLarge);
}

#[test]
fn a_loss_that_is_no_number_is_told_of_a_run_that_finished() {
    let numbers = r#"{"what":"numbers","of":"loss","first":"nan","step":40,"since":36,"value":null,"file":"/home/ada/net/train.py","line":17}
{"what":"numbers","of":"gradient","first":"nan","step":100,"since":36,"value":null}
"#;
    let scene = Scene::new().steady(60, GB).said(numbers).ended(60, 0);
    assert_snapshot!(scene.closing());
}

fn checkpoint(kind: Kind) -> Checkpoint {
    Checkpoint {
        kind,
        step: 900,
        path: "/runs/1/saves/step-900.pt".into(),
        bytes: Some(14_000_000),
        written: std::time::SystemTime::UNIX_EPOCH,
    }
}

#[test]
fn the_command_that_continues_is_offered_where_the_script_can() {
    let mut scene = leak(&format!(
        r#"{HELLO}{{"what":"resumes","step":0,"kinds":["lightning"]}}"#
    ));
    scene.facts.checkpoints = vec![checkpoint(Kind::Lightning)];
    let closing = scene.closing();
    let line = format!(
        "go on    antifreeze run --resume={} -- python train.py",
        scene.facts.run
    );
    assert!(closing.contains(&line), "{closing}");
    // Of another kind it cannot be loaded, and the command would begin at step 0.
    scene.facts.checkpoints = vec![checkpoint(Kind::Torch)];
    let closing = scene.closing();
    assert!(!closing.contains("antifreeze run"), "{closing}");
}

#[test]
fn a_script_that_cannot_continue_is_shown_the_line_that_it_lacks() {
    let saved = r#"{"what":"saved","path":"/runs/1/saves/step-900.pt","step":900,"bytes":14000000,"names":["net","self.adam"]}"#;
    let mut scene = leak(&(HELLO.to_owned() + saved));
    let closing = scene.closing();
    assert!(!closing.contains("step-900"), "it is gone: {closing}");
    scene.facts.checkpoints = vec![checkpoint(Kind::Torch)];
    let closing = scene.closing();
    assert!(
        closing.contains("step = antifreeze.resume(net=net, adam=self.adam)"),
        "{closing}"
    );
    assert!(closing.contains("antifreeze run --resume="), "{closing}");
}
