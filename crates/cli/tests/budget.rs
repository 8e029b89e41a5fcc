//! Trainers in plain Python under a budget: real processes, the real wall, the real ladder.

mod support;

use std::time::Duration;
use support::{Scene, example};

#[test]
fn a_healthy_trainer_finishes() {
    let scene = Scene::new();
    let mut run = scene.run("300MB");
    run.args(["--", "python3"]).arg(example("steady.py"));
    scene.finish(&mut run, Duration::from_secs(60)).exits(0);
}
