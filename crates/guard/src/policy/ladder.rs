//! The ladder: computes which rung is due from the history.
//!
//! Moving up is immediate. Moving down takes at least two seconds, and signals that stay clearly below their
//! thresholds, so that no warning is repeated. A stop is never taken back, except after an interruption.
//! [`Rung::Checkpoint`] means that a save is wanted or under way: the executor asks for one if none is.

use super::assessment::{Assessment, Verdict};
use super::history::{Config, Decision, History, Motion};
use super::rungs::{self, Heights, broken_why};
use super::{ending, pause, save};
use super::{pace, pageout};
use antifreeze_record::event::{Rung, Trigger};

/// Seconds for which a rung is kept at least. The brake is kept longer, because each change is felt.
const MIN_RUNG_S: f64 = 2.0;
const MIN_BRAKE_S: f64 = 10.0;

/// Decides what to do now.
pub fn decide(history: &History, config: &Config) -> Decision {
    let Some(assessment) = Assessment::new(history, config) else {
        return Decision {
            pace: pace::FASTEST,
            ..Decision::default()
        };
    };
    let verdict = choose(&assessment);
    Decision {
        rung: verdict.rung,
        trigger: verdict.trigger,
        forecast: assessment.forecast,
        pace: pace::for_rung(&assessment, verdict.rung),
        page_out: verdict.rung == Rung::Pause && pageout::is_wanted(&assessment),
    }
}

fn choose(assessment: &Assessment) -> Verdict {
    let acts = assessment.acts();
    if acts.rung >= Rung::Stop || acts.stop_sent_at.is_some() {
        if let Some(goes_on) = ending::after_interruption(assessment) {
            return goes_on;
        }
        return ending::after_stop(assessment);
    }
    if assessment.now.motion == Motion::StoppedByUser {
        return while_user_holds(assessment);
    }
    if acts.rung == Rung::Pause {
        return pause::go_on(assessment);
    }
    let due = due(assessment);
    if due.rung >= acts.rung {
        return due;
    }
    settle(assessment, due)
}

/// The highest rung that is due, regardless of the present one.
fn due(assessment: &Assessment) -> Verdict {
    if let Some(trigger) = rungs::stop(assessment) {
        let rung = if rungs::stop_can_wait(assessment) {
            Rung::Checkpoint
        } else {
            Rung::Stop
        };
        return Verdict::new(rung, trigger);
    }
    if pause::due(assessment) {
        // A paused trainer cannot save.
        let rung = if save::comes_first(assessment) {
            Rung::Checkpoint
        } else {
            Rung::Pause
        };
        return Verdict::new(rung, Trigger::OthersGrew);
    }
    rungs::below_pause(assessment, &Heights::entering(assessment))
}

/// How far to move down from the present rung.
fn settle(assessment: &Assessment, due: Verdict) -> Verdict {
    let present = assessment.acts().rung;
    let saving = save::pending(assessment);
    if present == Rung::Checkpoint && !saving && !save::wanted(assessment) {
        // The save is complete or was missed; keeping the rung would request another.
        return settled(assessment, due, Rung::Brake);
    }
    let kept = if present == Rung::Brake {
        MIN_BRAKE_S
    } else {
        MIN_RUNG_S
    };
    if (present == Rung::Checkpoint && saving) || assessment.age(assessment.acts().since) < kept {
        return Verdict::new(present, due.trigger);
    }
    settled(assessment, due, present)
}

fn settled(assessment: &Assessment, due: Verdict, most: Rung) -> Verdict {
    let staying = rungs::below_pause(assessment, &Heights::staying(assessment)).at_most(most);
    if staying.rung > due.rung {
        staying
    } else {
        due
    }
}

/// A tree that the user stopped is left alone: it cannot save, does not grow, and must not be continued by us. It is
/// ended only if the machine is lost otherwise and the tree is what fills it.
fn while_user_holds(assessment: &Assessment) -> Verdict {
    let lost = (assessment.signals.most_available as f64) < assessment.reserve() / 8.0;
    if lost && assessment.tree_is_largest() {
        return Verdict::new(Rung::Stop, broken_why(assessment));
    }
    let present = assessment.acts().rung;
    let due = rungs::below_pause(assessment, &Heights::entering(assessment)).at_most(Rung::Warn);
    if due.rung < present && present <= Rung::Warn {
        return settle(assessment, due);
    }
    due
}
