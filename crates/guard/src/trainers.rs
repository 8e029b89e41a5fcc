//! Reads what training processes report in the page, and sends them requests through it.

use crate::hands::save::catches;
use crate::process_state::ProcessState;
use antifreeze_ipc::page::{HEARS, SHOWS_STACKS, Trainer};
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::tree::ProcessTree;
use antifreeze_sense::{Phase, Pid, Reading, Reason, Sample};
use rustix::process::Signal;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Sent only to a process that has a handler for it (see python/antifreeze/_shim/trainer.py).
pub const INTERRUPT_SIGNAL: Signal = Signal::URG;

/// The longest save that is believed, whatever the page says: a guard waits three times this long for the next one.
pub const LONGEST_SAVE_MS: u64 = 600_000;

/// The result of a save that all trainers were asked for.
pub enum Answer {
    /// Duration of the slowest, in milliseconds.
    Saved(u64),
    Failed,
}

/// The trainer that has made the most steps.
fn furthest_trainer(shared: Shared) -> Option<&'static Trainer> {
    shared
        .trainers()
        .map(|(_, trainer)| trainer)
        .max_by_key(|trainer| trainer.steps.load(Relaxed))
}

/// Steps of the trainer that has made the most.
pub fn steps(shared: Shared) -> u64 {
    furthest_trainer(shared).map_or(0, |trainer| trainer.steps.load(Relaxed))
}

/// Copies what the trainers report into a sample.
pub fn read(shared: Shared, sample: &mut Sample) {
    let tree = &mut sample.tree;
    let Some(trainer) = furthest_trainer(shared) else {
        let none = Reading::Unavailable(Reason::Absent);
        (tree.steps, tree.phase, tree.batch) = (none, none, none);
        return;
    };
    tree.steps = Reading::Value(trainer.steps.load(Relaxed));
    tree.phase = Reading::Value(trainer.phase.load(Relaxed).into());
    tree.batch = match trainer.batch.load(Relaxed) {
        0 => Reading::Unavailable(Reason::Absent),
        items => Reading::Value(items.into()),
    };
}

/// Publishes the rung to all trainers: when memory is short they record what holds it.
pub fn publish_rung(shared: Shared, rung: u32) {
    for (_, trainer) in shared.trainers() {
        trainer.rung.store(rung, Relaxed);
    }
}

/// Asks all trainers to save at the end of their step. Returns the first of them, if any.
pub fn ask_to_save(shared: Shared) -> Option<Pid> {
    let mut first = None;
    for (pid, trainer) in shared.trainers() {
        if trainer.steps.load(Relaxed) > 0 {
            trainer.save_asked.fetch_add(1, Release);
            first = first.or(Some(pid));
        }
    }
    first
}

/// None while a trainer that was asked has not answered.
pub fn save_answer(shared: Shared) -> Option<Answer> {
    let (mut slowest, mut failed) = (0, false);
    for (_, trainer) in shared.trainers() {
        let asked = trainer.save_asked.load(Acquire);
        if asked != trainer.save_answered.load(Acquire) {
            return None;
        }
        let millis = u64::from(trainer.save_ms.load(Relaxed));
        slowest = slowest.max(millis.min(LONGEST_SAVE_MS));
        failed |= asked != 0 && trainer.save_failed.load(Relaxed) == asked;
    }
    Some(match failed {
        true => Answer::Failed,
        false => Answer::Saved(slowest),
    })
}

/// Asks trainers without known steps to record what holds the memory.
pub fn ask_for_memory_report(shared: Shared, tree: &ProcessTree<ProcessState>) {
    for (pid, trainer) in shared.trainers() {
        if trainer.steps.load(Relaxed) == 0 && has_interrupt_handler(trainer) {
            trainer.look_asked.fetch_add(1, Release);
            let _ = tree.send_signal(pid, INTERRUPT_SIGNAL);
        }
    }
}

/// Asks trainers to end at the end of their step; false if none is known to make steps.
pub fn ask_to_stop(shared: Shared) -> bool {
    let mut asked = false;
    for (_, trainer) in shared.trainers() {
        if trainer.steps.load(Relaxed) > 0 {
            if trainer.stop_asked.load(Relaxed) == trainer.stop_answered.load(Acquire) {
                trainer.stop_asked.fetch_add(1, Release);
            }
            asked = true;
        }
    }
    asked
}

/// Asks every trainer with a handler to end at once. False if there is none.
pub fn interrupt(shared: Shared, tree: &ProcessTree<ProcessState>) -> bool {
    let mut is_heard = false;
    for (pid, trainer) in shared
        .trainers()
        .filter(|(_, trainer)| has_interrupt_handler(trainer))
    {
        if trainer.stop_asked.load(Relaxed) == trainer.stop_answered.load(Acquire) {
            trainer.stop_asked.fetch_add(1, Release);
        }
        is_heard |= tree.send_signal(pid, INTERRUPT_SIGNAL).is_ok();
    }
    is_heard
}

/// Withdraws all stop requests.
pub fn withdraw_stop_requests(shared: Shared) {
    for (_, trainer) in shared.trainers() {
        trainer
            .stop_asked
            .store(trainer.stop_answered.load(Acquire), Release);
    }
}

/// Interrupts the step of trainers that were asked to end.
pub fn interrupt_steps(shared: Shared, tree: &ProcessTree<ProcessState>) {
    for (pid, trainer) in shared.trainers() {
        let is_asked = trainer.stop_asked.load(Relaxed) != trainer.stop_answered.load(Acquire);
        if is_asked && has_interrupt_handler(trainer) {
            let _ = tree.send_signal(pid, INTERRUPT_SIGNAL);
        }
    }
}

/// Asks trainers to write their stacks. The signal ends a process without a handler, so the page is not trusted for
/// that.
pub fn ask_for_stacks(shared: Shared, tree: &ProcessTree<ProcessState>) {
    for (pid, _) in shared
        .trainers()
        .filter(|(_, trainer)| shows_stacks(trainer))
    {
        if tree.get(pid).is_some() && catches(pid, stacks_signal()) {
            let _ = tree.send_signal(pid, stacks_signal());
        }
    }
}

fn shows_stacks(trainer: &Trainer) -> bool {
    trainer.listens.load(Acquire) & SHOWS_STACKS != 0
}

/// See python/antifreeze/_shim/stacks.py.
fn stacks_signal() -> Signal {
    // SAFETY: a real-time signal that no C library keeps for itself: the first that is free is 34.
    unsafe { Signal::from_raw_unchecked(34 + 9) }
}

fn has_interrupt_handler(trainer: &Trainer) -> bool {
    trainer.listens.load(Acquire) & HEARS != 0
}

/// Whether a trainer is saving, which must not be cut short.
pub fn is_saving(shared: Shared) -> bool {
    is_in_phase(shared, Phase::Saving)
}

/// Whether a trainer is in a phase that makes no steps.
pub fn makes_no_steps(shared: Shared) -> bool {
    is_in_phase(shared, Phase::Saving) || is_in_phase(shared, Phase::Evaluation)
}

fn is_in_phase(shared: Shared, phase: Phase) -> bool {
    shared
        .trainers()
        .any(|(_, trainer)| trainer.phase.load(Relaxed) == phase as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with two trainers: one has made steps, the other none.
    fn scene() -> (Shared, &'static Trainer, &'static Trainer) {
        let (shared, _) = Shared::create().unwrap();
        let [stepping, waiting, ..] = &shared.page().trainers;
        stepping.pid.store(7, Release);
        stepping.steps.store(3, Release);
        waiting.pid.store(8, Release);
        (shared, stepping, waiting)
    }

    #[test]
    fn who_is_furthest_is_in_the_sample() {
        let (shared, stepping, _) = scene();
        stepping.phase.store(Phase::Backward as u32, Release);
        let mut sample = Sample::default();
        read(shared, &mut sample);
        assert_eq!(sample.tree.steps, Reading::Value(3));
        assert_eq!(sample.tree.phase, Reading::Value(Phase::Backward as u64));
        assert_eq!(sample.tree.batch, Reading::Unavailable(Reason::Absent));
    }

    #[test]
    fn a_save_is_asked_of_those_that_step_and_is_there_when_they_have_answered() {
        let (shared, stepping, waiting) = scene();
        assert_eq!(ask_to_save(shared), Some(Pid(7)));
        assert_eq!(waiting.save_asked.load(Relaxed), 0);
        assert!(save_answer(shared).is_none());
        stepping.save_ms.store(250, Release);
        stepping.save_answered.store(1, Release);
        assert!(matches!(save_answer(shared), Some(Answer::Saved(250))));
        stepping.save_failed.store(1, Release);
        assert!(matches!(save_answer(shared), Some(Answer::Failed)));
    }

    #[test]
    fn an_end_is_asked_for_once_until_it_is_answered() {
        let (shared, stepping, _) = scene();
        assert!(ask_to_stop(shared) && ask_to_stop(shared));
        assert_eq!(stepping.stop_asked.load(Relaxed), 1);
        // It was answered but ignored, so it is asked again.
        stepping.stop_answered.store(1, Release);
        assert!(ask_to_stop(shared));
        assert_eq!(stepping.stop_asked.load(Relaxed), 2);
    }

    #[test]
    fn a_slot_of_one_that_is_gone_is_free_again() {
        let (shared, stepping, waiting) = scene();
        shared.free_slots(|pid| pid != 7);
        assert_eq!(stepping.pid.load(Relaxed), 0);
        assert_eq!(stepping.steps.load(Relaxed), 0);
        assert_eq!(waiting.pid.load(Relaxed), 8);
        assert!(!ask_to_stop(shared));
    }
}
