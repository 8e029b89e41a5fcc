//! Decides whether a save is under way, wanted, or no longer possible.

use super::Bound;
use super::assessment::Assessment;
use super::history::Save;
use super::rungs::MIN_CONFIDENCE;

/// Seconds between two saves, however quick they are; and if memory has grown much since the last.
const SAVE_INTERVAL_S: f64 = 60.0;
const SHORT_SAVE_INTERVAL_S: f64 = 15.0;
/// Seconds before the wall at which a save is the last that is possible,
const LAST_CALL_S: f64 = 2.0;
/// and for which it counts as such.
const FRESH_S: f64 = 3.0;

/// Whether a requested save may still complete.
pub(super) fn pending(assessment: &Assessment) -> bool {
    match assessment.acts().save {
        Save::Asked { at } => assessment.age(at) <= (3.0 * assessment.save_time()).max(10.0),
        Save::None | Save::Done { .. } | Save::Missed { .. } => false,
    }
}

/// Whether a save would help: there is none, or the last one is old or far behind.
pub(super) fn wanted(assessment: &Assessment) -> bool {
    let long_ago = |at| assessment.age(at) > (10.0 * assessment.save_time()).max(SAVE_INTERVAL_S);
    assessment.config.can_save
        && match assessment.acts().save {
            Save::None => true,
            Save::Asked { .. } => false,
            Save::Done { at } => {
                long_ago(at)
                    || (assessment.age(at) > SHORT_SAVE_INTERVAL_S && grew_since(assessment, at))
                    || (assessment.age(at) > FRESH_S && is_last_call(assessment))
            }
            Save::Missed { at } => long_ago(at),
        }
}

/// Whether the run is saved and continues to grow beyond the wall, out of the reserve for small requests. The next
/// refusal would hit any line, where nothing catches it; ending now loses nothing.
pub(super) fn is_all_there_is_to_do(assessment: &Assessment) -> bool {
    let refused_lately = assessment
        .acts()
        .walled_at
        .is_some_and(|at| assessment.age(at) < FRESH_S);
    // The wall of a budget stands later until the slow worker has found out which data are files: the next large
    // request meets it. Half of the reserve for small requests is still there.
    let later = match assessment.now.bound {
        Bound::Budget => assessment.now.kept_back as f64 / 2.0,
        Bound::Machine | Bound::Cgroup => 0.0,
    };
    matches!(assessment.acts().save, Save::Done { at } if assessment.age(at) <= FRESH_S)
        && assessment.grows_beyond_wall()
        && assessment.room() < -later
        && !refused_lately
}

/// Whether to let a save come before the tree is paused or ended.
pub(super) fn comes_first(assessment: &Assessment) -> bool {
    if assessment.critical() {
        return false;
    }
    pending(assessment) || (wanted(assessment) && time_left(assessment) >= assessment.save_time())
}

/// Seconds until the machine is critical, at the present rate.
fn time_left(assessment: &Assessment) -> f64 {
    let left = assessment.available() - assessment.reserve() / 4.0;
    // Without a fall the time is unlimited.
    left / assessment.signals.available_fall.max(f64::MIN_POSITIVE)
}

/// Whether the next request may be the one that is refused. A trainer that cannot survive that is ended earlier.
pub(super) fn is_last_call(assessment: &Assessment) -> bool {
    if assessment.config.dies_at_wall {
        return false;
    }
    let soon = assessment.forecast.is_some_and(|forecast| {
        forecast.confidence >= MIN_CONFIDENCE && forecast.time.as_secs_f64() <= LAST_CALL_S
    });
    assessment.grows_beyond_wall()
        || (assessment.signals.growing && assessment.signals.tree_grew && soon)
}

/// Whether the tree has taken another tenth of the total since then.
fn grew_since(assessment: &Assessment, at: u64) -> bool {
    let then = assessment
        .history
        .iter()
        .find(|input| input.at >= at)
        .unwrap_or(assessment.now);
    assessment.now.footprint.saturating_sub(then.footprint) as f64 > assessment.total() / 10.0
}
