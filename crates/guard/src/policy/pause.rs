//! When the tree waits for others, and when it goes on.
//!
//! A pause helps only against somebody else's growth that will pass. It is never longer
//! than its deadline, and after it the tree runs for a while before it can be paused
//! again, unless the others take still more.

use super::assessment::{Assessment, Verdict};
use super::history::Bound;
use super::rungs::{self, Heights, broken_why};
use super::save;
use super::signals::STALL_SHARE;
use antifreeze_record::event::{Rung, Trigger};
use core::time::Duration;

/// The time after a resume in which only worse than before pauses again.
pub const BACK_OFF: Duration = Duration::from_secs(60);

/// Seconds from the end of memory, as fast as it goes, at which a pause comes early: it takes
/// a disk that long to take in what the tree holds.
pub(super) const FAST_S: f64 = 4.0;
/// The same, and the room in reserves, for a tree that is written to swap: its writes leave the disk free for others in
/// between, and what is not written in time the kernel takes from all programs alike.
const FAST_TO_PAGE_OUT_S: f64 = 6.0;
const ROOM_TO_PAGE_OUT: f64 = 2.5;

/// A step that let go of its memory so long ago will soon do so again, nanoseconds.
const STEP_NS: u64 = 1_500_000_000;

/// Seconds without a storm, and without a fall, that count as over.
const STILL_S: f64 = 2.0;

/// Whether somebody else's growth calls for a pause.
pub(super) fn due(assessment: &Assessment) -> bool {
    let signals = &assessment.signals;
    // The tree's own coming and going says nothing of how fast the others take it, and at
    // the end of a step there is only a moment with more.
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

/// A tree that is stopped in mid-step keeps what the step would have given back. While there
/// is some room it may come to where it holds little.
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

/// It was paused a while ago, and that is not to be repeated.
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

/// What becomes of a tree that is paused.
pub(super) fn go_on(assessment: &Assessment) -> Verdict {
    if nowhere_to_go(assessment) {
        return Verdict::new(Rung::Stop, broken_why(assessment));
    }
    let acts = assessment.acts();
    let paused_at = acts.paused_at.unwrap_or(acts.since);
    let asked = acts.resume_asked_at.is_some_and(|at| at >= paused_at);
    // What went to swap meanwhile wants to come back first, unless it is still in memory too.
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
    // It runs again, whatever the rest says: a stop has to be earned by running. Where
    // the pressure is still on, running begins with a save.
    let under_pressure = !room_again && save::wanted(assessment);
    let rung = if under_pressure {
        Rung::Checkpoint
    } else {
        rungs::below_pause(assessment, &Heights::entering(assessment)).rung
    };
    Verdict::new(rung, trigger)
}

/// The pages of a paused tree go to swap. Once that is full the kernel would kill the tree
/// where it stands; ended by us it may still clean up.
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
