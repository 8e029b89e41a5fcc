//! Decides whether to restart a run that was ended: whether it would continue from a checkpoint and get further.

use crate::run::facts::Facts;
use crate::verdict::{EndKind, Verdict};
use antifreeze_text::signal;

/// Whether to restart a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// The run continues from this checkpoint.
    FromCheckpoint(String),
    /// A restart would end in the same way, for this reason.
    Useless(&'static str),
    /// The run was not ended because memory ran out.
    NotApplicable,
}

impl RestartDecision {
    /// Decides whether to restart a run.
    pub fn decide(verdict: &Verdict, facts: &Facts) -> RestartDecision {
        let was_ended = match verdict.end.kind {
            EndKind::Stopped | EndKind::OomKilled | EndKind::Walled => true,
            EndKind::Killed => verdict.end.signal == Some(signal::KILL),
            _ => false,
        };
        if !was_ended {
            return RestartDecision::NotApplicable;
        }
        let Some(began) = facts.shim.resumes else {
            return RestartDecision::Useless(
                "the script does not call antifreeze.resume(), so it would begin at step 0 and end in the same way",
            );
        };
        let Some(continuation) = facts.continuation() else {
            return RestartDecision::Useless(if facts.checkpoints.is_empty() {
                "no checkpoint was saved"
            } else {
                "the checkpoint is not of a kind that the script loads"
            });
        };
        let checkpoint = continuation.checkpoint;
        if checkpoint.step <= began {
            return RestartDecision::Useless("it made no progress since its last start");
        }
        RestartDecision::FromCheckpoint(checkpoint.path.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::checkpoints::{Checkpoint, Kind};
    use crate::run::summary::RunSummary;
    use crate::shim::ShimReport;
    use std::time::SystemTime;

    fn verdict(kind: EndKind) -> Verdict {
        let mut verdict = Verdict::reach(&Facts::default(), &RunSummary::default());
        verdict.end.kind = kind;
        verdict
    }

    fn facts(resumes: Option<u64>, saved: Option<u64>) -> Facts {
        let checkpoint = |step| Checkpoint {
            kind: Kind::Torch,
            step,
            path: "step.pt".into(),
            bytes: None,
            written: SystemTime::UNIX_EPOCH,
        };
        Facts {
            shim: ShimReport {
                resumes,
                accepted_kinds: vec![Kind::Torch],
                ..ShimReport::default()
            },
            checkpoints: saved.map(checkpoint).into_iter().collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn only_a_run_that_made_progress_is_restarted() {
        let restart =
            |kind, resumes, saved| RestartDecision::decide(&verdict(kind), &facts(resumes, saved));
        let from = RestartDecision::FromCheckpoint("step.pt".into());
        assert_eq!(restart(EndKind::Stopped, Some(0), Some(9)), from);
        assert_eq!(restart(EndKind::Walled, Some(4), Some(9)), from);
        for (resumes, saved) in [(None, Some(9)), (Some(0), None), (Some(9), Some(9))] {
            let restart = restart(EndKind::OomKilled, resumes, saved);
            assert!(
                matches!(restart, RestartDecision::Useless(_)),
                "{restart:?}"
            );
        }
    }

    #[test]
    fn a_run_that_failed_or_was_ended_by_a_person_is_not_restarted() {
        for kind in [EndKind::Finished, EndKind::Exception, EndKind::Crashed] {
            assert_eq!(
                RestartDecision::decide(&verdict(kind), &facts(Some(0), Some(9))),
                RestartDecision::NotApplicable
            );
        }
        let mut ended = verdict(EndKind::Killed);
        for (signal, is_restarted) in [(signal::TERMINATE, false), (signal::KILL, true)] {
            ended.end.signal = Some(signal);
            let restart = RestartDecision::decide(&ended, &facts(Some(0), Some(9)));
            assert_eq!(
                restart != RestartDecision::NotApplicable,
                is_restarted,
                "{signal}"
            );
        }
    }

    #[test]
    fn a_checkpoint_of_another_kind_is_no_reason_to_restart() {
        let mut facts = facts(Some(0), Some(9));
        facts.shim.accepted_kinds = vec![Kind::Lightning];
        let restart = RestartDecision::decide(&verdict(EndKind::Walled), &facts);
        assert!(matches!(restart, RestartDecision::Useless(why) if why.contains("kind")));
    }
}
