//! # container-limit
//!
//! A container, cluster job or cgroup has a lower memory limit than the machine, and the run reached it.
//!
//! ## Symptoms
//!
//! `Killed`, exit code 137, "OOMKilled" in Kubernetes, "Exceeded step memory limit" in Slurm, while `free` shows
//! gigabytes.
//!
//! ## How it is detected
//!
//! A limit above the run is below the machine's memory, the run reached it, including what it was refused, and the
//! machine had more. Or the kernel, Slurm or Kubernetes reports a kill for such a limit, in its log or in the output.
//! Ruled out where there is no such limit. Kills of other processes do not count. PIDs in a container differ from those
//! in the machine's log: there a matching name within seconds of the end makes it likely.
//!
//! ## What to do
//!
//! Give the container more memory, or the run less work:
//!
//! ```sh
//! docker run --memory=16g …
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::kernel::attribution::{Attribution, LIKELY_CONFIDENCE};
use crate::kernel::{Constraint, Kind};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::{signal, units};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::ContainerLimit,
    word: "container-limit",
    title: "container memory limit",
    role: Role::ExhaustsMemory,
    lint_rules: &[],
    source: include_str!("container_limit.rs"),
    detect,
};

/// The run reached the limit from this share of it on; other processes in the container use some of it.
const REACHED_SHARE: f64 = 0.85;
const REMEDY: &str = "give the container more memory, or use a smaller batch";

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let is_kill = |kind: &Kind| {
        matches!(
            kind,
            Kind::OomKill {
                constraint: Constraint::Cgroup(_),
                ..
            }
        )
    };
    let mut kills = evidence
        .incidents()
        .rev()
        .filter(|incident| is_kill(&incident.kind));
    let kill = kills.find_map(|incident| {
        let whose = Some(evidence.attribute(incident)).filter(|whose| whose.is_ours())?;
        Some((incident, whose))
    });
    if let Some((incident, whose)) = kill.filter(|_| evidence.went_wrong()) {
        // The run may have continued without the killed process, unless a kill ended it.
        let confidence = match (evidence.signal() == Some(signal::KILL), whose) {
            (true, Attribution::OurRun) => 0.85,
            (true, _) => LIKELY_CONFIDENCE,
            (false, Attribution::OurRun) => 0.5,
            (false, _) => 0.4,
        };
        let found = Found::from_log_line(evidence, confidence, incident);
        return Finding::Found(found.with_remedy(REMEDY, None));
    }
    if let Some(line) = limit_line(evidence).filter(|_| evidence.went_wrong()) {
        let found = Found::new(evidence, 0.9, cut(&line, 160), "");
        return Finding::Found(match line.contains("OOMKilled") {
            true => found.with_remedy(REMEDY, None),
            false => {
                let paste = Some("#SBATCH --mem=64G".into());
                found.with_remedy(
                    "request more memory for the job, or use a smaller batch",
                    paste,
                )
            }
        });
    }
    if evidence.last_sample().is_none() || !evidence.was_short_of_memory() {
        return Finding::Nothing;
    }
    if limit(evidence).is_none() {
        let why = "no container limit is below the machine's memory";
        return Finding::RuledOut(why.into());
    }
    let Some((limit, needed)) = limit(evidence).filter(|_| reached_limit(evidence)) else {
        return Finding::Nothing;
    };
    // A leak reaches any limit.
    let confidence = if evidence.steady_growth().is_some() {
        0.55
    } else {
        0.7
    };
    let summary = format!(
        "it needed {}, and the container's limit is {}",
        units::bytes(needed),
        units::bytes(limit)
    );
    Finding::Found(
        Found::new(evidence, confidence, summary, "cgroup.limit_available")
            .with_remedy(REMEDY, None),
    )
}

/// The line of the output in which a cluster reports the limit.
pub(super) fn limit_line(evidence: &RunEvidence<'_>) -> Option<String> {
    let slurm = evidence.find_line(&[
        "oom_kill event",
        "oom-kill event",
        "Exceeded step memory limit",
        "Exceeded job memory limit",
    ]);
    // PBS and LSF.
    let batch = || {
        let line = evidence.find_line(&["job killed: mem ", "job killed: vmem ", "TERM_MEMLIMIT"]);
        line.filter(|line| line.contains("limit"))
    };
    slurm
        .or_else(batch)
        .or_else(|| evidence.find_line(&["OOMKilled"]))
}

/// The limit, if it is below the machine's memory, and what the run needed, including refused requests.
fn limit(evidence: &RunEvidence<'_>) -> Option<(u64, u64)> {
    let seen = evidence
        .last_sample()
        .and_then(|last| last.cgroup.limit.value());
    let seen = seen.filter(|limit| *limit < evidence.facts.total);
    let limit = evidence.facts.container.or(seen)?;
    let refused = evidence.summary.refusals.largest;
    let asked = refused.map_or(0, |refusal| refusal.footprint.saturating_add(refusal.bytes));
    Some((limit, asked.max(evidence.peak_bytes())))
}

/// Whether the run reached the limit while the machine had more memory.
pub(super) fn reached_limit(evidence: &RunEvidence<'_>) -> bool {
    let first = evidence
        .first_sample()
        .and_then(|first| first.memory.available.value());
    limit(evidence).is_some_and(|(limit, needed)| {
        let left = evidence
            .last_sample()
            .and_then(|last| last.cgroup.limit_available.value());
        let machine = evidence
            .last_sample()
            .and_then(|last| last.memory.available.value());
        let left = left.filter(|left| *left < machine.unwrap_or(u64::MAX));
        let is_low = left
            .is_some_and(|left| left <= evidence.facts.reserve.max(limit / 20).saturating_mul(2));
        let comes_to_it = needed as f64 >= limit as f64 * REACHED_SHARE;
        (is_low || comes_to_it) && first.is_none_or(|free| free > needed.max(limit))
    })
}
