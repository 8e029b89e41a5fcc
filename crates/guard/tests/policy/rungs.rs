//! The rungs below pause, one by one.

use crate::given::*;
use antifreeze_guard::policy::{Bound, History, Motion, PolicyInput, Save, decide};
use antifreeze_record::event::{Rung, Trigger};
use std::time::Duration;

#[test]
fn before_the_first_look_it_is_calm() {
    let decision = decision(&History::new());
    assert_eq!(
        (decision.rung, decision.trigger),
        (Rung::Calm, Trigger::Unspecified)
    );
}

#[test]
fn a_quiet_run_is_calm_and_looked_at_every_two_seconds() {
    let decision = decision(&steady(|_| {}));
    assert_eq!(
        (decision.rung, decision.trigger),
        (Rung::Calm, Trigger::Unspecified)
    );
    assert_eq!(decision.pace, Duration::from_secs(2));
}

#[test]
fn little_room_is_watched() {
    let history = steady(|input| available(input, 4 * GB));
    assert_eq!(decision(&history).rung, Rung::Watch);
}

#[test]
fn the_nearer_the_wall_by_forecast_the_higher_the_rung() {
    let rate = 100 * MB;
    for (seconds, expected) in [
        (45, Rung::Warn),
        (19, Rung::Brake),
        (9, Rung::Checkpoint),
        (1, Rung::Checkpoint),
    ] {
        let history = leak(rate, (seconds * rate) as i64);
        let decision = decide(&history, &saving());
        assert_eq!(
            (decision.rung, decision.trigger),
            (expected, Trigger::TreeGrowth),
            "{seconds} s"
        );
    }
}

#[test]
fn the_first_steps_of_a_training_may_grow_while_there_is_much_room() {
    // Steps that were made by the end, since how many seconds, and the forecast.
    for (steps, since, seconds, expected) in [
        (Some(5), 20.0, 45, Rung::Watch),
        (Some(500), 5.0, 45, Rung::Watch),
        (Some(500), 20.0, 45, Rung::Warn),
        (None, 0.0, 45, Rung::Warn),
        (Some(5), 20.0, 30, Rung::Warn),
    ] {
        let before = leak(100 * MB, (seconds * 100 * MB) as i64);
        let end = before.last().unwrap().at;
        let mut history = History::new();
        for input in before.iter() {
            let has_begun = (end - input.at) as f64 / 1e9 < since;
            let steps = steps.map(|steps| if has_begun { steps } else { 0 });
            history.push(PolicyInput { steps, ..*input });
        }
        let found = rung(&history, &saving());
        assert_eq!(
            found, expected,
            "{steps:?} since {since} s, {seconds} s left"
        );
    }
}

#[test]
fn a_long_save_is_asked_for_early() {
    let mut history = leak(100 * MB, 1900 * MB as i64);
    assert_eq!(rung(&history, &saving()), Rung::Brake);
    history.acts.save_time = Duration::from_secs(10);
    assert_eq!(rung(&history, &saving()), Rung::Checkpoint);
}

#[test]
fn who_cannot_save_is_not_asked_to() {
    let history = leak(100 * MB, 300 * MB as i64);
    assert_eq!(rung(&history, &config()), Rung::Brake);
}

#[test]
fn a_few_strides_from_the_wall_it_warns_without_a_past() {
    let history = history(0.4, 100, |t, input| {
        input.stride = 800 * MB;
        available(input, 4 * GB);
        takes(input, t / 0.1 * (300 * MB) as f64);
    });
    assert!(decision(&history).rung >= Rung::Warn);
}

#[test]
fn a_broken_reserve_warns_and_a_half_used_one_brakes() {
    for (left, expected) in [(900, Rung::Warn), (500, Rung::Brake)] {
        let history = steady(|input| available(input, left * MB));
        let decision = decision(&history);
        assert_eq!(
            (decision.rung, decision.trigger),
            (expected, Trigger::ReserveBroken)
        );
    }
}

#[test]
fn in_a_container_its_limit_is_named() {
    let history = steady(|input| {
        input.bound = Bound::Cgroup;
        available(input, 900 * MB);
    });
    assert_eq!(decision(&history).trigger, Trigger::CgroupLimit);
}

#[test]
fn a_little_over_the_budget_warns() {
    let history = steady(|input| {
        input.bound = Bound::Budget;
        input.total = 4 * GB;
        input.room = -10 * MB as i64;
    });
    let decision = decision(&history);
    assert_eq!(
        (decision.rung, decision.trigger),
        (Rung::Warn, Trigger::BudgetExceeded)
    );
}

#[test]
fn drawing_on_the_cushion_is_not_exceeding_the_budget() {
    let beyond_the_wall = |kept_back| {
        let history = steady(|input| {
            input.bound = Bound::Budget;
            input.total = 4 * GB;
            input.room = -90 * MB as i64;
            input.kept_back = kept_back;
        });
        decision(&history)
    };
    assert_eq!(beyond_the_wall(0).rung, Rung::Stop);
    assert_eq!(beyond_the_wall(96 * MB).rung, Rung::Watch);
}

#[test]
fn a_swap_storm_counts_when_it_lasts_and_memory_is_low() {
    let storm = |rate: f64, seconds: f64, left: u64| {
        let history = history(20.0, 100, |t, input| {
            available(input, left);
            swapping(input, t, rate, seconds);
        });
        decision(&history).trigger
    };
    assert_eq!(storm(5000.0, 3.0, 1500 * MB), Trigger::SwapStorm);
    assert_ne!(storm(5000.0, 0.5, 1500 * MB), Trigger::SwapStorm, "a burst");
    assert_ne!(
        storm(500.0, 3.0, 1500 * MB),
        Trigger::SwapStorm,
        "a trickle"
    );
    assert_ne!(
        storm(5000.0, 3.0, 4 * GB),
        Trigger::SwapStorm,
        "with plenty left"
    );
}

#[test]
fn stalls_count_while_reclaim_goes_on_and_reach_the_brake() {
    let stall = |share: f64, scanned: f64| {
        decision(&history(20.0, 100, |t, input| {
            stalling(input, t, share, scanned)
        }))
        .rung
    };
    assert_eq!(stall(0.3, 50_000.0), Rung::Brake);
    assert_eq!(stall(0.3, 0.0), Rung::Calm);
    assert_eq!(stall(0.05, 50_000.0), Rung::Calm);
}

#[test]
fn a_full_disk_or_shm_warns_and_no_more() {
    let disk = steady(|input| input.disk_free = Some(500 * MB));
    let shm = steady(|input| input.shm_free = Some(2 * MB));
    let filling = history(20.0, 100, |t, input| {
        input.shm_free = Some(((20.5 - t) * 500e6) as u64);
    });
    for (history, trigger) in [
        (disk, Trigger::DiskFull),
        (shm, Trigger::ShmFull),
        (filling, Trigger::ShmFull),
    ] {
        let decision = decide(&history, &saving());
        assert_eq!((decision.rung, decision.trigger), (Rung::Warn, trigger));
    }
}

#[test]
fn a_containers_small_shm_is_not_a_full_one() {
    let history = steady(|input| input.shm_free = Some(64 * MB));
    assert_eq!(decision(&history).rung, Rung::Calm);
}

#[test]
fn kernels_that_tell_nothing_still_give_decisions() {
    let history = steady(|input| {
        input.swapped_in = None;
        input.scanned = None;
        input.stalled_us = None;
        input.disk_free = None;
        input.shm_free = None;
        input.swap_free = None;
        available(input, 500 * MB);
    });
    assert_eq!(decision(&history).rung, Rung::Brake);
}

#[test]
fn a_save_is_not_asked_for_twice_in_a_row() {
    let mut history = leak(100 * MB, 500 * MB as i64);
    for (save, expected) in [
        (Save::None, Rung::Checkpoint),
        (
            Save::Done {
                at: ago(&history, 1.0),
            },
            Rung::Brake,
        ),
        (
            Save::Missed {
                at: ago(&history, 15.0),
            },
            Rung::Brake,
        ),
        // Nineteen seconds ago there were 1.9 GB less, more than a tenth of the total.
        (
            Save::Done {
                at: ago(&history, 19.0),
            },
            Rung::Checkpoint,
        ),
        (
            Save::Missed {
                at: ago(&history, 19.0),
            },
            Rung::Brake,
        ),
        (
            Save::Done {
                at: ago(&history, 61.0),
            },
            Rung::Checkpoint,
        ),
        (
            Save::Missed {
                at: ago(&history, 61.0),
            },
            Rung::Checkpoint,
        ),
    ] {
        history.acts.save = save;
        assert_eq!(rung(&history, &saving()), expected, "{save:?}");
    }
}

#[test]
fn a_save_that_is_done_leaves_the_rung_at_once() {
    let mut history = leak(100 * MB, 500 * MB as i64);
    enter(&mut history, Rung::Checkpoint, 0.5);
    history.acts.save = Save::Done {
        at: ago(&history, 0.1),
    };
    assert_eq!(rung(&history, &saving()), Rung::Brake);
}

#[test]
fn at_the_wall_it_is_saved_once_more_and_beyond_it_ended() {
    let saved = |history: &History, seconds| Save::Done {
        at: ago(history, seconds),
    };
    let mut history = leak(100 * MB, 100 * MB as i64);
    history.acts.save = saved(&history, 5.0);
    assert_eq!(rung(&history, &saving()), Rung::Checkpoint);
    history.acts.save = saved(&history, 0.5);
    assert!(rung(&history, &saving()) < Rung::Checkpoint, "just saved");

    // Small requests go on for a while out of what is kept for them.
    let mut history = leak(100 * MB, -(60 * MB as i64));
    history.acts.save = saved(&history, 5.0);
    assert_eq!(rung(&history, &saving()), Rung::Checkpoint);
    history.acts.save = saved(&history, 0.5);
    assert_eq!(rung(&history, &saving()), Rung::Stop);
    history.acts.walled_at = Some(ago(&history, 0.2));
    assert!(
        rung(&history, &saving()) < Rung::Stop,
        "it met the wall with a large request, which it may catch"
    );

    let mut level = history.clone();
    extend(&mut level, 40.0, 500, |_, input| {
        input.room = -(60 * MB as i64);
        input.available = quiet().reserve - 60 * MB;
    });
    level.acts.walled_at = None;
    level.acts.save = saved(&level, 0.5);
    assert!(rung(&level, &saving()) < Rung::Stop, "it does not grow");
}

#[test]
fn a_save_under_way_is_waited_for() {
    let mut history = squeezed(400 * MB);
    enter(&mut history, Rung::Checkpoint, 5.0);
    history.acts.save = Save::Asked {
        at: ago(&history, 5.0),
    };
    assert_eq!(rung(&history, &saving()), Rung::Checkpoint);
    history.acts.save = Save::Asked {
        at: ago(&history, 16.0),
    };
    assert_eq!(rung(&history, &saving()), Rung::Pause, "past its deadline");
}

#[test]
fn a_save_under_way_is_not_waited_for_when_it_is_critical() {
    let mut history = squeezed(200 * MB);
    enter(&mut history, Rung::Checkpoint, 5.0);
    history.acts.save = Save::Asked {
        at: ago(&history, 5.0),
    };
    assert_eq!(rung(&history, &saving()), Rung::Pause);
}

#[test]
fn a_rung_is_kept_for_a_while_and_left_well_below_its_threshold() {
    let after = |present: Rung, left: u64, seconds: f64| {
        let mut history = steady(|input| available(input, left));
        enter(&mut history, present, seconds);
        decision(&history).rung
    };
    assert_eq!(after(Rung::Warn, 9 * GB, 1.0), Rung::Warn, "too soon");
    assert_eq!(after(Rung::Warn, 9 * GB, 3.0), Rung::Calm);
    assert_eq!(
        after(Rung::Brake, 9 * GB, 3.0),
        Rung::Brake,
        "the brake is felt"
    );
    assert_eq!(after(Rung::Brake, 9 * GB, 11.0), Rung::Calm);
    assert_eq!(
        after(Rung::Brake, 600 * MB, 11.0),
        Rung::Brake,
        "not clearly better"
    );
    assert_eq!(after(Rung::Brake, 700 * MB, 11.0), Rung::Warn);
}

#[test]
fn what_the_user_stopped_is_ended_only_when_all_is_lost_and_it_is_the_largest() {
    let held = |left: u64, footprint: u64| {
        let history = steady(|input| {
            input.footprint = footprint;
            available(input, left);
            input.motion = Motion::StoppedByUser;
        });
        rung(&history, &saving())
    };
    assert_eq!(held(100 * MB, 9 * GB), Rung::Stop);
    assert_eq!(held(100 * MB, 4 * GB), Rung::Warn);
    assert_eq!(held(200 * MB, 9 * GB), Rung::Warn);
}

#[test]
fn looks_come_faster_the_less_room_and_the_faster_it_goes() {
    let pace = |history: &History| decision(history).pace;
    assert_eq!(
        pace(&steady(|input| available(input, 3 * GB))).as_millis(),
        536
    );
    assert_eq!(
        pace(&steady(|input| available(input, 2500 * MB))).as_millis(),
        100
    );
    assert_eq!(pace(&steady(|input| available(input, GB))).as_millis(), 75);
    assert_eq!(
        pace(&steady(|input| input.disk_free = Some(0))).as_millis(),
        100
    );
    let fast = history(1.0, 100, |t, input| takes(input, t * (5 * GB) as f64));
    assert!(pace(&fast) < Duration::from_millis(200));
}

#[test]
fn the_largest_that_starves_others_for_seconds_is_stopped_however_slow_the_disk() {
    let starving = |footprint: u64, swap: u64, seconds: f64| {
        let history = history(seconds, 100, |_, input| {
            input.footprint = footprint;
            available(input, 600 * MB);
            input.swap_beyond = swap;
        });
        decision(&history).rung
    };
    assert_eq!(starving(12 * GB, 600 * MB, 8.0), Rung::Stop);
    assert!(starving(12 * GB, 600 * MB, 3.0) < Rung::Stop, "it may pass");
    assert!(starving(12 * GB, 0, 8.0) < Rung::Stop, "nobody suffers");
    assert!(
        starving(2 * GB, 600 * MB, 8.0) < Rung::Stop,
        "it is not the largest"
    );
}
