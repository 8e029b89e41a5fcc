//! The ladder: one pure function from what was seen and done to the rung that is due.
//!
//! Up is immediate. Down takes at least two seconds and signals that stay clearly below
//! where they rose, so that nobody is told the same twice. From stop there is no way down, but
//! for what was only interrupted.
//! While the answer is [`Rung::Checkpoint`] a save is wanted or under way: whoever sees it
//! and has no save under way asks for one.

use super::history::{Config, Decision, History, Motion};
use super::rungs::{self, Heights, broken_why};
use super::scene::{Scene, Verdict};
use super::{ending, pause, save};
use super::{pace, pageout};
use antifreeze_record::event::{Rung, Trigger};

/// Seconds a rung is kept at least; and the brake, which is felt each time it changes.
const KEPT: f64 = 2.0;
const BRAKE_KEPT: f64 = 10.0;

/// What should be done now.
pub fn decide(history: &History, config: &Config) -> Decision {
    let Some(scene) = Scene::of(history, config) else {
        return Decision {
            pace: pace::FASTEST,
            ..Decision::default()
        };
    };
    let verdict = choose(&scene);
    Decision {
        rung: verdict.rung,
        trigger: verdict.trigger,
        forecast: scene.forecast,
        pace: pace::of(&scene, verdict.rung),
        page_out: verdict.rung == Rung::Pause && pageout::is_wanted(&scene),
    }
}

fn choose(scene: &Scene) -> Verdict {
    let acts = scene.acts();
    if acts.rung >= Rung::Stop || acts.stop_sent_at.is_some() {
        if let Some(goes_on) = ending::after_interruption(scene) {
            return goes_on;
        }
        return ending::after_stop(scene);
    }
    if scene.now.motion == Motion::StoppedByUser {
        return while_user_holds(scene);
    }
    if acts.rung == Rung::Pause {
        return pause::go_on(scene);
    }
    let due = due(scene);
    if due.rung >= acts.rung {
        return due;
    }
    settle(scene, due)
}

/// The highest rung that is due, were there nothing before it.
fn due(scene: &Scene) -> Verdict {
    if let Some(trigger) = rungs::stop(scene) {
        let rung = if rungs::stop_can_wait(scene) {
            Rung::Checkpoint
        } else {
            Rung::Stop
        };
        return Verdict::new(rung, trigger);
    }
    if pause::due(scene) {
        // A paused trainer cannot save.
        let rung = if save::comes_first(scene) {
            Rung::Checkpoint
        } else {
            Rung::Pause
        };
        return Verdict::new(rung, Trigger::OthersGrew);
    }
    rungs::below_pause(scene, &Heights::entering(scene))
}

/// How far down from the present rung.
fn settle(scene: &Scene, due: Verdict) -> Verdict {
    let present = scene.acts().rung;
    let saving = save::pending(scene);
    if present == Rung::Checkpoint && !saving && !save::wanted(scene) {
        // The save is done or was missed; keeping the rung would ask for another.
        return settled(scene, due, Rung::Brake);
    }
    let kept = if present == Rung::Brake {
        BRAKE_KEPT
    } else {
        KEPT
    };
    if (present == Rung::Checkpoint && saving) || scene.age(scene.acts().since) < kept {
        return Verdict::new(present, due.trigger);
    }
    settled(scene, due, present)
}

fn settled(scene: &Scene, due: Verdict, most: Rung) -> Verdict {
    let staying = rungs::below_pause(scene, &Heights::staying(scene)).at_most(most);
    if staying.rung > due.rung {
        staying
    } else {
        due
    }
}

/// What the user stopped is left alone: it cannot save, does not grow, and is not ours to
/// continue. Only when the machine is lost otherwise, and it is what fills it, is it ended.
fn while_user_holds(scene: &Scene) -> Verdict {
    let lost = (scene.signals.most_available as f64) < scene.reserve() / 8.0;
    if lost && scene.tree_is_largest() {
        return Verdict::new(Rung::Stop, broken_why(scene));
    }
    let present = scene.acts().rung;
    let due = rungs::below_pause(scene, &Heights::entering(scene)).at_most(Rung::Warn);
    if due.rung < present && present <= Rung::Warn {
        return settle(scene, due);
    }
    due
}
