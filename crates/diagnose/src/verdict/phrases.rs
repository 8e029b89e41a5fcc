//! Phrases that several messages share.

use crate::run::facts::Facts;
use antifreeze_record::event::Trigger;
use antifreeze_sense::{Pid, ProcessName};
use antifreeze_text::{sanitize, units};

/// The reason for a decision of the guard, as the end of a sentence; None where there is none.
pub fn reason(trigger: Trigger, facts: &Facts) -> Option<String> {
    Some(match trigger {
        Trigger::Unspecified => return None,
        Trigger::TreeGrowth => "its memory is growing and will run out".into(),
        Trigger::ReserveBroken => {
            format!(
                "less than the reserve of {} is free",
                units::bytes(facts.reserve)
            )
        }
        Trigger::BudgetExceeded => match facts.budget {
            Some(budget) => format!("it has used up its budget of {}", units::bytes(budget)),
            None => "it has used up its budget".into(),
        },
        Trigger::CgroupLimit => match facts.container {
            Some(limit) => format!(
                "it is near the container's limit of {}",
                units::bytes(limit)
            ),
            None => "it is near the container's memory limit".into(),
        },
        Trigger::SwapStorm => "the machine is thrashing swap".into(),
        Trigger::Stalling => "everything is waiting for memory".into(),
        Trigger::OthersGrew => "other programs grew and memory ran short".into(),
        Trigger::DiskFull => "the disk that the run writes to is nearly full".into(),
        Trigger::ShmFull => "/dev/shm is nearly full".into(),
        Trigger::Deadline => "it did not end in time".into(),
        Trigger::RoomAvailable => "there is enough memory again".into(),
        Trigger::UserRequest => "you asked for it".into(),
    })
}

/// A process by name and PID: "python (pid 1234)".
pub fn process(name: ProcessName, pid: Pid) -> String {
    match (name.as_bytes(), pid.0) {
        (b"", pid) => format!("pid {pid}"),
        (name, 0) => sanitize::escape(name),
        (name, pid) => format!("{} (pid {pid})", sanitize::escape(name)),
    }
}
