//! When each rung is due. Signals are OR-ed.
//!
//! A rung never becomes due because there is more memory: each condition is met the more
//! easily the less is left.

use super::history::{Bound, Forecast, Moment};
use super::scene::{Scene, Verdict};
use super::signals::STALL_SHARE;
use super::{pause, save};
use antifreeze_record::event::{Rung, Trigger};

/// Forecasts below this are not acted on.
pub(super) const DECENT: f64 = 0.5;
/// Seconds in which a run is starting, or a training from its first step on; and steps, at least.
const START: f64 = 10.0;
const FIRST_STEPS: u32 = 20;
/// Looks for which a budget must have been exceeded.
const LASTING_LOOKS: usize = 3;
/// Seconds of storm that a stop waits for.
const LASTING_STORM: f64 = 5.0;
/// Seconds of growth into swap that a stop waits for.
const LASTING_SWAP: f64 = 3.0;

/// The heights that thresholds are held against. A rung is entered at its threshold and
/// left only when the worst of the last two seconds stays below 80 % of it.
#[derive(Clone, Copy)]
pub(super) struct Heights {
    room: f64,
    available: f64,
    ease: f64,
    storm: bool,
}

impl Heights {
    pub fn entering(scene: &Scene) -> Heights {
        Heights {
            room: scene.room(),
            available: scene.available(),
            ease: 1.0,
            storm: scene.signals.storm(),
        }
    }

    pub fn staying(scene: &Scene) -> Heights {
        Heights {
            room: scene.signals.least_room as f64,
            available: scene.signals.least_available as f64,
            ease: 1.25,
            storm: scene.signals.storm() || scene.signals.quiet_for < 2.0,
        }
    }

    fn forecast_within(&self, scene: &Scene, seconds: f64) -> bool {
        scene.forecast.is_some_and(|forecast| {
            forecast.confidence >= DECENT / self.ease
                && time_to_end(scene, &forecast) <= seconds * self.ease
        })
    }

    fn room_below(&self, bytes: f64) -> bool {
        self.room < bytes * self.ease
    }

    fn available_below(&self, bytes: f64) -> bool {
        self.available < bytes * self.ease
    }

    /// Beyond the bound; for staying, within a few percent of it.
    fn bound_broken(&self, scene: &Scene) -> bool {
        let beyond_wall = self.room + scene.now.kept_back as f64;
        beyond_wall < scene.total() * (self.ease - 1.0) / 10.0
    }

    fn stalling(&self, scene: &Scene) -> bool {
        scene.signals.stalled * self.ease > STALL_SHARE
    }
}

type Due = fn(&Scene, &Heights) -> Option<Trigger>;

/// The highest rung below pause that is due.
pub(super) fn below_pause(scene: &Scene, heights: &Heights) -> Verdict {
    const RUNGS: [(Rung, Due); 4] = [
        (Rung::Checkpoint, checkpoint),
        (Rung::Brake, brake),
        (Rung::Warn, warn),
        (Rung::Watch, watch),
    ];
    RUNGS
        .iter()
        .find_map(|(rung, due)| Some(Verdict::new(*rung, due(scene, heights)?)))
        .unwrap_or(Verdict::new(Rung::Calm, Trigger::Unspecified))
}

fn watch(scene: &Scene, heights: &Heights) -> Option<Trigger> {
    (heights.forecast_within(scene, 600.0) || heights.room_below(scene.total() / 4.0))
        .then(|| bound_why(scene))
}

fn warn(scene: &Scene, heights: &Heights) -> Option<Trigger> {
    if let Some(trigger) = hard(scene, heights) {
        return Some(trigger);
    }
    let forecast = heights.forecast_within(scene, (4.0 * scene.save_time()).max(60.0))
        && !begins_to_train(scene);
    // A run that is over in seconds leaves no past to forecast from. Far from the bound a
    // large stride is only a start: importing, loading. A rise of less than a stride is
    // only a higher peak.
    let stride = scene.now.stride as f64;
    let near = scene.signals.growing
        && scene.signals.tree_rise >= stride
        && heights.room_below((4.0 * stride).min(scene.total() / 4.0));
    if forecast || near {
        return Some(grower(scene));
    }
    // These end at a warning. A save onto a full disk would fail and may spoil the last
    // good one; a full /dev/shm is met by whoever writes to it next, saved or not.
    if scene.signals.disk_low {
        return Some(Trigger::DiskFull);
    }
    scene.signals.shm_low.then_some(Trigger::ShmFull)
}

fn brake(scene: &Scene, heights: &Heights) -> Option<Trigger> {
    if heights.stalling(scene) {
        return Some(Trigger::Stalling);
    }
    if heights.available_below(scene.reserve() / 2.0) {
        return Some(broken_why(scene));
    }
    // What is allowed to go to swap has to be pushed there before memory runs short.
    if scene.may_swap() && heights.available_below(1.5 * scene.reserve()) {
        return Some(grower(scene));
    }
    // A run that has just begun fills its memory for a while; the wall stands behind it.
    let begun = scene.known_for() < START && scene.room() > scene.total() / 4.0;
    let forecast = heights.forecast_within(scene, (3.0 * scene.save_time()).max(20.0));
    (forecast && !begun && !begins_to_train(scene)).then(|| grower(scene))
}

/// A save that comes too late is still asked for: a trainer that survives the wall can
/// finish it there, and whatever is more urgent has a higher rung of its own.
fn checkpoint(scene: &Scene, heights: &Heights) -> Option<Trigger> {
    if !save::wanted(scene) && !save::pending(scene) {
        return None;
    }
    if scene.signals.tree_grew
        && let Some(trigger) = hard(scene, heights)
    {
        return Some(trigger);
    }
    if save::is_last_call(scene) {
        return Some(grower(scene));
    }
    let forecast = heights.forecast_within(scene, (2.0 * scene.save_time()).max(10.0));
    (forecast && !begins_to_train(scene)).then(|| grower(scene))
}

/// Frameworks, a model, the first batches, the optimizer's own memory: whoever is seen to be at that
/// grows fast and then no more. Not where little is left: then it counts all the same.
fn begins_to_train(scene: &Scene) -> bool {
    let has_begun = |moment: &Moment| moment.steps.is_some_and(|steps| steps > 0);
    let begins = match scene.now.steps {
        None => false,
        Some(0) => scene.known_for() < START,
        Some(steps) => {
            let mut lately = scene.history.iter().filter(|at| scene.age(at.at) < START);
            steps < FIRST_STEPS || lately.any(|moment| !has_begun(moment))
        }
    };
    begins && scene.room() > scene.total() / 4.0
}

/// The tree must end so that the machine, or the run's last save, lives.
pub(super) fn stop(scene: &Scene) -> Option<Trigger> {
    let signals = &scene.signals;
    if scene.now.bound == Bound::Budget && budget_exceeded(scene) {
        return Some(Trigger::BudgetExceeded);
    }
    if on_doorstep(scene) {
        return Some(Trigger::TreeGrowth);
    }
    // No cushion catches it beyond the wall; what is left there is for ending well.
    if scene.config.attached && scene.grows_beyond_wall() {
        return Some(bound_why(scene));
    }
    if starves_others(scene) {
        return Some(Trigger::Stalling);
    }
    if lives_on_swap(scene) {
        return Some(Trigger::TreeGrowth);
    }
    if save::is_all_there_is_to_do(scene) {
        return Some(match scene.now.bound {
            Bound::Budget => Trigger::BudgetExceeded,
            Bound::Machine | Bound::Cgroup => Trigger::TreeGrowth,
        });
    }
    // Others grew: that is what a pause is for, as long as it was not tried in vain.
    if !signals.tree_grew && !pause::tried(scene) {
        return None;
    }
    if scene.available() < scene.reserve() / 4.0 && !scene.may_swap() {
        return Some(broken_why(scene));
    }
    if signals.storm_for > LASTING_STORM && scene.tree_is_largest() {
        return Some(Trigger::SwapStorm);
    }
    // Without a wall nothing else keeps the tree inside its bound.
    (!scene.config.wall && signals.tree_grew && scene.room() < 0.0).then(|| bound_why(scene))
}

/// The reserve has been broken for a while, by the largest, and it shows: everything waits
/// for memory, or the tree lives on swap that was never its to use. A slow disk keeps the
/// rate of a storm down and makes it no milder.
fn starves_others(scene: &Scene) -> bool {
    let broken_for = scene
        .history
        .iter()
        .rev()
        .take_while(|moment| moment.room < 0)
        .last()
        .map_or(0.0, |since| scene.age(since.at));
    // The cushion may use half of the reserve; what grows beyond that has no wall.
    let unwalled = scene.signals.growing && scene.room() < -scene.reserve() / 2.0;
    let shows = unwalled
        || scene.signals.stalled > STALL_SHARE
        || scene.now.swap_beyond as f64 > scene.reserve() / 2.0;
    scene.now.bound != Bound::Budget
        && broken_for >= LASTING_STORM
        && scene.tree_is_largest()
        && shows
}

/// It grows where no wall stops it, and what is pushed out makes the room it grows into: swap
/// that was never its to use. One that maps what it grows by meets the wall first, later by what
/// was forgiven of its untouched memory; and whoever was just refused may be about to let go.
fn lives_on_swap(scene: &Scene) -> bool {
    let refused_lately = scene
        .acts()
        .walled_at
        .is_some_and(|at| scene.age(at) < LASTING_SWAP);
    let forgiven = |moment: &Moment| match moment.stride {
        0 => 0.0,
        _ => moment.reserve as f64 / 2.0,
    };
    let beyond_for = scene
        .history
        .iter()
        .rev()
        .take_while(|moment| moment.room as f64 + forgiven(moment) < moment.swap_beyond as f64)
        .last()
        .map_or(0.0, |since| scene.age(since.at));
    scene.now.bound != Bound::Budget
        && scene.now.swap_beyond as f64 > scene.reserve() / 4.0
        && scene.signals.growing
        && scene.signals.tree_grew
        && beyond_for >= LASTING_SWAP
        && !refused_lately
}

/// Beyond the budget for several looks: the wall stands at nothing more by then, so it is
/// something the wall does not see.
fn budget_exceeded(scene: &Scene) -> bool {
    let mut latest = scene.history.iter().rev().take(LASTING_LOOKS);
    scene.history.iter().count() >= LASTING_LOOKS
        && latest.all(|moment| {
            let left = moment.room as f64 + moment.kept_back as f64;
            moment.bound == Bound::Budget && left < -0.02 * moment.total as f64
        })
}

/// Seconds until the run meets its end: the wall, or the doorstep at which a trainer that
/// cannot survive the wall is stopped.
fn time_to_end(scene: &Scene, forecast: &Forecast) -> f64 {
    let time = forecast.time.as_secs_f64();
    if !scene.config.dies_at_wall || scene.room() <= 0.0 {
        return time;
    }
    time * (1.0 - doorstep(scene) / scene.room()).max(0.0)
}

/// Where a trainer that cannot survive the wall has to be stopped.
fn doorstep(scene: &Scene) -> f64 {
    (2.0 * scene.now.stride as f64)
        .max(1.5 * scene.growth())
        // Starting up takes large strides, far from any wall.
        .min(scene.total() / 8.0)
        .max(0.03 * scene.total())
}

/// While it saves it is given a third of that: the save ends either way, and may end well.
fn on_doorstep(scene: &Scene) -> bool {
    let share = if save::pending(scene) { 3.0 } else { 1.0 };
    scene.config.dies_at_wall && scene.signals.growing && scene.room() < doorstep(scene) / share
}

/// Whether a stop can wait for a save.
pub(super) fn stop_can_wait(scene: &Scene) -> bool {
    !on_doorstep(scene) && save::comes_first(scene)
}

/// Something is wrong already, not only foreseen.
fn hard(scene: &Scene, heights: &Heights) -> Option<Trigger> {
    if heights.storm {
        return Some(Trigger::SwapStorm);
    }
    if scene.now.bound == Bound::Budget {
        return heights
            .bound_broken(scene)
            .then_some(Trigger::BudgetExceeded);
    }
    heights
        .available_below(scene.reserve())
        .then(|| broken_why(scene))
}

/// Who brings the bound nearer.
fn grower(scene: &Scene) -> Trigger {
    if scene.signals.others_grew() && !scene.signals.tree_grew {
        Trigger::OthersGrew
    } else {
        Trigger::TreeGrowth
    }
}

/// Less is left than was to be kept.
pub(super) fn broken_why(scene: &Scene) -> Trigger {
    match scene.now.bound {
        Bound::Cgroup => Trigger::CgroupLimit,
        Bound::Machine | Bound::Budget => Trigger::ReserveBroken,
    }
}

fn bound_why(scene: &Scene) -> Trigger {
    if scene.signals.growing {
        return Trigger::TreeGrowth;
    }
    match scene.now.bound {
        Bound::Machine => Trigger::ReserveBroken,
        Bound::Cgroup => Trigger::CgroupLimit,
        Bound::Budget => Trigger::BudgetExceeded,
    }
}
