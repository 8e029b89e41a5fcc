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
    let Some(last) = case.last().filter(|_| case.was_short_of_memory()) else {
        return Finding::Nothing;
    };
    let limit = last
        .cgroup
        .limit
        .value()
        .filter(|limit| *limit < case.facts.total);
    let Some((limit, left)) = limit.zip(last.cgroup.limit_available.value()) else {
        let why = "no limit of a container is below the machine's memory";
        return Finding::RuledOut(why.into());
    };
    let machine = last.memory.available.value().unwrap_or(u64::MAX);
    let is_near = left <= case.facts.reserve.max(limit / 20).saturating_mul(2);
    if left >= machine || !is_near {
        return Finding::Nothing;
    }
    let summary = format!(
        "{} of the container's {} were left",
        units::bytes(left),
        units::bytes(limit)
    );
    Finding::Found(
        Found::new(case, 0.55, summary, "cgroup.limit_available").remedy(
            REMEDY,
            None,
        ),
    )
}
