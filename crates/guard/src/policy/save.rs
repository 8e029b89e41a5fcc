//! Whether a save is under way, wanted, or no longer possible.

use super::history::{Moment, Save};
use super::scene::Scene;

/// Seconds between two saves, however quick they are; and when much has come since the last.
const AGAIN: f64 = 60.0;
const SOON: f64 = 15.0;
/// A save beyond the wall counts for so long.
const LAST_CALL: f64 = 3.0;

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
                    || (scene.beyond_wall() && !made_beyond_wall(scene, at))
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
        .is_some_and(|at| scene.age(at) < LAST_CALL);
    matches!(scene.acts().save, Save::Done { at } if made_beyond_wall(scene, at))
        && scene.beyond_wall()
        && scene.signals.growing
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

/// Another tenth of the total was taken since.
fn grew_since(scene: &Scene, at: u64) -> bool {
    let then = moment_of(scene, at).footprint;
    scene.now.footprint.saturating_sub(then) as f64 > scene.total() / 10.0
}

/// Made lately, when the room was gone already.
fn made_beyond_wall(scene: &Scene, at: u64) -> bool {
    scene.age(at) <= LAST_CALL && moment_of(scene, at).room < 0
}

fn moment_of<'a>(scene: &Scene<'a>, at: u64) -> &'a Moment {
    scene
        .history
        .iter()
        .find(|moment| moment.at >= at)
        .unwrap_or(scene.now)
}
