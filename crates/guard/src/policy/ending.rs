//! From stop to kill. Only a process that outlives its interruption returns to a lower rung.

use super::assessment::{Assessment, Verdict};
use super::history::Bound;
use super::rungs::{self, Heights, broken_why};
use antifreeze_record::event::{Rung, Trigger};

/// Seconds after a stop during which a further fall does not count.
const GRACE_S: f64 = 1.0;
/// Seconds after which an interrupted process may continue, if memory suffices.
const INTERRUPTED_S: f64 = 2.0;

/// An attached process is interrupted, and guarded on once that has helped. It is not killed for a budget, which
/// protects nothing else.
pub(super) fn after_interruption(assessment: &Assessment) -> Option<Verdict> {
    let acts = assessment.acts();
    let sent = acts.stop_sent_at.filter(|_| assessment.config.attached)?;
    if assessment.age(sent) < INTERRUPTED_S {
        return None;
    }
    match rungs::stop(assessment) {
        None => Some(rungs::below_pause(
            assessment,
            &Heights::entering(assessment),
        )),
        Some(trigger) if assessment.now.bound == Bound::Budget => {
            Some(Verdict::new(Rung::Stop, trigger))
        }
        Some(_) => None,
    }
}

/// What follows a stop: waiting until the deadline, or less if memory continues to fall.
pub(super) fn after_stop(assessment: &Assessment) -> Verdict {
    let acts = assessment.acts();
    let Some(stop_sent_at) = acts.stop_sent_at else {
        return Verdict::new(Rung::Stop, broken_why(assessment));
    };
    let waited = assessment.age(stop_sent_at);
    if acts.kill_sent_at.is_some() || waited > assessment.config.stop_deadline.as_secs_f64() {
        return Verdict::new(Rung::Kill, Trigger::Deadline);
    }
    // A tree that frees memory is ending; another process may cause the fall.
    let fell = assessment.available() < acts.available_at_stop as f64 * 2.0 / 3.0;
    if fell && waited >= GRACE_S && !assessment.signals.shrinking {
        return Verdict::new(Rung::Kill, broken_why(assessment));
    }
    // Swap hides a fall: available memory stays while a tree grows into swap.
    let then = acts.footprint_at_stop.unwrap_or(assessment.now.footprint);
    let grown = assessment.now.footprint.saturating_sub(then) as f64;
    if waited >= GRACE_S && grown > assessment.reserve() / 2.0 && grown > assessment.total() / 50.0
    {
        let trigger = match assessment.now.bound {
            Bound::Budget => Trigger::BudgetExceeded,
            Bound::Machine | Bound::Cgroup => broken_why(assessment),
        };
        return Verdict::new(Rung::Kill, trigger);
    }
    Verdict::new(Rung::Stop, broken_why(assessment))
}
