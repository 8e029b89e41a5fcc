//! Where one cause is told from another, and trouble from a good run.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::shown::Shown;
use antifreeze_diagnose::verdict::Code;
use antifreeze_record::event::{EventKind, Rung, Trigger};
use antifreeze_sense::{Pid, Reading, Sample};

fn codes(scene: &Scene) -> Vec<Code> {
    scene
        .verdict()
        .causes
        .iter()
        .map(|cause| cause.code)
        .collect()
}

fn is_one_line(scene: &Scene) -> bool {
    !scene.closing().contains('\n')
}

#[test]
fn memory_that_swings_is_no_leak_even_if_it_ends_high() {
    let swinging = |second: u64| if second % 4 == 3 { 12 * GB } else { 6 * GB };
    let scene = Scene::new()
        .memory(120, swinging, |_| 0)
        .refused(119, 40 * MB, 12 * GB)
        .ended(120, EXIT_1);
    assert!(
        !codes(&scene).contains(&Code::MemoryLeak),
        "{:?}",
        codes(&scene)
    );
}

#[test]
fn one_large_request_outweighs_the_growth_before_it() {
    let scene = Scene::new()
        .memory(120, |second| 2 * GB + second * 30 * MB, |_| 0)
        .refused(119, 20 * GB, 5 * GB)
        .ended(120, EXIT_1);
    assert_eq!(codes(&scene)[..2], [Code::BatchTooLarge, Code::MemoryLeak]);
}

#[test]
fn a_container_is_not_blamed_where_the_machine_has_less_left() {
    let tight = |sample: &mut Sample| {
        sample.cgroup.limit = Reading::Value(14 * GB);
        sample.cgroup.limit_available = Reading::Value(2 * GB);
        sample.memory.available = Reading::Value(GB);
    };
    let scene = Scene::new()
        .steady(90, 6 * GB)
        .last(tight)
        .refused(89, 10 * MB, 6 * GB)
        .ended(90, EXIT_1);
    assert!(!codes(&scene).contains(&Code::ContainerLimit));
}

#[test]
fn whatever_was_done_to_the_run_takes_more_than_one_line() {
    let run = || Scene::new().steady(30, GB);
    assert!(is_one_line(&run().ended(30, 0)));
    // A refused request of unremarkable size has no cause to be told by.
    assert!(!is_one_line(&run().refused(20, MB, GB).ended(30, 0)));
    let asked = EventKind::CheckpointAsked {
        pid: Pid(1234),
        signal: 10,
    };
    assert!(!is_one_line(&run().event(20, asked).ended(30, 0)));
}

#[test]
fn a_warning_alone_leaves_it_at_one_line_and_a_brake_does_not() {
    let run = |to| {
        let trigger = Trigger::TreeGrowth;
        let rung = EventKind::Rung {
            from: Rung::Calm,
            to,
            trigger,
            room: 0,
            growth: 0,
            forecast_ms: None,
            confidence: 0,
        };
        Scene::new().steady(30, GB).event(20, rung).ended(30, 0)
    };
    assert!(is_one_line(&run(Rung::Warn)));
    assert!(!is_one_line(&run(Rung::Brake)));
}
