//! Decides when the tree is paused, and when it continues.
//!
//! A pause helps only if other programs grow and will shrink again. It never exceeds its deadline. After it the tree
//! runs for a while before it can be paused again, unless the other programs take still more.

use super::assessment::{Assessment, Verdict};
use super::history::Bound;
use super::rungs::{self, Heights, broken_why};
use super::save;
use super::signals::STALL_SHARE;
use antifreeze_record::event::{Rung, Trigger};
use core::time::Duration;

/// The time after a resume in which only a worse situation pauses again.
pub const BACK_OFF: Duration = Duration::from_secs(60);

/// Seconds until memory runs out, at the present rate, at which a pause is early: a disk takes that long to take in the
/// tree.
pub(super) const FAST_S: f64 = 4.0;
/// The same, and the room in multiples of the reserve, for a tree that is written to swap: its writes leave gaps for
/// other programs, and the kernel takes what is not written in time from all programs alike.
const FAST_TO_PAGE_OUT_S: f64 = 6.0;
const ROOM_TO_PAGE_OUT: f64 = 2.5;

/// A step that freed its memory this recently will soon do so again.
const STEP_NS: u64 = 1_500_000_000;

/// Seconds without a storm and without a fall after which the shortage is over.
const STILL_S: f64 = 2.0;

/// Whether the growth of other programs calls for a pause.
pub(super) fn due(assessment: &Assessment) -> bool {
    let signals = &assessment.signals;
    // The least of the last two seconds: the swings of the tree do not tell how fast others grow, and at the end of a
    // step there is briefly more.
    let least = signals.least_available as f64;
    let (time, room) = match assessment.config.pages_out {
        true => (FAST_TO_PAGE_OUT_S, ROOM_TO_PAGE_OUT),
        false => (FAST_S, 1.5),
    };
    let goes_fast = least < time * signals.others_growth && least < room * assessment.reserve();
    let pressed = assessment.available() < assessment.reserve() / 2.0
        || goes_fast
        || signals.storm()
        || (signals.stalled > STALL_SHARE && assessment.available() < assessment.reserve());
    pressed
        && assessment.now.bound != Bound::Budget
        && signals.others_grew()
        && !signals.growing
        && !tried(assessment)
        && !can_wait_for_the_step(assessment)
}

/// A tree that is stopped during a step keeps what the end of the step would have freed. While there is some room it
/// may continue to where it holds little.
fn can_wait_for_the_step(assessment: &Assessment) -> bool {
    let lately = || {
        let inputs = assessment.history.recent(STEP_NS);
        inputs.map(|input| input.footprint)
    };
    let least = lately().min().unwrap_or(assessment.now.footprint);
    let swing = lately().max().unwrap_or(least) - least;
    swing as f64 > assessment.reserve() / 8.0
        && assessment.now.footprint > least + swing / 3
        && assessment.available() > assessment.reserve() / 2.0
        && !assessment.signals.storm()
}

/// Whether a recent pause rules out another one.
pub(super) fn tried(assessment: &Assessment) -> bool {
    assessment
        .acts()
        .resumed_at
        .is_some_and(|at| !may_pause_again(assessment, at))
}

fn may_pause_again(assessment: &Assessment, resumed_at: u64) -> bool {
    let then = assessment
        .history
        .iter()
        .find(|input| input.at >= resumed_at)
        .unwrap_or(assessment.now);
    let worse =
        assessment.now.others.saturating_sub(then.others) as f64 > assessment.total() / 20.0;
    assessment.age(resumed_at) > BACK_OFF.as_secs_f64() || worse
}

/// What happens to a paused tree.
pub(super) fn go_on(assessment: &Assessment) -> Verdict {
    if nowhere_to_go(assessment) {
        return Verdict::new(Rung::Stop, broken_why(assessment));
    }
    let acts = assessment.acts();
    let paused_at = acts.paused_at.unwrap_or(acts.since);
    let asked = acts.resume_asked_at.is_some_and(|at| at >= paused_at);
    // Pages that went to swap come back first, unless they are still in memory too.
    let to_return = if assessment.config.swap_is_memory {
        0
    } else {
        assessment
            .now
            .swap_beyond
            .saturating_sub(assessment.now.swap_cached)
    };
    let enough = assessment.reserve() * 1.2 + to_return as f64;
    let still = assessment.age(paused_at) >= STILL_S
        && assessment.signals.quiet_for >= STILL_S
        && assessment.signals.available_fall < assessment.reserve() / 16.0;
    let room_again = assessment.signals.least_available as f64 > enough && still;
    let trigger = if asked {
        Trigger::UserRequest
    } else if room_again {
        Trigger::RoomAvailable
    } else if assessment.age(paused_at) > assessment.config.pause_deadline.as_secs_f64() {
        Trigger::Deadline
    } else {
        return Verdict::new(Rung::Pause, Trigger::OthersGrew);
    };
    // The tree runs again, whatever the other signals say: only a running tree can be stopped. If memory is still
    // short, it begins with a save.
    let under_pressure = !room_again && save::wanted(assessment);
    let rung = if under_pressure {
        Rung::Checkpoint
    } else {
        rungs::below_pause(assessment, &Heights::entering(assessment)).rung
    };
    Verdict::new(rung, trigger)
}

/// Pages of a paused tree go to swap. Once swap is full, the kernel would kill the tree; if we end it, it may still
/// clean up.
fn nowhere_to_go(assessment: &Assessment) -> bool {
    let swap_is_full = assessment
        .now
        .swap_free
        .is_some_and(|free| (free as f64) < assessment.reserve() / 4.0);
    let stalled = assessment.available() < assessment.reserve() / 3.0
        && assessment.signals.stalled > STALL_SHARE;
    let stuck = assessment.available() < assessment.reserve() / 8.0 || stalled;
    (swap_is_full && stuck) || (assessment.config.swap_is_memory && stalled)
}
