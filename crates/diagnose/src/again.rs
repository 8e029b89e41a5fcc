//! Whether a run that was ended can be started again, and would get further than before.

use crate::facts::Facts;
use crate::verdict::{EndKind, Verdict};
use antifreeze_text::signal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It continues from this checkpoint.
    From(String),
    /// It would meet the same end; why.
    InVain(&'static str),
    /// It was not ended for want of memory.
    No,
}

impl Again {
    pub fn of(verdict: &Verdict, facts: &Facts) -> Again {
        let was_ended = match verdict.end.kind {
            EndKind::Stopped | EndKind::OomKilled | EndKind::Walled => true,
            EndKind::Killed => verdict.end.signal == Some(signal::KILL),
            _ => false,
        };
        if !was_ended {
            return Again::No;
        }
        let Some(began) = facts.told.resumes else {
            return Again::InVain(
                "the script does not call antifreeze.resume(), so it would begin at step 0 and meet the same end",
            );
        };
        let Some(continuation) = facts.continuation() else {
            return Again::InVain(if facts.checkpoints.is_empty() {
                "no checkpoint was saved"
            } else {
                "the checkpoint is not of a kind that the script loads"
            });
        };
        let checkpoint = continuation.checkpoint;
        if checkpoint.step <= began {
            return Again::InVain("it came no further than it was when it began");
        }
        Again::From(checkpoint.path.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints::{Checkpoint, Kind};
    use crate::shim::Told;
    use crate::story::Story;
    use std::time::SystemTime;

    fn verdict(kind: EndKind) -> Verdict {
        let mut verdict = Verdict::reach(&Facts::default(), &Story::default());
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
            told: Told {
                resumes,
                accepted_kinds: vec![Kind::Torch],
                ..Told::default()
            },
            checkpoints: saved.map(checkpoint).into_iter().collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn only_what_goes_on_from_further_on_is_started_again() {
        let again = |kind, resumes, saved| Again::of(&verdict(kind), &facts(resumes, saved));
        let from = Again::From("step.pt".into());
        assert_eq!(again(EndKind::Stopped, Some(0), Some(9)), from);
        assert_eq!(again(EndKind::Walled, Some(4), Some(9)), from);
        for (resumes, saved) in [(None, Some(9)), (Some(0), None), (Some(9), Some(9))] {
            let again = again(EndKind::OomKilled, resumes, saved);
            assert!(matches!(again, Again::InVain(_)), "{again:?}");
        }
    }

    #[test]
    fn what_failed_by_itself_or_was_ended_by_a_person_is_not() {
        for kind in [EndKind::Finished, EndKind::Exception, EndKind::Crashed] {
            assert_eq!(
                Again::of(&verdict(kind), &facts(Some(0), Some(9))),
                Again::No
            );
        }
        let mut ended = verdict(EndKind::Killed);
        for (signal, is_again) in [(signal::TERMINATE, false), (signal::KILL, true)] {
            ended.end.signal = Some(signal);
            let again = Again::of(&ended, &facts(Some(0), Some(9)));
            assert_eq!(again != Again::No, is_again, "{signal}");
        }
    }

    #[test]
    fn a_checkpoint_of_another_kind_is_no_reason_to_start_again() {
        let mut facts = facts(Some(0), Some(9));
        facts.told.accepted_kinds = vec![Kind::Lightning];
        let again = Again::of(&verdict(EndKind::Walled), &facts);
        assert!(matches!(again, Again::InVain(why) if why.contains("kind")));
    }
}
