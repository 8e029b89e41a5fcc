//! Whether a save is under way, wanted, or no longer possible.

use super::Bound;
use super::history::Save;
use super::rungs::DECENT;
use super::scene::Scene;

/// Seconds between two saves, however quick they are; and when much has come since the last.
const AGAIN: f64 = 60.0;
const SOON: f64 = 15.0;
/// Seconds from the wall at which a save is the last that can be had,
const LAST_CALL: f64 = 2.0;
/// and for which it counts as such.
const FRESH: f64 = 3.0;

/// A save that was asked for and may still come.
pub(super) fn pending(scene: &Scene) -> bool {
    match scene.acts().save {
        Save::Asked { at } => scene.age(at) <= (3.0 * scene.save_time()).max(10.0),
        Save::None | Save::Done { .. } | Save::Missed { .. } => false,
    }
}

/// A save would help: there is none, or the last one is old or far behind.
pub(super) fn wanted(scene: &Scene) -> bool {
    let long_ago = |at| scene.age(at) > (10.0 * scene.save_time()).max(AGAIN);
    scene.config.can_save
        && match scene.acts().save {
            Save::None => true,
            Save::Asked { .. } => false,
            Save::Done { at } => {
                long_ago(at)
                    || (scene.age(at) > SOON && grew_since(scene, at))
                    || (scene.age(at) > FRESH && is_last_call(scene))
            }
            Save::Missed { at } => long_ago(at),
        }
}

/// The run is saved and goes on growing beyond the wall, bit by bit, out of what is kept for
/// small requests. The next refusal would fall on any line, where nobody catches it; to end
/// now loses nothing.
pub(super) fn is_all_there_is_to_do(scene: &Scene) -> bool {
    let refused_lately = scene
        .acts()
        .walled_at
        .is_some_and(|at| scene.age(at) < FRESH);
    // The wall of a budget stands a little later until the scout has seen which data are files: the next large request
    // meets it. Half of what is kept for small ones is still there.
    let later = match scene.now.bound {
        Bound::Budget => scene.now.kept_back as f64 / 2.0,
        Bound::Machine | Bound::Cgroup => 0.0,
    };
    matches!(scene.acts().save, Save::Done { at } if scene.age(at) <= FRESH)
        && scene.grows_beyond_wall()
        && scene.room() < -later
        && !refused_lately
}

/// Whether to let a save come before the tree is paused or ended.
pub(super) fn comes_first(scene: &Scene) -> bool {
    if scene.critical() {
        return false;
    }
    pending(scene) || (wanted(scene) && time_left(scene) >= scene.save_time())
}

/// Seconds until the machine is critical, at the present fall.
fn time_left(scene: &Scene) -> f64 {
    let left = scene.available() - scene.reserve() / 4.0;
    // No fall leaves all the time there is.
    left / scene.signals.available_fall.max(f64::MIN_POSITIVE)
}

/// The next request may be the one that is refused. Who cannot survive that is ended before.
pub(super) fn is_last_call(scene: &Scene) -> bool {
    if scene.config.dies_at_wall {
        return false;
    }
    let soon = scene.forecast.is_some_and(|forecast| {
        forecast.confidence >= DECENT && forecast.time.as_secs_f64() <= LAST_CALL
    });
    scene.grows_beyond_wall() || (scene.signals.growing && scene.signals.tree_grew && soon)
}

/// Another tenth of the total was taken since.
fn grew_since(scene: &Scene, at: u64) -> bool {
    let then = scene
        .history
        .iter()
        .find(|moment| moment.at >= at)
        .unwrap_or(scene.now);
    scene.now.footprint.saturating_sub(then.footprint) as f64 > scene.total() / 10.0
}
