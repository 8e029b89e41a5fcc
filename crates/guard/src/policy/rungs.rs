//! Decides when each rung is due. Any one signal suffices.
//!
//! A rung never becomes due because there is more memory: less memory always meets a condition sooner.

use super::assessment::{Assessment, Verdict};
use super::history::{Bound, Forecast, PolicyInput};
use super::signals::STALL_SHARE;
use super::{pause, save};
use antifreeze_record::event::{Rung, Trigger};

/// Forecasts of lower confidence are ignored.
pub(super) const MIN_CONFIDENCE: f64 = 0.5;
/// Seconds for which a run, or a training after its first step, is starting; and its least number of steps.
const START_S: f64 = 10.0;
const FIRST_STEPS: u32 = 20;
/// Samples for which a budget must have been exceeded.
const LASTING_SAMPLES: usize = 3;
/// Seconds of storm before a stop.
const LASTING_STORM_S: f64 = 5.0;
/// Seconds of growth into swap before a stop.
const LASTING_SWAP_S: f64 = 3.0;

/// The values that thresholds are compared with. A rung is entered at its threshold and left only when the worst of the
/// last two seconds stays below 80 % of it.
#[derive(Clone, Copy)]
pub(super) struct Heights {
    room: f64,
    available: f64,
    ease: f64,
    storm: bool,
}

impl Heights {
    pub fn entering(assessment: &Assessment) -> Heights {
        Heights {
            room: assessment.room(),
            available: assessment.available(),
            ease: 1.0,
            storm: assessment.signals.storm(),
        }
    }

    pub fn staying(assessment: &Assessment) -> Heights {
        Heights {
            room: assessment.signals.least_room as f64,
            available: assessment.signals.least_available as f64,
            ease: 1.25,
            storm: assessment.signals.storm() || assessment.signals.quiet_for < 2.0,
        }
    }

    fn forecast_within(&self, assessment: &Assessment, seconds: f64) -> bool {
        assessment.forecast.is_some_and(|forecast| {
            forecast.confidence >= MIN_CONFIDENCE / self.ease
                && time_to_end(assessment, &forecast) <= seconds * self.ease
        })
    }

    fn room_below(&self, bytes: f64) -> bool {
        self.room < bytes * self.ease
    }

    fn available_below(&self, bytes: f64) -> bool {
        self.available < bytes * self.ease
    }

    /// Beyond the bound, or for staying, within a few percent of it.
    fn bound_broken(&self, assessment: &Assessment) -> bool {
        let beyond_wall = self.room + assessment.now.kept_back as f64;
        beyond_wall < assessment.total() * (self.ease - 1.0) / 10.0
    }

    fn stalling(&self, assessment: &Assessment) -> bool {
        assessment.signals.stalled * self.ease > STALL_SHARE
    }
}

type Due = fn(&Assessment, &Heights) -> Option<Trigger>;

/// The highest rung below pause that is due.
pub(super) fn below_pause(assessment: &Assessment, heights: &Heights) -> Verdict {
    const RUNGS: [(Rung, Due); 4] = [
        (Rung::Checkpoint, checkpoint),
        (Rung::Brake, brake),
        (Rung::Warn, warn),
        (Rung::Watch, watch),
    ];
    RUNGS
        .iter()
        .find_map(|(rung, due)| Some(Verdict::new(*rung, due(assessment, heights)?)))
        .unwrap_or(Verdict::new(Rung::Calm, Trigger::Unspecified))
}

fn watch(assessment: &Assessment, heights: &Heights) -> Option<Trigger> {
    (heights.forecast_within(assessment, 600.0) || heights.room_below(assessment.total() / 4.0))
        .then(|| bound_why(assessment))
}

fn warn(assessment: &Assessment, heights: &Heights) -> Option<Trigger> {
    if let Some(trigger) = hard(assessment, heights) {
        return Some(trigger);
    }
    let forecast = heights.forecast_within(assessment, (4.0 * assessment.save_time()).max(60.0))
        && !begins_to_train(assessment);
    // A short run leaves no history to forecast from. Far from the bound a large stride is only startup: importing,
    // loading. A rise of less than a stride is only a higher peak.
    let stride = assessment.now.stride as f64;
    let near = assessment.signals.growing
        && assessment.signals.tree_rise >= stride
        && heights.room_below((4.0 * stride).min(assessment.total() / 4.0));
    if forecast || near {
        return Some(grower(assessment));
    }
    // These only cause a warning. A save onto a full disk would fail and may destroy the last good one; a full /dev/shm
    // fails the next write to it, saved or not.
    if assessment.signals.disk_low {
        return Some(Trigger::DiskFull);
    }
    assessment.signals.shm_low.then_some(Trigger::ShmFull)
}

fn brake(assessment: &Assessment, heights: &Heights) -> Option<Trigger> {
    if heights.stalling(assessment) {
        return Some(Trigger::Stalling);
    }
    if heights.available_below(assessment.reserve() / 2.0) {
        return Some(broken_why(assessment));
    }
    // Memory that may go to swap has to be pushed there before memory runs short.
    if assessment.may_swap() && heights.available_below(1.5 * assessment.reserve()) {
        return Some(grower(assessment));
    }
    // A new run fills its memory for a while; the wall still protects the machine.
    let begun = assessment.known_for() < START_S && assessment.room() > assessment.total() / 4.0;
    let forecast = heights.forecast_within(assessment, (3.0 * assessment.save_time()).max(20.0));
    (forecast && !begun && !begins_to_train(assessment)).then(|| grower(assessment))
}

/// A save that may come too late is still requested: a trainer that survives the wall can finish it there, and anything
/// more urgent has a higher rung.
fn checkpoint(assessment: &Assessment, heights: &Heights) -> Option<Trigger> {
    if !save::wanted(assessment) && !save::pending(assessment) {
        return None;
    }
    if assessment.signals.tree_grew
        && let Some(trigger) = hard(assessment, heights)
    {
        return Some(trigger);
    }
    if save::is_last_call(assessment) {
        return Some(grower(assessment));
    }
    let forecast = heights.forecast_within(assessment, (2.0 * assessment.save_time()).max(10.0));
    (forecast && !begins_to_train(assessment)).then(|| grower(assessment))
}

/// Whether the tree loads frameworks, a model, the first batches or the memory of the optimizer: it grows fast and then
/// stops. Ignored if little memory is left.
fn begins_to_train(assessment: &Assessment) -> bool {
    let has_begun = |input: &PolicyInput| input.steps.is_some_and(|steps| steps > 0);
    let begins = match assessment.now.steps {
        None => false,
        Some(0) => assessment.known_for() < START_S,
        Some(steps) => {
            let mut lately = assessment
                .history
                .iter()
                .filter(|at| assessment.age(at.at) < START_S);
            steps < FIRST_STEPS || lately.any(|input| !has_begun(input))
        }
    };
    begins && assessment.room() > assessment.total() / 4.0
}

/// Whether the tree must end so that the machine, or the last save of the run, survives.
pub(super) fn stop(assessment: &Assessment) -> Option<Trigger> {
    let signals = &assessment.signals;
    if assessment.now.bound == Bound::Budget && budget_exceeded(assessment) {
        return Some(Trigger::BudgetExceeded);
    }
    if on_doorstep(assessment) {
        return Some(Trigger::TreeGrowth);
    }
    // Beyond the wall an attached process has no cushion; what is left there is for ending cleanly.
    if assessment.config.attached && assessment.grows_beyond_wall() {
        return Some(bound_why(assessment));
    }
    if starves_others(assessment) {
        return Some(Trigger::Stalling);
    }
    if lives_on_swap(assessment) {
        return Some(Trigger::TreeGrowth);
    }
    if save::is_all_there_is_to_do(assessment) {
        return Some(match assessment.now.bound {
            Bound::Budget => Trigger::BudgetExceeded,
            Bound::Machine | Bound::Cgroup => Trigger::TreeGrowth,
        });
    }
    // If others grew, a pause is the answer, unless it was tried without success.
    if !signals.tree_grew && !pause::tried(assessment) {
        return None;
    }
    if assessment.available() < assessment.reserve() / 4.0 && !assessment.may_swap() {
        return Some(broken_why(assessment));
    }
    if signals.storm_for > LASTING_STORM_S && assessment.tree_is_largest() {
        return Some(Trigger::SwapStorm);
    }
    // Without a wall nothing else keeps the tree within its bound.
    (!assessment.config.wall && signals.tree_grew && assessment.room() < 0.0)
        .then(|| bound_why(assessment))
}

/// The reserve has been broken for a while by the largest user of memory, with visible effect: processes wait for
/// memory, or the tree uses swap it was not allowed. A slow disk lowers the rate of a storm without making it milder.
fn starves_others(assessment: &Assessment) -> bool {
    let broken_for = assessment
        .history
        .iter()
        .rev()
        .take_while(|input| input.room < 0)
        .last()
        .map_or(0.0, |since| assessment.age(since.at));
    // The cushion may use half of the reserve; growth beyond that meets no wall.
    let unwalled = assessment.signals.growing && assessment.room() < -assessment.reserve() / 2.0;
    let shows = unwalled
        || assessment.signals.stalled > STALL_SHARE
        || assessment.now.swap_beyond as f64 > assessment.reserve() / 2.0;
    assessment.now.bound != Bound::Budget
        && broken_for >= LASTING_STORM_S
        && assessment.tree_is_largest()
        && shows
}

/// The tree grows where no wall stops it, into memory that is freed by swapping it out. Growth by mapping meets the
/// wall first, later by the forgiven part of untouched memory; and a tree that was just refused memory may be about to
/// free some.
fn lives_on_swap(assessment: &Assessment) -> bool {
    let refused_lately = assessment
        .acts()
        .walled_at
        .is_some_and(|at| assessment.age(at) < LASTING_SWAP_S);
    let forgiven = |input: &PolicyInput| match input.stride {
        0 => 0.0,
        _ => input.reserve as f64 / 2.0,
    };
    let beyond_for = assessment
        .history
        .iter()
        .rev()
        .take_while(|input| input.room as f64 + forgiven(input) < input.swap_beyond as f64)
        .last()
        .map_or(0.0, |since| assessment.age(since.at));
    assessment.now.bound != Bound::Budget
        && assessment.now.swap_beyond as f64 > assessment.reserve() / 4.0
        && assessment.signals.growing
        && assessment.signals.tree_grew
        && beyond_for >= LASTING_SWAP_S
        && !refused_lately
}

/// Beyond the budget for several samples: the wall leaves no head-room by then, so the wall does not see the growth.
fn budget_exceeded(assessment: &Assessment) -> bool {
    let mut latest = assessment.history.iter().rev().take(LASTING_SAMPLES);
    assessment.history.iter().count() >= LASTING_SAMPLES
        && latest.all(|input| {
            let left = input.room as f64 + input.kept_back as f64;
            input.bound == Bound::Budget && left < -0.02 * input.total as f64
        })
}

/// Seconds until the run reaches the wall, or the point at which a trainer that cannot survive the wall is stopped.
fn time_to_end(assessment: &Assessment, forecast: &Forecast) -> f64 {
    let time = forecast.time.as_secs_f64();
    if !assessment.config.dies_at_wall || assessment.room() <= 0.0 {
        return time;
    }
    time * (1.0 - doorstep(assessment) / assessment.room()).max(0.0)
}

/// The room at which a trainer that cannot survive the wall is stopped, in bytes.
fn doorstep(assessment: &Assessment) -> f64 {
    (2.0 * assessment.now.stride as f64)
        .max(1.5 * assessment.growth())
        // Startup takes large strides, far from any wall.
        .min(assessment.total() / 8.0)
        .max(0.03 * assessment.total())
}

/// A third of the distance during a save, which may still complete.
fn on_doorstep(assessment: &Assessment) -> bool {
    let share = if save::pending(assessment) { 3.0 } else { 1.0 };
    assessment.config.dies_at_wall
        && assessment.signals.growing
        && assessment.room() < doorstep(assessment) / share
}

/// Whether a stop can wait for a save.
pub(super) fn stop_can_wait(assessment: &Assessment) -> bool {
    !on_doorstep(assessment) && save::comes_first(assessment)
}

/// A shortage that is present, not only forecast.
fn hard(assessment: &Assessment, heights: &Heights) -> Option<Trigger> {
    if heights.storm {
        return Some(Trigger::SwapStorm);
    }
    if assessment.now.bound == Bound::Budget {
        return heights
            .bound_broken(assessment)
            .then_some(Trigger::BudgetExceeded);
    }
    heights
        .available_below(assessment.reserve())
        .then(|| broken_why(assessment))
}

/// Which side brings the bound nearer.
fn grower(assessment: &Assessment) -> Trigger {
    if assessment.signals.others_grew() && !assessment.signals.tree_grew {
        Trigger::OthersGrew
    } else {
        Trigger::TreeGrowth
    }
}

/// Why less memory is left than the reserve.
pub(super) fn broken_why(assessment: &Assessment) -> Trigger {
    match assessment.now.bound {
        Bound::Cgroup => Trigger::CgroupLimit,
        Bound::Machine | Bound::Budget => Trigger::ReserveBroken,
    }
}

fn bound_why(assessment: &Assessment) -> Trigger {
    if assessment.signals.growing {
        return Trigger::TreeGrowth;
    }
    match assessment.now.bound {
        Bound::Machine => Trigger::ReserveBroken,
        Bound::Cgroup => Trigger::CgroupLimit,
        Bound::Budget => Trigger::BudgetExceeded,
    }
}
