//! From stop to kill. Nothing leads back, but for a process that outlives what it was at.

use super::history::Bound;
use super::rungs::{self, Heights, broken_why};
use super::scene::{Scene, Verdict};
use antifreeze_record::event::{Rung, Trigger};

/// Seconds a stop has before a further fall counts.
const GRACE: f64 = 1.0;
/// Seconds after which one that was interrupted may go on, if all is well.
const INTERRUPTED: f64 = 2.0;

/// What was attached to is interrupted, and guarded on once that has helped. A budget hurts nobody:
/// it is not killed for one.
pub(super) fn after_interruption(scene: &Scene) -> Option<Verdict> {
    let acts = scene.acts();
    let sent = acts.stop_sent_at.filter(|_| scene.config.attached)?;
    if scene.age(sent) < INTERRUPTED {
        return None;
    }
    match rungs::stop(scene) {
        None => Some(rungs::below_pause(scene, &Heights::entering(scene))),
        Some(trigger) if scene.now.bound == Bound::Budget => {
            Some(Verdict::new(Rung::Stop, trigger))
        }
        Some(_) => None,
    }
}

/// What follows a stop: patience until the deadline, less when memory goes on falling.
pub(super) fn after_stop(scene: &Scene) -> Verdict {
    let acts = scene.acts();
    let Some(stop_sent_at) = acts.stop_sent_at else {
        return Verdict::new(Rung::Stop, broken_why(scene));
    };
    let waited = scene.age(stop_sent_at);
    if acts.kill_sent_at.is_some() || waited > scene.config.stop_deadline.as_secs_f64() {
        return Verdict::new(Rung::Kill, Trigger::Deadline);
    }
    // A tree that gives memory back is ending; somebody else may be what falls.
    let fell = scene.available() < acts.available_at_stop as f64 * 2.0 / 3.0;
    if fell && waited >= GRACE && !scene.signals.shrinking {
        return Verdict::new(Rung::Kill, broken_why(scene));
    }
    // Swap hides a fall: a tree that grows on into it falls nowhere else.
    let then = acts.footprint_at_stop.unwrap_or(scene.now.footprint);
    let grown = scene.now.footprint.saturating_sub(then) as f64;
    if waited >= GRACE && grown > scene.reserve() / 2.0 && grown > scene.total() / 50.0 {
        let trigger = match scene.now.bound {
            Bound::Budget => Trigger::BudgetExceeded,
            Bound::Machine | Bound::Cgroup => broken_why(scene),
        };
        return Verdict::new(Rung::Kill, trigger);
    }
    Verdict::new(Rung::Stop, broken_why(scene))
}
