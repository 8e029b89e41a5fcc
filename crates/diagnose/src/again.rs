//! Whether a run that was ended can be started again, and would get further than before.

use crate::shim::Told;
use crate::signal;
use crate::verdict::{EndKind, Verdict};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It goes on from this file.
    From(String),
    /// It would meet the same end; why.
    InVain(&'static str),
    /// It was not ended for want of memory.
    No,
}

impl Again {
    pub fn of(verdict: &Verdict, told: &Told) -> Again {
        let was_ended = match verdict.end.kind {
            EndKind::Stopped | EndKind::OomKilled | EndKind::Walled => true,
            EndKind::Killed => verdict.end.signal == Some(signal::KILL),
            _ => false,
        };
        if !was_ended {
            return Again::No;
        }
        let Some(began) = told.resumes else {
            return Again::InVain(
                "the script does not call antifreeze.resume(), so it would begin at step 0 and meet the same end",
            );
        };
        let Some((path, saved)) = told
            .saved
            .as_ref()
            .and_then(|saved| Some((saved.path.clone()?, saved.step)))
        else {
            return Again::InVain("nothing was saved that it could go on from");
        };
        if saved <= began {
            return Again::InVain("it came no further than it was when it began");
        }
        Again::From(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::shim::Saved;
    use crate::story::Story;

    fn verdict(kind: EndKind) -> Verdict {
        let mut verdict = Verdict::reach(&Facts::default(), &Story::default());
        verdict.end.kind = kind;
        verdict
    }

    fn told(resumes: Option<u64>, saved: Option<u64>) -> Told {
        Told {
            resumes,
            saved: saved.map(|step| Saved {
                path: Some("step.pt".into()),
                step,
                bytes: None,
            }),
            ..Told::default()
        }
    }

    #[test]
    fn only_what_goes_on_from_further_on_is_started_again() {
        let again = |kind, resumes, saved| Again::of(&verdict(kind), &told(resumes, saved));
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
                Again::of(&verdict(kind), &told(Some(0), Some(9))),
                Again::No
            );
        }
        let mut ended = verdict(EndKind::Killed);
        for (signal, is_again) in [(signal::TERMINATE, false), (signal::KILL, true)] {
            ended.end.signal = Some(signal);
            let again = Again::of(&ended, &told(Some(0), Some(9)));
            assert_eq!(again != Again::No, is_again, "{signal}");
        }
    }
}
