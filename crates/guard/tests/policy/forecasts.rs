use crate::given::*;
use antifreeze_guard::policy::{History, Motion, PolicyInput, forecast};
use proptest::prelude::*;

fn leak(seconds: f64, step: u64, rate: u64) -> History {
    history(seconds, step, |t, input| takes(input, t * rate as f64))
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 0.1 * expected.abs()
}

#[test]
fn a_steady_tree_has_no_forecast() {
    assert_eq!(forecast(&history(60.0, 500, |_, _| {})), None);
}

#[test]
fn a_leak_is_told_at_any_spacing_of_looks() {
    for step in [50, 100, 333, 1000] {
        let history = leak(20.0, step, 100 * MB);
        let left = history.last().unwrap().room as f64;
        let told = forecast(&history).unwrap();
        assert!(
            near(told.time.as_secs_f64(), left / (100 * MB) as f64),
            "{step} ms: {told:?}"
        );
        assert!(near(told.growth, (100 * MB) as f64), "{step} ms: {told:?}");
    }
}

#[test]
fn looks_of_uneven_spacing_tell_the_same() {
    let mut history = History::new();
    let mut at = 0;
    for look in 0..60u64 {
        at += [50, 1000, 120, 700][look as usize % 4];
        let mut input = PolicyInput {
            at: BOOT + at * 1_000_000,
            ..quiet()
        };
        takes(&mut input, at as f64 / 1000.0 * (150 * MB) as f64);
        history.push(input);
    }
    let told = forecast(&history).unwrap();
    assert!(near(told.growth, (150 * MB) as f64), "{told:?}");
    assert!(told.confidence > 0.8, "{told:?}");
}

#[test]
fn a_sawtooth_of_steady_height_is_no_growth() {
    for period in [0.13, 0.7, 2.0, 6.0, 11.0] {
        for step in [50, 100, 1000] {
            for seconds in [30.0, 31.7, 33.3, 60.0] {
                let history = history(seconds, step, |t, input| {
                    takes(input, (t % period) / period * (2 * GB) as f64);
                });
                if seconds / period < 2.5 || 255.0 * step as f64 / 1000.0 / period < 1.5 {
                    continue;
                }
                let believed = forecast(&history).filter(|told| told.confidence >= 0.5);
                assert_eq!(believed, None, "period {period}, step {step}, {seconds} s");
            }
        }
    }
}

#[test]
fn a_slow_climb_to_where_it_has_been_is_no_growth() {
    let history = history(43.0, 100, |t, input| {
        available(input, 3 * GB + 600 * MB);
        takes(input, (t % 11.0) / 11.0 * (2 * GB) as f64);
    });
    let believed = forecast(&history).filter(|told| told.confidence >= 0.5);
    assert_eq!(believed, None);
}

#[test]
fn a_leak_under_a_sawtooth_is_growth() {
    let history = history(60.0, 250, |t, input| {
        takes(input, (t % 0.9) / 0.9 * GB as f64 + t * (60 * MB) as f64);
    });
    let told = forecast(&history).unwrap();
    assert!(near(told.growth, (60 * MB) as f64), "{told:?}");
    assert!(told.confidence >= 0.5, "{told:?}");
}

#[test]
fn a_fast_leak_after_a_long_calm_is_seen_within_seconds() {
    let mut history = history(120.0, 1000, |_, _| {});
    extend(&mut history, 4.0, 250, |t, input| {
        takes(input, t * (1200 * MB) as f64);
    });
    let told = forecast(&history).unwrap();
    assert!(told.confidence >= 0.5, "{told:?}");
    assert!(told.time.as_secs_f64() < 5.0, "{told:?}");
}

#[test]
fn growth_that_has_ended_is_not_foretold() {
    let mut history = leak(30.0, 500, 100 * MB);
    extend(&mut history, 15.0, 500, |_, input| {
        takes(input, (3000 * MB) as f64);
    });
    let believed = forecast(&history).filter(|told| told.confidence >= 0.5);
    assert_eq!(believed, None);
}

#[test]
fn the_time_counts_what_others_take_and_the_growth_does_not() {
    let history = history(20.0, 250, |t, input| {
        takes(input, t * (50 * MB) as f64);
        others_take(input, t * (150 * MB) as f64);
    });
    let left = history.last().unwrap().room as f64;
    let told = forecast(&history).unwrap();
    assert!(
        near(told.time.as_secs_f64(), left / (200 * MB) as f64),
        "{told:?}"
    );
    assert!(near(told.growth, (50 * MB) as f64), "{told:?}");
}

#[test]
fn beyond_the_bound_no_time_is_left() {
    let history = leak(30.0, 250, 400 * MB);
    assert!(history.last().unwrap().room < 0);
    assert!(forecast(&history).unwrap().time.is_zero());
}

#[test]
fn a_second_of_loading_says_little_about_the_next_minute() {
    let history = leak(1.0, 100, 250 * MB);
    let told = forecast(&history).unwrap();
    assert!(told.confidence < 0.2, "{told:?}");
}

#[test]
fn a_tree_that_does_not_run_has_no_forecast() {
    for motion in [Motion::Paused, Motion::StoppedByUser] {
        let mut history = leak(20.0, 250, 100 * MB);
        extend(&mut history, 1.0, 250, |_, input| input.motion = motion);
        assert_eq!(forecast(&history), None);
    }
}

#[test]
fn a_clock_that_stands_still_gives_no_forecast() {
    let history = history(10.0, 100, |t, input| {
        input.at = BOOT;
        takes(input, t * (100 * MB) as f64);
    });
    assert_eq!(forecast(&history), None);
}

proptest! {
    #[test]
    fn more_room_never_shortens_the_time(rates in prop::collection::vec(0u64..400, 8..60), more in 0i64..8192) {
        let build = |more: i64| {
            let mut history = History::new();
            let mut taken = 0;
            for (look, rate) in rates.iter().enumerate() {
                taken += rate * MB;
                let mut input = PolicyInput { at: BOOT + look as u64 * SECOND / 5, ..quiet() };
                takes(&mut input, taken as f64);
                input.room += more * MB as i64;
                history.push(input);
            }
            forecast(&history)
        };
        if let (Some(less), Some(more)) = (build(0), build(more)) {
            prop_assert!(more.time >= less.time);
            prop_assert!(more.confidence <= less.confidence);
        }
    }
}
