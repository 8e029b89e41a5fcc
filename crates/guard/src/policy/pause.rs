//! When the tree waits for others, and when it goes on.
//!
//! A pause helps only against somebody else's growth that will pass. It is never longer
//! than its deadline, and after it the tree runs for a while before it can be paused
//! again, unless the others take still more.

use super::history::Bound;
use super::rungs::{self, Heights, broken_why};
use super::save;
use super::scene::{Scene, Verdict};
use super::signals::STALL_SHARE;
use antifreeze_record::event::{Rung, Trigger};
use core::time::Duration;

/// The time after a resume in which only worse than before pauses again.
pub const BACK_OFF: Duration = Duration::from_secs(60);

/// Seconds from the end of memory, as fast as it goes, at which a pause comes early: it takes
/// a disk that long to take in what the tree holds.
pub(super) const FAST: f64 = 4.0;
/// The same, and the room in reserves, for a tree that is written to swap: its writes leave the disk free for others in
/// between, and what is not written in time the kernel takes from all programs alike.
const FAST_TO_PAGE_OUT: f64 = 6.0;
const ROOM_TO_PAGE_OUT: f64 = 2.5;

/// A step that let go of its memory so long ago will soon do so again, nanoseconds.
const STEP: u64 = 1_500_000_000;

/// Seconds without a storm, and without a fall, that count as over.
const STILL: f64 = 2.0;

/// Whether somebody else's growth calls for a pause.
pub(super) fn due(scene: &Scene) -> bool {
    let signals = &scene.signals;
    // The tree's own coming and going says nothing of how fast the others take it, and at
    // the end of a step there is only a moment with more.
    let least = signals.least_available as f64;
    let (time, room) = match scene.config.pages_out {
        true => (FAST_TO_PAGE_OUT, ROOM_TO_PAGE_OUT),
        false => (FAST, 1.5),
    };
    let goes_fast = least < time * signals.others_growth && least < room * scene.reserve();
    let pressed = scene.available() < scene.reserve() / 2.0
        || goes_fast
        || signals.storm()
        || (signals.stalled > STALL_SHARE && scene.available() < scene.reserve());
    pressed
        && scene.now.bound != Bound::Budget
        && signals.others_grew()
        && !signals.growing
        && !tried(scene)
        && !can_wait_for_the_step(scene)
}

/// A tree that is stopped in mid-step keeps what the step would have given back. While there
/// is some room it may come to where it holds little.
fn can_wait_for_the_step(scene: &Scene) -> bool {
    let lately = || {
        let moments = scene.history.recent(STEP);
        moments.map(|moment| moment.footprint)
    };
    let least = lately().min().unwrap_or(scene.now.footprint);
    let swing = lately().max().unwrap_or(least) - least;
    swing as f64 > scene.reserve() / 8.0
        && scene.now.footprint > least + swing / 3
        && scene.available() > scene.reserve() / 2.0
        && !scene.signals.storm()
}

/// It was paused a while ago, and that is not to be repeated.
pub(super) fn tried(scene: &Scene) -> bool {
    scene
        .acts()
        .resumed_at
        .is_some_and(|at| !may_pause_again(scene, at))
}

fn may_pause_again(scene: &Scene, resumed_at: u64) -> bool {
    let then = scene
        .history
        .iter()
        .find(|moment| moment.at >= resumed_at)
        .unwrap_or(scene.now);
    let worse = scene.now.others.saturating_sub(then.others) as f64 > scene.total() / 20.0;
    scene.age(resumed_at) > BACK_OFF.as_secs_f64() || worse
}

/// What becomes of a tree that is paused.
pub(super) fn go_on(scene: &Scene) -> Verdict {
    if nowhere_to_go(scene) {
        return Verdict::new(Rung::Stop, broken_why(scene));
    }
    let acts = scene.acts();
    let paused_at = acts.paused_at.unwrap_or(acts.since);
    let asked = acts.resume_asked_at.is_some_and(|at| at >= paused_at);
    // What went to swap meanwhile wants to come back first, unless it is still in memory too.
    let to_return = if scene.config.swap_is_memory {
        0
    } else {
        scene.now.swap_beyond.saturating_sub(scene.now.swap_cached)
    };
    let enough = scene.reserve() * 1.2 + to_return as f64;
    let still = scene.age(paused_at) >= STILL
        && scene.signals.quiet_for >= STILL
        && scene.signals.available_fall < scene.reserve() / 16.0;
    let room_again = scene.signals.least_available as f64 > enough && still;
    let trigger = if asked {
        Trigger::UserRequest
    } else if room_again {
        Trigger::RoomAvailable
    } else if scene.age(paused_at) > scene.config.pause_deadline.as_secs_f64() {
        Trigger::Deadline
    } else {
        return Verdict::new(Rung::Pause, Trigger::OthersGrew);
    };
    // It runs again, whatever the rest says: a stop has to be earned by running. Where
    // the pressure is still on, running begins with a save.
    let under_pressure = !room_again && save::wanted(scene);
    let rung = if under_pressure {
        Rung::Checkpoint
    } else {
        rungs::below_pause(scene, &Heights::entering(scene)).rung
    };
    Verdict::new(rung, trigger)
}

/// The pages of a paused tree go to swap. Once that is full the kernel would kill the tree
/// where it stands; ended by us it may still clean up.
fn nowhere_to_go(scene: &Scene) -> bool {
    let swap_is_full = scene
        .now
        .swap_free
        .is_some_and(|free| (free as f64) < scene.reserve() / 4.0);
    let stalled = scene.available() < scene.reserve() / 3.0 && scene.signals.stalled > STALL_SHARE;
    let stuck = scene.available() < scene.reserve() / 8.0 || stalled;
    (swap_is_full && stuck) || (scene.config.swap_is_memory && stalled)
}
