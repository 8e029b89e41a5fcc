//! Pause, stop and kill, rule by rule.

use crate::given::*;
use antifreeze_guard::policy::{Bound, Config, Motion, Save, decide};
use antifreeze_record::event::{Rung, Trigger};

fn fragile() -> Config {
    Config {
        dies_at_wall: true,
        ..config()
    }
}

fn bare() -> Config {
    Config {
        wall: false,
        ..config()
    }
}

#[test]
fn others_that_grew_pause_the_tree() {
    let decision = decision(&squeezed(400 * MB));
    assert_eq!(
        (decision.rung, decision.trigger),
        (Rung::Pause, Trigger::OthersGrew)
    );
}

#[test]
fn a_storm_or_a_stall_pauses_earlier() {
    let storm = history(20.0, 100, |t, input| {
        others_take(input, (t / 20.0) * (7500 * MB) as f64);
        swapping(input, t, 5000.0, 3.0);
    });
    assert_eq!(decision(&storm).rung, Rung::Pause);
    let stalled = history(20.0, 100, |t, input| {
        others_take(input, (t / 20.0) * (8400 * MB) as f64);
        stalling(input, t, 0.3, 50_000.0);
    });
    assert_eq!(decision(&stalled).rung, Rung::Pause);
}

#[test]
fn a_tree_that_pages_out_is_paused_earlier() {
    let pages_out = Config {
        pages_out: true,
        ..config()
    };
    let growing = |rate: u64, left: u64| {
        history(20.0, 100, move |t, input| {
            let taken = input.available as f64 - left as f64 - (20.0 - t) * rate as f64;
            others_take(input, taken.max(0.0));
        })
    };
    let fast = growing(400 * MB, 2 * GB);
    assert!(rung(&fast, &config()) < Rung::Pause);
    assert_eq!(rung(&fast, &pages_out), Rung::Pause);
    let slow = growing(100 * MB, 2 * GB);
    assert!(rung(&slow, &pages_out) < Rung::Pause);
    let plenty = growing(400 * MB, 3 * GB);
    assert!(rung(&plenty, &pages_out) < Rung::Pause);
}

#[test]
fn a_tree_goes_to_swap_only_while_it_is_paused_and_memory_is_short() {
    let page_out = |rung: Rung, left: u64, swap_free: Option<u64>, swap_cached: u64| {
        let mut history = squeezed(300 * MB);
        extend(&mut history, 5.0, 100, |_, input| {
            available(input, left);
            input.motion = Motion::Paused;
            input.swap_free = swap_free;
            input.swap_cached = swap_cached;
        });
        enter(&mut history, rung, 10.0);
        history.acts.paused_at = (rung == Rung::Pause).then_some(history.acts.since);
        decision(&history).page_out
    };
    let swap = Some(4 * GB);
    assert!(page_out(Rung::Pause, 1100 * MB, swap, 0));
    assert!(
        !page_out(Rung::Pause, 1100 * MB, swap, GB),
        "written, and not yet freed"
    );
    assert!(
        !page_out(Rung::Pause, 1100 * MB, Some(100 * MB), 0),
        "swap is full"
    );
    assert!(
        !page_out(Rung::Pause, 1100 * MB, None, 0),
        "there is no swap"
    );
    assert!(!page_out(Rung::Pause, 3 * GB, swap, 0), "there is room");
    assert!(!page_out(Rung::Warn, 1100 * MB, swap, 0), "it runs");
}

/// Without swap, what a step holds when it is paused is gone until the pause ends.
#[test]
fn a_pause_waits_for_the_end_of_a_step_that_is_near() {
    let at = |into_the_step: f64, left: u64| {
        history(20.0 + into_the_step, 100, move |t, input| {
            let step = if t % 1.0 < 0.25 { 0 } else { 300 * MB };
            takes(input, step as f64);
            let others = (9 * GB - left - 300 * MB) as f64;
            others_take(input, (t / 20.0).min(1.0) * others);
            stalling(input, t, 0.3, 50_000.0);
        })
    };
    assert!(
        decision(&at(0.6, 600 * MB)).rung < Rung::Pause,
        "in mid-step"
    );
    assert_eq!(
        decision(&at(0.1, 600 * MB)).rung,
        Rung::Pause,
        "between two steps"
    );
    assert_eq!(
        decision(&at(0.6, 400 * MB)).rung,
        Rung::Pause,
        "too little is left"
    );
}

#[test]
fn a_tree_that_grows_itself_is_never_paused() {
    let history = history(20.0, 100, |t, input| {
        others_take(input, (t / 20.0) * (6500 * MB) as f64);
        takes(input, (t / 20.0) * (2000 * MB) as f64);
    });
    assert!(decision(&history).rung < Rung::Pause);
}

#[test]
fn before_a_pause_a_save_is_asked_for_when_there_is_time() {
    assert_eq!(rung(&squeezed(400 * MB), &saving()), Rung::Checkpoint);
    let in_a_hurry = history(20.0, 100, |t, input| {
        others_take(input, (t / 20.0) * (8800 * MB) as f64);
    });
    assert_eq!(rung(&in_a_hurry, &saving()), Rung::Pause);
}

#[test]
fn a_pause_lasts_until_there_is_room_for_two_seconds() {
    let paused = |left: u64, seconds: f64| {
        let mut history = squeezed(300 * MB);
        extend(&mut history, seconds, 100, |_, input| {
            available(input, left);
            input.motion = Motion::Paused;
        });
        enter(&mut history, Rung::Pause, 10.0);
        history.acts.paused_at = Some(history.acts.since);
        decision(&history)
    };
    assert_eq!(paused(1100 * MB, 5.0).rung, Rung::Pause);
    assert_eq!(paused(3 * GB, 1.0).rung, Rung::Pause);
    let resumed = paused(3 * GB, 3.0);
    assert!(resumed.rung < Rung::Pause);
    assert_eq!(resumed.trigger, Trigger::RoomAvailable);
}

#[test]
fn a_pause_ends_when_the_person_asks_or_at_its_deadline() {
    let mut history = squeezed(400 * MB);
    enter(&mut history, Rung::Pause, 10.0);
    history.acts.paused_at = Some(ago(&history, 10.0));
    history.acts.resume_asked_at = Some(ago(&history, 12.0));
    assert_eq!(
        decision(&history).rung,
        Rung::Pause,
        "asked before the pause"
    );

    history.acts.resume_asked_at = Some(ago(&history, 1.0));
    let asked = decide(&history, &saving());
    assert_eq!(
        (asked.rung, asked.trigger),
        (Rung::Checkpoint, Trigger::UserRequest)
    );

    history.acts.resume_asked_at = None;
    history.acts.paused_at = Some(ago(&history, 301.0));
    let late = decision(&history);
    assert!(late.rung < Rung::Pause);
    assert_eq!(late.trigger, Trigger::Deadline);
}

#[test]
fn after_a_resume_only_worse_than_before_pauses_again() {
    let mut history = squeezed(400 * MB);
    history.acts.resumed_at = Some(ago(&history, 0.5));
    assert!(decision(&history).rung < Rung::Pause);
    history.acts.resumed_at = Some(ago(&history, 8.0));
    assert_eq!(
        decision(&history).rung,
        Rung::Pause,
        "others took 6 GB since"
    );
    history.acts.resumed_at = Some(ago(&history, 61.0));
    assert_eq!(decision(&history).rung, Rung::Pause, "long ago");
}

#[test]
fn a_pause_with_nowhere_for_the_pages_to_go_ends_in_a_stop() {
    let paused = |swap_free: Option<u64>| {
        let mut history = squeezed(100 * MB);
        extend(&mut history, 1.0, 100, |_, input| {
            available(input, 100 * MB);
            input.swap_free = swap_free;
        });
        enter(&mut history, Rung::Pause, 1.0);
        decision(&history).rung
    };
    assert_eq!(paused(Some(0)), Rung::Stop);
    assert_eq!(paused(Some(GB)), Rung::Pause);
    assert_eq!(paused(None), Rung::Pause);
}

#[test]
fn a_grower_is_stopped_when_three_quarters_of_the_reserve_are_gone() {
    assert_eq!(
        decision(&leak(200 * MB, -700 * MB as i64)).rung,
        Rung::Brake
    );
    let stopped = decision(&leak(200 * MB, -800 * MB as i64));
    assert_eq!(
        (stopped.rung, stopped.trigger),
        (Rung::Stop, Trigger::ReserveBroken)
    );
}

#[test]
fn a_grower_that_no_wall_stops_is_stopped_after_seconds_beyond_what_the_cushion_may_use() {
    let within = decision(&leak(20 * MB, -400 * MB as i64));
    assert_eq!(within.rung, Rung::Brake, "the cushion may use half");
    let beyond = decision(&leak(20 * MB, -600 * MB as i64));
    assert_eq!(
        (beyond.rung, beyond.trigger),
        (Rung::Stop, Trigger::Stalling)
    );
}

#[test]
fn growth_into_swap_that_was_not_allowed_is_stopped() {
    let pushed_out = |swapped: u64, stride: u64| {
        let mut history = leak(20 * MB, 100 * MB as i64);
        extend(&mut history, 5.0, 100, |t, input| {
            let grown = (t * 20.0) as u64 * MB;
            input.footprint = 4 * GB + 8 * GB + grown;
            input.room = 100 * MB as i64;
            input.available = GB + 100 * MB;
            input.swap_beyond = swapped + grown;
            input.stride = stride;
        });
        decision(&history).rung
    };
    assert_eq!(pushed_out(300 * MB, 0), Rung::Stop);
    assert!(pushed_out(0, 0) < Rung::Stop, "hardly any yet");
    assert!(
        pushed_out(300 * MB, 8 * MB) < Rung::Stop,
        "the wall is near"
    );
    assert_eq!(pushed_out(700 * MB, 8 * MB), Rung::Stop);
}

#[test]
fn others_growth_stops_the_tree_only_after_a_pause_was_tried() {
    let mut history = squeezed(200 * MB);
    assert_eq!(decision(&history).rung, Rung::Pause);
    history.acts.resumed_at = Some(ago(&history, 0.5));
    assert_eq!(decision(&history).rung, Rung::Stop);
}

#[test]
fn being_at_the_wall_is_no_reason_to_stop() {
    let mut history = leak(100 * MB, 0);
    extend(&mut history, 10.0, 100, |_, input| {
        let room = input.room as f64;
        takes(input, room);
    });
    assert!(decision(&history).rung < Rung::Pause);
    assert!(rung(&history, &saving()) < Rung::Pause);
}

#[test]
fn what_dies_at_the_wall_is_stopped_on_its_doorstep() {
    let near = leak(100 * MB, 300 * MB as i64);
    assert_eq!(rung(&near, &fragile()), Rung::Stop);
    assert_eq!(
        rung(&leak(100 * MB, 900 * MB as i64), &fragile()),
        Rung::Brake
    );
    let steady = steady(|input| available(input, GB + 300 * MB));
    assert!(rung(&steady, &fragile()) < Rung::Stop, "it does not grow");

    let mut while_saving = near;
    while_saving.acts.save = Save::Asked {
        at: ago(&while_saving, 2.0),
    };
    assert_eq!(
        rung(
            &while_saving,
            &Config {
                can_save: true,
                ..fragile()
            }
        ),
        Rung::Checkpoint,
        "its save may still be done"
    );
}

#[test]
fn beyond_a_budget_the_tree_is_stopped_once_a_save_was_tried() {
    let mut history = steady(|input| {
        input.bound = Bound::Budget;
        input.total = 4 * GB;
        input.room = -300 * MB as i64;
    });
    assert_eq!(rung(&history, &config()), Rung::Stop);
    assert_eq!(rung(&history, &saving()), Rung::Checkpoint);
    for save in [
        Save::Done {
            at: ago(&history, 1.0),
        },
        Save::Missed {
            at: ago(&history, 1.0),
        },
        Save::Asked {
            at: ago(&history, 16.0),
        },
    ] {
        history.acts.save = save;
        assert_eq!(rung(&history, &saving()), Rung::Stop, "{save:?}");
    }
}

#[test]
fn a_lasting_storm_stops_the_largest_when_it_grew() {
    let storm = |seconds: f64, footprint: u64| {
        let history = history(20.0, 100, |t, input| {
            input.footprint = footprint;
            takes(input, t * (60 * MB) as f64);
            input.others = 13 * GB - footprint;
            input.available = 1500 * MB;
            input.room = 500 * MB as i64;
            swapping(input, t, 5000.0, seconds);
        });
        decision(&history).rung
    };
    assert_eq!(storm(7.0, 9 * GB), Rung::Stop);
    assert!(storm(3.0, 9 * GB) < Rung::Stop);
    assert!(storm(7.0, 2 * GB) < Rung::Stop);
}

#[test]
fn without_a_wall_the_ladder_stops_a_grower_at_the_bound() {
    let history = leak(50 * MB, -20 * MB as i64);
    assert_eq!(rung(&history, &bare()), Rung::Stop);
    assert!(rung(&history, &config()) < Rung::Stop);
}

#[test]
fn a_stop_has_until_its_deadline() {
    let mut history = steady(|input| available(input, 200 * MB));
    enter(&mut history, Rung::Stop, 9.0);
    history.acts.available_at_stop = 210 * MB;
    history.acts.stop_sent_at = Some(ago(&history, 9.0));
    assert_eq!(decision(&history).rung, Rung::Stop);
    history.acts.stop_sent_at = Some(ago(&history, 10.5));
    let killed = decision(&history);
    assert_eq!(
        (killed.rung, killed.trigger),
        (Rung::Kill, Trigger::Deadline)
    );
}

#[test]
fn a_further_fall_shortens_the_deadline_unless_the_tree_is_ending() {
    let stopped = |freed: f64, waited: f64| {
        let mut history = history(20.0, 100, |t, input| {
            input.footprint -= (freed * t / 20.0) as u64;
            input.available = 100 * MB;
        });
        enter(&mut history, Rung::Stop, waited);
        history.acts.stop_sent_at = Some(ago(&history, waited));
        history.acts.available_at_stop = 200 * MB;
        decision(&history).rung
    };
    assert_eq!(stopped(0.0, 2.0), Rung::Kill);
    assert_eq!(stopped(0.0, 0.5), Rung::Stop);
    assert_eq!(stopped(3e9, 2.0), Rung::Stop);
}

#[test]
fn a_tree_that_grows_on_after_a_stop_is_not_waited_for() {
    let stopped = |grown: u64| {
        let mut history = steady(|input| available(input, 200 * MB));
        enter(&mut history, Rung::Stop, 2.0);
        let footprint = history.last().unwrap().footprint;
        history.acts.stop_sent_at = Some(ago(&history, 2.0));
        history.acts.available_at_stop = 200 * MB;
        history.acts.footprint_at_stop = Some(footprint - grown);
        decision(&history).rung
    };
    assert_eq!(stopped(2 * GB), Rung::Kill);
    assert_eq!(stopped(50 * MB), Rung::Stop);
}

fn attached() -> Config {
    Config {
        attached: true,
        ..config()
    }
}

/// A process of its own budget that has grown beyond its wall for a while.
fn beyond_budget(left: i64) -> antifreeze_guard::policy::History {
    history(10.0, 100, move |t, input| {
        input.bound = Bound::Budget;
        input.total = 4 * GB;
        input.kept_back = 96 * MB;
        let taken = (t * 100.0) as i64 * MB as i64;
        input.footprint = (3 * GB as i64 + taken) as u64;
        input.room = left + (1000 * MB as i64 - taken);
    })
}

#[test]
fn what_was_attached_to_is_interrupted_at_the_wall() {
    let grows = beyond_budget(-(20 * MB as i64));
    assert_eq!(decide(&grows, &attached()).rung, Rung::Stop);
    assert!(
        decide(&grows, &config()).rung < Rung::Stop,
        "a cushion catches it"
    );
}

#[test]
fn an_interruption_that_helped_is_the_end_of_it() {
    let mut helped = beyond_budget(-(20 * MB as i64));
    let sent = now(&helped);
    enter(&mut helped, Rung::Stop, 0.0);
    helped.acts.stop_sent_at = Some(sent);
    assert_eq!(decide(&helped, &attached()).rung, Rung::Stop, "not at once");
    let calm = |_: f64, input: &mut antifreeze_guard::policy::PolicyInput| {
        input.bound = Bound::Budget;
        input.total = 4 * GB;
        input.footprint = GB;
        input.room = 3 * GB as i64;
    };
    extend(&mut helped, 3.0, 100, calm);
    assert!(decide(&helped, &attached()).rung < Rung::Stop);
    assert!(decide(&helped, &config()).rung >= Rung::Stop, "a run ends");
}

#[test]
fn nobody_who_was_attached_to_is_killed_for_a_budget() {
    let mut in_vain = beyond_budget(-(200 * MB as i64));
    in_vain.acts.stop_sent_at = Some(ago(&in_vain, 60.0));
    in_vain.acts.rung = Rung::Stop;
    assert_eq!(decide(&in_vain, &attached()).rung, Rung::Stop);
    assert_eq!(decide(&in_vain, &config()).rung, Rung::Kill);
}
