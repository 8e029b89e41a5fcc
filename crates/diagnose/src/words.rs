//! Words that several sentences are made of.

use crate::facts::Facts;
use antifreeze_record::event::Trigger;
use antifreeze_sense::{Pid, ProcessName};
use antifreeze_text::{sanitize, units};

/// What drove a decision, as the end of a sentence; None when there is nothing to say.
pub fn reason(trigger: Trigger, facts: &Facts) -> Option<String> {
    Some(match trigger {
        Trigger::Unspecified => return None,
        Trigger::TreeGrowth => "its memory grows and the room runs out".into(),
        Trigger::ReserveBroken => {
            format!(
                "less than the {} kept for you is left",
                units::bytes(facts.reserve)
            )
        }
        Trigger::BudgetExceeded => match facts.budget {
            Some(budget) => format!("it has used up its budget of {}", units::bytes(budget)),
            None => "it has used up its budget".into(),
        },
        Trigger::CgroupLimit => match facts.container {
            Some(limit) => format!("the container's limit of {} is near", units::bytes(limit)),
            None => "the container's memory limit is near".into(),
        },
        Trigger::SwapStorm => "the machine swaps as fast as it can and gets little done".into(),
        Trigger::Stalling => "everything waits for memory".into(),
        Trigger::OthersGrew => "other programs grew and memory ran short".into(),
        Trigger::DiskFull => "the disk the run writes to is nearly full".into(),
        Trigger::ShmFull => "/dev/shm is nearly full".into(),
        Trigger::Deadline => "it had not ended in time".into(),
        Trigger::RoomAvailable => "there is room again".into(),
        Trigger::UserRequest => "you asked for it".into(),
    })
}

/// "python (pid 1234)".
pub fn process(name: ProcessName, pid: Pid) -> String {
    match (name.as_bytes(), pid.0) {
        (b"", pid) => format!("pid {pid}"),
        (name, 0) => sanitize::escape(name),
        (name, pid) => format!("{} (pid {pid})", sanitize::escape(name)),
    }
}
