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
//! A limit above the run is below the machine's memory, the run came to it, with what it was refused, and the machine
//! itself had more; or the kernel, Slurm or Kubernetes says that it killed for such a limit, in its log or where that
//! was put into the output. Ruled out where there is none. That the kernel killed another's process is not told. In a container processes have other numbers than in
//! the machine's log: there a fitting name, in the seconds of the end, makes it likely.
//!
//! ## What to do
//!
//! More for the container, or less for the run:
//!
//! ```sh
//! docker run --memory=16g …
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::{signal, units};
use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Constraint, Kind};
use crate::whose::{LIKELY, Whose};

/// Of the limit: some of it is what others in the container hold.
const NEAR: f64 = 0.85;
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
    let mut kills = case.incidents().rev().filter(|incident| is_kill(&incident.kind));
    let kill = kills.find_map(|incident| {
        let whose = Some(case.whose(incident)).filter(|whose| whose.is_ours())?;
        Some((incident, whose))
    });
    if let Some((incident, whose)) = kill.filter(|_| case.went_wrong()) {
        // It may have gone on without that one, where nobody says that a kill ended it.
        let confidence = match (case.signal() == Some(signal::KILL), whose) {
            (true, Whose::Ours) => 0.85,
            (true, _) => LIKELY,
            (false, Whose::Ours) => 0.5,
            (false, _) => 0.4,
        };
        let found = Found::said(case, confidence, incident);
        return Finding::Found(found.remedy(REMEDY, None));
    }
    if let Some(line) = said(case).filter(|_| case.went_wrong()) {
        let found = Found::new(case, 0.9, cut(&line, 160), "");
        return Finding::Found(match line.contains("OOMKilled") {
            true => found.remedy(REMEDY, None),
            false => {
                let paste = Some("#SBATCH --mem=64G".into());
                found.remedy("ask for more memory, or give the run a smaller batch", paste)
            }
        });
    }
    if case.last().is_none() || !case.was_short_of_memory() {
        return Finding::Nothing;
    }
    if limit(case).is_none() {
        let why = "no limit of a container is below the machine's memory";
        return Finding::RuledOut(why.into());
    }
    let Some((limit, needed)) = limit(case).filter(|_| is_near(case)) else {
        return Finding::Nothing;
    };
    // What grows without end meets any limit.
    let confidence = if case.fills_up().is_some() { 0.55 } else { 0.7 };
    let summary = format!(
        "it came to {}, and the container may have {}",
        units::bytes(needed),
        units::bytes(limit)
    );
    Finding::Found(
        Found::new(case, confidence, summary, "cgroup.limit_available").remedy(
            REMEDY,
            None,
        ),
    )
}

/// A cluster's own words for it, in the output.
pub(super) fn said(case: &Case<'_>) -> Option<String> {
    let slurm = case.line_with(&[
        "oom_kill event",
        "oom-kill event",
        "Exceeded step memory limit",
        "Exceeded job memory limit",
    ]);
    // PBS, and LSF.
    let batch = || {
        let line = case.line_with(&["job killed: mem ", "job killed: vmem ", "TERM_MEMLIMIT"]);
        line.filter(|line| line.contains("limit"))
    };
    slurm.or_else(batch).or_else(|| case.line_with(&["OOMKilled"]))
}

/// A limit below the machine's memory, and how near to it the run came, with what it was refused.
fn limit(case: &Case<'_>) -> Option<(u64, u64)> {
    let seen = case.last().and_then(|last| last.cgroup.limit.value());
    let seen = seen.filter(|limit| *limit < case.facts.total);
    let limit = case.facts.container.or(seen)?;
    let refused = case.story.refusals.largest;
    let asked = refused.map_or(0, |refusal| refusal.footprint.saturating_add(refusal.bytes));
    Some((limit, asked.max(case.peak())))
}

/// It came to the limit, and the machine would have had more.
pub(super) fn is_near(case: &Case<'_>) -> bool {
    let first = case.first().and_then(|first| first.memory.available.value());
    limit(case).is_some_and(|(limit, needed)| {
        let left = case.last().and_then(|last| last.cgroup.limit_available.value());
        let machine = case.last().and_then(|last| last.memory.available.value());
        let left = left.filter(|left| *left < machine.unwrap_or(u64::MAX));
        let is_low = left.is_some_and(|left| left <= case.facts.reserve.max(limit / 20).saturating_mul(2));
        let comes_to_it = needed as f64 >= limit as f64 * NEAR;
        (is_low || comes_to_it) && first.is_none_or(|free| free > needed.max(limit))
    })
}
