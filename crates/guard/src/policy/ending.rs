//! From stop to kill. Nothing leads back.

use super::history::Bound;
use super::rungs::broken_why;
use super::scene::{Scene, Verdict};
use antifreeze_record::event::{Rung, Why};

/// Seconds a stop has before a further fall counts.
const GRACE: f64 = 1.0;

/// What follows a stop: patience until the deadline, less when memory goes on falling.
pub(super) fn after_stop(scene: &Scene) -> Verdict {
    let acts = scene.acts();
    let Some(stop_sent_at) = acts.stop_sent_at else {
        return Verdict::new(Rung::Stop, broken_why(scene));
    };
    let waited = scene.age(stop_sent_at);
    if acts.kill_sent_at.is_some() || waited > scene.config.stop_deadline.as_secs_f64() {
        return Verdict::new(Rung::Kill, Why::Deadline);
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
        let why = match scene.now.bound {
            Bound::Budget => Why::BudgetExceeded,
            Bound::Machine | Bound::Cgroup => broken_why(scene),
        };
        return Verdict::new(Rung::Kill, why);
    }
    Verdict::new(Rung::Stop, broken_why(scene))
}
