//! Whole runs on a make-believe machine.

use crate::given::{GB, MB, config, saving};
use crate::machine::{Wish, World, play};
use crate::story::End;
use antifreeze_guard::policy::Config;
use antifreeze_record::event::{Rung, Trigger};
use std::time::Duration;

fn data(bytes: f64) -> Wish {
    Wish {
        data: bytes as u64,
        ..Wish::default()
    }
}

const MBF: f64 = MB as f64;
const GBF: f64 = GB as f64;

#[test]
fn a_leak_is_warned_of_then_walled_and_never_stopped() {
    let world = World {
        trainer: |t| data(60.0 * MBF + (t / 0.1).floor() * 4.0 * MBF),
        ..World::default()
    };
    let story = play(&world, 60.0);
    let walled = story.walled.first().copied().unwrap();
    assert!(
        story.reached(Rung::Warn).unwrap() < walled - 1.0,
        "{story:?}"
    );
    assert!(story.highest() < Rung::Pause, "{story:?}");
    assert_eq!(story.ended, None);
    assert!(story.least_available >= 50 * MB, "{story:?}");
}

#[test]
fn one_huge_allocation_is_refused_and_the_run_goes_on_calmly() {
    let world = World {
        trainer: |t| data(if t > 10.0 { 900.0 } else { 100.0 } * MBF),
        ..World::default()
    };
    let story = play(&world, 30.0);
    assert!(!story.walled.is_empty());
    assert!(story.highest() <= Rung::Watch, "{story:?}");
    assert_eq!(story.ended, None);
}

#[test]
fn a_steady_sawtooth_for_ten_minutes_is_never_warned() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        trainer: |t| {
            let load = (t / 4.0).min(1.0) * 2.0 * GBF;
            let uneven = ((t / 1.3).floor() * 0.618).fract() * 0.2 * GBF;
            let tooth = if t > 5.0 {
                (t % 1.3) / 1.3 * 3.0 * GBF + uneven
            } else {
                0.0
            };
            data(load + tooth)
        },
        ..World::default()
    };
    let story = play(&world, 600.0);
    assert!(story.highest() <= Rung::Watch, "{story:?}");
    assert!(story.walled.is_empty(), "{story:?}");
}

#[test]
fn a_cache_that_levels_off_is_neither_saved_nor_stopped() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        config: saving(),
        trainer: |t| data(2.0 * GBF + 8.0 * GBF * (1.0 - (-t / 40.0).exp())),
        ..World::default()
    };
    let story = play(&world, 400.0);
    assert!(story.highest() < Rung::Checkpoint, "{story:?}");
    assert!(story.walled.is_empty(), "{story:?}");
}

#[test]
fn a_neighbour_that_grows_and_lets_go_costs_one_pause() {
    let world = World {
        trainer: |t| data(150.0 * MBF + (t % 0.8) / 0.8 * 40.0 * MBF),
        others: |t| match t {
            t if t < 20.0 => 100 * MB,
            t if t < 35.0 => 100 * MB + ((t - 20.0) * 25.0 * MBF) as u64,
            _ => 100 * MB,
        },
        ..World::default()
    };
    let story = play(&world, 90.0);
    assert_eq!((story.paused, story.resumed), (1, 1), "{story:?}");
    assert_eq!(story.ended, None, "{story:?}");
    let resumed = story
        .rungs
        .iter()
        .find(|(_, _, trigger)| *trigger == Trigger::RoomAvailable);
    assert!(
        resumed.is_some_and(|(at, ..)| *at > 35.0 && *at < 40.0),
        "{story:?}"
    );
}

#[test]
fn a_neighbour_that_stays_ends_the_pause_at_its_deadline_then_the_run() {
    let world = World {
        config: Config {
            pause_deadline: Duration::from_secs(20),
            ..saving()
        },
        trainer: |_| data(180.0 * MBF),
        others: |t| 100 * MB + ((t - 20.0).clamp(0.0, 15.0) * 25.0 * MBF) as u64,
        ..World::default()
    };
    let story = play(&world, 120.0);
    assert_eq!((story.paused, story.resumed), (1, 1), "{story:?}");
    assert!(
        matches!(story.ended, Some((at, End::Stopped)) if at > story.first(Rung::Pause).unwrap() + 20.0),
        "{story:?}"
    );
}

#[test]
fn shared_memory_beyond_the_budget_is_saved_then_stopped() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        budget: Some(2 * GB),
        config: saving(),
        trainer: |t| Wish {
            data: 500 * MB,
            shared: (t * 20.0 * MBF) as u64,
            ..Wish::default()
        },
        ..World::default()
    };
    let story = play(&world, 300.0);
    let saved = story.saved.first().copied().unwrap();
    assert!(
        matches!(story.ended, Some((at, End::Stopped)) if at > saved),
        "{story:?}"
    );
    assert!(story.walled.is_empty());
    assert_eq!(story.rungs.last().unwrap().2, Trigger::BudgetExceeded);
}

#[test]
fn what_dies_at_the_wall_is_warned_saved_and_stopped_before_it() {
    for rate in [40.0 * MBF, 150.0 * MBF, 400.0 * MBF] {
        let trainer: fn(f64) -> Wish = match rate {
            rate if rate < 50.0 * MBF => |t| data(GBF + t * 40.0 * MBF),
            rate if rate < 200.0 * MBF => |t| data(GBF + t * 150.0 * MBF),
            _ => |t| data(GBF + t * 400.0 * MBF),
        };
        let world = World {
            total: 16 * GB,
            reserve: GB,
            others: |_| 3 * GB,
            config: Config {
                dies_at_wall: true,
                ..saving()
            },
            trainer,
            ..World::default()
        };
        let story = play(&world, 600.0);
        let warned = story.reached(Rung::Warn).unwrap();
        let saved = story
            .saved
            .first()
            .copied()
            .unwrap_or_else(|| panic!("{story:?}"));
        assert!(warned < saved, "{story:?}");
        assert!(
            matches!(story.ended, Some((at, End::Stopped)) if at > saved),
            "{story:?}"
        );
    }
}

#[test]
fn who_ignores_the_stop_is_killed_at_the_deadline() {
    let world = World {
        config: Config {
            wall: false,
            ..config()
        },
        trainer: |t| data((60.0 + (t * 10.0).min(295.0)) * MBF),
        ends_after: None,
        ..World::default()
    };
    let story = play(&world, 120.0);
    let stopped = story.first(Rung::Stop).unwrap();
    let killed = story.first(Rung::Kill).unwrap();
    assert!((killed - stopped - 10.0).abs() < 0.3, "{story:?}");
}

#[test]
fn who_ignores_the_stop_and_goes_on_is_killed_at_a_further_fall() {
    let world = World {
        config: Config {
            wall: false,
            ..config()
        },
        trainer: |t| data((60.0 + t * 10.0) * MBF),
        ends_after: None,
        ..World::default()
    };
    let story = play(&world, 120.0);
    let stopped = story.first(Rung::Stop).unwrap();
    let killed = story.first(Rung::Kill).unwrap();
    assert!(
        killed - stopped > 1.0 && killed - stopped < 5.0,
        "{story:?}"
    );
}

#[test]
fn compressed_swap_that_shouts_with_plenty_free_is_at_most_braked() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        shouting: 0.3,
        trainer: |t| data(4.0 * GBF + (t % 0.8) * GBF),
        ..World::default()
    };
    let story = play(&world, 120.0);
    assert!(story.highest() <= Rung::Brake, "{story:?}");
    assert_eq!(story.paused, 0);
}

#[test]
fn importing_torch_under_a_budget_is_calm() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        budget: Some(1500 * MB),
        config: saving(),
        trainer: |t| Wish {
            data: (20.0 * MBF + (t / 1.2).min(1.0) * 230.0 * MBF) as u64,
            untouched: (t.min(1.0) * 480.0 * MBF) as u64,
            shared: 0,
        },
        ..World::default()
    };
    let story = play(&world, 30.0);
    assert_eq!(story.rungs, [], "{story:?}");
    assert!(story.walled.is_empty(), "{story:?}");
}

#[test]
fn a_run_that_fills_everything_in_seconds_is_still_warned_first() {
    let world = World {
        total: 16 * GB,
        reserve: GB,
        others: |_| 3 * GB,
        trainer: |t| data(t * 3.0 * GBF),
        ..World::default()
    };
    let story = play(&world, 20.0);
    let walled = story.walled.first().copied().unwrap();
    assert!(story.reached(Rung::Warn).unwrap() < walled, "{story:?}");
    assert!(story.highest() < Rung::Pause, "{story:?}");
}
