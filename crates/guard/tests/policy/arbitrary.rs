//! Histories that could be, and moments that could not.

use crate::given::*;
use antifreeze_guard::policy::{Bound, Config, History, Motion, PolicyInput, Save};
use antifreeze_record::event::Rung;
use proptest::prelude::*;
use std::time::Duration;

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        Just(Bound::Machine),
        Just(Bound::Cgroup),
        Just(Bound::Budget)
    ]
}

fn motion() -> impl Strategy<Value = Motion> {
    prop_oneof![
        8 => Just(Motion::Running),
        1 => Just(Motion::Paused),
        1 => Just(Motion::StoppedByUser)
    ]
}

pub fn any_config() -> impl Strategy<Value = Config> {
    (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0u64..400,
        0u64..20,
    )
        .prop_map(
            |(wall, can_save, dies_at_wall, swap_is_memory, pages_out, pause, stop)| Config {
                wall,
                can_save,
                dies_at_wall,
                attached: false,
                swap_is_memory,
                pages_out,
                pause_deadline: Duration::from_secs(pause),
                stop_deadline: Duration::from_secs(stop),
            },
        )
}

fn any_rung() -> impl Strategy<Value = Rung> {
    prop_oneof![
        Just(Rung::Calm),
        Just(Rung::Watch),
        Just(Rung::Warn),
        Just(Rung::Brake),
        Just(Rung::Checkpoint),
        Just(Rung::Pause),
        Just(Rung::Stop),
        Just(Rung::Kill)
    ]
}

/// Seconds ago, if ever.
fn ever() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(0.0..90.0)
}

/// Moments that could be: everything moves by steps, often fast enough to matter.
pub fn walk() -> impl Strategy<Value = Vec<PolicyInput>> {
    let step = (
        50u64..1000,
        -400i64..600,
        -400i64..600,
        0u64..3000,
        0u64..2000,
        0u64..400_000,
    );
    (
        prop::collection::vec(step, 4..80),
        bound(),
        motion(),
        0u64..6000,
        0u64..500,
        prop::option::of(0u32..40),
    )
        .prop_map(|(steps, bound, motion, start, stride, trained)| {
            let mut input = PolicyInput {
                bound,
                steps: trained,
                stride: stride * MB,
                ..quiet()
            };
            takes(&mut input, (start * MB) as f64);
            steps
                .into_iter()
                .map(|(ms, tree, others, swapped, scanned, stalled)| {
                    input.at += ms * 1_000_000;
                    input.footprint = input.footprint.saturating_add_signed(tree * MB as i64);
                    input.others = input.others.saturating_add_signed(others * MB as i64);
                    input.available = input
                        .total
                        .saturating_sub(input.footprint)
                        .saturating_sub(input.others);
                    input.room = input.available as i64 - input.reserve as i64;
                    input.swapped_in = input.swapped_in.map(|count| count + swapped);
                    input.scanned = input.scanned.map(|count| count + scanned);
                    input.stalled_us = input.stalled_us.map(|count| count + stalled);
                    input.motion = motion;
                    input
                })
                .collect()
        })
}

/// What was done, in seconds before the last look.
#[derive(Clone, Debug)]
pub struct Past {
    pub rung: Rung,
    pub since: f64,
    pub save: Option<(u8, f64)>,
    pub save_time: f64,
    pub paused: Option<f64>,
    pub resumed: Option<f64>,
    pub asked: Option<f64>,
    pub stopped: Option<f64>,
    pub available_at_stop: u64,
}

pub fn past() -> impl Strategy<Value = Past> {
    (
        (
            any_rung(),
            0.0..10.0,
            prop::option::of((0u8..3, 0.0..90.0)),
            0.1..20.0,
        ),
        (
            ever(),
            ever(),
            ever(),
            prop::option::weighted(0.2, 0.0..30.0),
            0u64..9000,
        ),
    )
        .prop_map(
            |((rung, since, save, save_time), (paused, resumed, asked, stopped, left))| Past {
                rung,
                since,
                save,
                save_time,
                paused,
                resumed,
                asked,
                stopped,
                available_at_stop: left * MB,
            },
        )
}

pub fn built(inputs: &[PolicyInput], past: &Past) -> History {
    let mut history = History::new();
    for input in inputs {
        history.push(*input);
    }
    let then = |seconds: f64| ago(&history, seconds);
    let save = match past.save {
        None => Save::None,
        Some((0, at)) => Save::Asked { at: then(at) },
        Some((1, at)) => Save::Done { at: then(at) },
        Some((_, at)) => Save::Missed { at: then(at) },
    };
    let since = then(past.since);
    let stop_sent_at = past.stopped.filter(|_| past.rung >= Rung::Stop).map(then);
    let (paused_at, resumed_at, resume_asked_at) = (
        past.paused.map(then),
        past.resumed.map(then),
        past.asked.map(then),
    );
    history.acts.rung = past.rung;
    history.acts.since = since;
    history.acts.save = save;
    history.acts.save_time = Duration::from_secs_f64(past.save_time);
    history.acts.paused_at = paused_at;
    history.acts.resumed_at = resumed_at;
    history.acts.resume_asked_at = resume_asked_at;
    history.acts.stop_sent_at = stop_sent_at;
    history.acts.available_at_stop = past.available_at_stop;
    history
}

pub fn wild_moment() -> impl Strategy<Value = PolicyInput> {
    let wild = || prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0..64 * GB];
    let count = || prop::option::of(any::<u64>());
    (
        (wild(), any::<i64>(), bound(), wild(), wild(), wild()),
        (wild(), wild(), wild(), motion()),
        (count(), count(), count(), count(), count(), count()),
        wild(),
    )
        .prop_map(|(sizes, tree, counts, swap_cached)| PolicyInput {
            swap_cached,
            kept_back: 0,
            swap_beyond: 0,
            at: sizes.0,
            room: sizes.1,
            bound: sizes.2,
            total: sizes.3,
            available: sizes.4,
            reserve: sizes.5,
            footprint: tree.0,
            others: tree.1,
            stride: tree.2,
            motion: tree.3,
            swapped_in: counts.0,
            swapped_out: None,
            swap_free: counts.1,
            scanned: counts.2,
            stalled_us: counts.3,
            shm_free: counts.4,
            disk_free: counts.5,
            steps: None,
        })
}

pub fn built_wild(inputs: &[PolicyInput], past: &Past) -> History {
    let mut history = built(&[quiet()], past);
    for input in inputs {
        history.push(*input);
    }
    history
}
