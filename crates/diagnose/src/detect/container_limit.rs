//! # container-limit
//!
//! A container, a job of the cluster or a cgroup may use less memory than the machine has, and that was all.
//!
//! ## How it looks
//!
//! `Killed`, exit code 137, "OOMKilled" in Kubernetes, "Exceeded step memory limit" in Slurm, while `free` shows
//! gigabytes.
//!
//! ## How it is told
//!
//! A limit above the run is below the machine's memory, and less was left below it than on the machine itself
//! when memory was short. Ruled out where there is no such limit.
//!
//! ## What to do
//!
//! More for the container, or less for the run:
//!
//! ```sh
//! docker run --memory=16g …
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Constraint, Kind};
use crate::units;

const REMEDY: &str = "give the container more memory, or the run a smaller batch";

pub(super) fn look(case: &Case<'_>) -> Finding {
    let is_kill = |kind: &Kind| {
        matches!(
            kind,
            Kind::OomKill {
                constraint: Constraint::Cgroup(_),
                ..
            }
        )
    };
    if let Some(incident) = case.incident(is_kill).filter(|_| case.went_wrong()) {
        let found = Found::said(case, 0.85, incident);
        return Finding::Found(found.remedy(REMEDY, None));
    }
    if case.last().is_none() || !case.was_short_of_memory() {
        return Finding::Nothing;
    }
    if limit(case).is_none() {
        let why = "no limit of a container is below the machine's memory";
        return Finding::RuledOut(why.into());
    }
    let Some((limit, left)) = limit(case).filter(|_| is_near(case)) else {
        return Finding::Nothing;
    };
    // What grows without end meets any limit.
    let confidence = if case.fills_up().is_some() { 0.55 } else { 0.7 };
    let summary = format!(
        "{} of the container's {} were left",
        units::bytes(left),
        units::bytes(limit)
    );
    Finding::Found(
        Found::new(case, confidence, summary, "cgroup.limit_available").remedy(
            REMEDY,
            None,
        ),
    )
}

/// A limit below the machine's memory, and what was left below it.
fn limit(case: &Case<'_>) -> Option<(u64, u64)> {
    let cgroup = case.last()?.cgroup;
    let limit = cgroup.limit.value()?;
    let left = cgroup.limit_available.value()?;
    (limit < case.facts.total).then_some((limit, left))
}

/// Nearer than what the machine itself has left.
pub(super) fn is_near(case: &Case<'_>) -> bool {
    let machine = case.last().and_then(|last| last.memory.available.value());
    limit(case).is_some_and(|(limit, left)| {
        left < machine.unwrap_or(u64::MAX)
            && left <= case.facts.reserve.max(limit / 20).saturating_mul(2)
    })
}
