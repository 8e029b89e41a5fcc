//! Words that several sentences are made of.

use crate::facts::Facts;
use antifreeze_record::event::Why;
use antifreeze_sense::{Name, Pid};
use antifreeze_text::{sanitize, units};

/// What drove a decision, as the end of a sentence; None when there is nothing to say.
pub fn reason(why: Why, facts: &Facts) -> Option<String> {
    Some(match why {
        Why::Nothing => return None,
        Why::TreeGrowth => "its memory grows and the room runs out".into(),
        Why::ReserveBroken => {
            format!(
                "less than the {} kept for you is left",
                units::bytes(facts.reserve)
            )
        }
        Why::BudgetExceeded => match facts.budget {
            Some(budget) => format!("it has used up its budget of {}", units::bytes(budget)),
            None => "it has used up its budget".into(),
        },
        Why::CgroupLimit => match facts.container {
            Some(limit) => format!("the container's limit of {} is near", units::bytes(limit)),
            None => "the container's memory limit is near".into(),
        },
        Why::SwapStorm => "the machine swaps as fast as it can and gets little done".into(),
        Why::Stalling => "everything waits for memory".into(),
        Why::OthersGrew => "other programs grew and memory ran short".into(),
        Why::DiskFull => "the disk the run writes to is nearly full".into(),
        Why::ShmFull => "/dev/shm is nearly full".into(),
        Why::Deadline => "it had not ended in time".into(),
        Why::RoomAgain => "there is room again".into(),
        Why::Asked => "you asked for it".into(),
    })
}

/// "python (pid 1234)".
pub fn process(name: Name, pid: Pid) -> String {
    match (name.as_bytes(), pid.0) {
        (b"", pid) => format!("pid {pid}"),
        (name, 0) => sanitize::escape(name),
        (name, pid) => format!("{} (pid {pid})", sanitize::escape(name)),
    }
}
