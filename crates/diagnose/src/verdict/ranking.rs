//! Ranks what the detectors found. Detectors know nothing of each other; here a symptom yields to a cause that explains
//! it, and what only slows a run stands after what ended it.

use crate::causes::{self, Finding, Role};
use crate::output::traceback::Traceback;
use crate::run::evidence::RunEvidence;
use crate::verdict::{Cause, Code, EndKind, Remedy, RuledOut};

/// From this confidence on a cause replaces the symptoms that it leads to.
const MIN_CONFIDENCE_TO_EXPLAIN: f64 = 0.75;

impl Code {
    fn role(self) -> Option<Role> {
        self.kind().map(|kind| kind.role)
    }

    fn is_symptom(self) -> bool {
        matches!(self.role(), Some(Role::Symptom))
    }

    /// Whether the cause only slows a run down.
    pub fn slows_run(self) -> bool {
        matches!(self.role(), Some(Role::SlowsRun))
    }
}

/// The causes, most likely first, and what was ruled out. Where errors are chained, either end of the chain may be the
/// one with a cause.
pub(super) fn rank_causes(evidence: &RunEvidence<'_>) -> (Vec<Cause>, Vec<RuledOut>) {
    let found = rank_by_main_error(evidence);
    let has_only_symptoms =
        |causes: &[Cause]| causes.first().is_none_or(|cause| cause.code.is_symptom());
    let is_chained = evidence.end == EndKind::Exception && evidence.printed.chained.is_some();
    if !is_chained || !has_only_symptoms(&found.0) {
        return found;
    }
    let Some(printed) = evidence.printed.clone().turned() else {
        return found;
    };
    let by_other_error = rank_by_main_error(&RunEvidence {
        printed: &printed,
        ..*evidence
    });
    if has_only_symptoms(&by_other_error.0) {
        found
    } else {
        by_other_error
    }
}

fn rank_by_main_error(evidence: &RunEvidence<'_>) -> (Vec<Cause>, Vec<RuledOut>) {
    let (mut causes, mut ruled_out) = (Vec::new(), Vec::new());
    for kind in causes::ALL {
        match (kind.detect)(evidence) {
            Finding::Nothing => {}
            Finding::RuledOut(why) => ruled_out.push(RuledOut {
                code: kind.code,
                why,
            }),
            Finding::Found(found) => causes.push(found.into_cause(kind)),
        }
    }
    let is_explained = causes.iter().any(|cause| {
        cause.confidence >= MIN_CONFIDENCE_TO_EXPLAIN && explains_end(cause.code, evidence)
    });
    causes.retain(|cause| !(is_explained && cause.code.is_symptom()));
    lower_explained_error(&mut causes, evidence);
    // The last line of output stands as a cause only where there is no other.
    let is_alone = causes.len() == 1;
    let is_last_line =
        |cause: &Cause| cause.code == Code::UserException && evidence.end == EndKind::Failed;
    causes.retain(|cause| is_alone || !is_last_line(cause));
    let is_aside = |cause: &Cause| cause.code.slows_run() && evidence.went_wrong();
    causes.sort_by(|a, b| {
        let by_confidence = b.confidence.total_cmp(&a.confidence);
        is_aside(a).cmp(&is_aside(b)).then(by_confidence)
    });
    remove_repeated_remedies(&mut causes);
    (causes, ruled_out)
}

/// Whether a cause explains the end of the run, so that its symptoms need not be reported.
fn explains_end(code: Code, evidence: &RunEvidence<'_>) -> bool {
    match code.role() {
        Some(Role::EndsRun | Role::BreaksGpu) => true,
        // Memory does not explain an error about something else.
        Some(Role::ExhaustsMemory) => {
            evidence.end != EndKind::Exception || evidence.reports_out_of_memory()
        }
        Some(Role::BearableUnless(ends_run)) => ends_run(evidence),
        Some(Role::SlowsRun | Role::Symptom | Role::Bearable) | None => false,
    }
}

/// Lowers the confidence of "error in the script" below that of a cause which was found by the same error.
fn lower_explained_error(causes: &mut [Cause], evidence: &RunEvidence<'_>) {
    /// Below this confidence a cause is a guess and lowers nothing.
    const MIN_CONFIDENCE: f64 = 0.5;
    /// So many characters of the error are compared, since its end may be cut.
    const COMPARED_CHARACTERS: usize = 80;
    let error: String = evidence.error().chars().take(COMPARED_CHARACTERS).collect();
    if error.is_empty() {
        return;
    }
    let traceback = evidence.printed.traceback.as_ref();
    let lacks_gpu = traceback.is_some_and(Traceback::lacks_gpu);
    let is_by_error = |cause: &&Cause| {
        let quotes_error = cause.evidence.iter().any(|seen| seen.text.contains(&error));
        let explains_lack = lacks_gpu && matches!(cause.code.role(), Some(Role::BreaksGpu));
        !cause.code.is_symptom() && (quotes_error || explains_lack)
    };
    let confidences = causes
        .iter()
        .filter(is_by_error)
        .map(|cause| cause.confidence);
    let highest = confidences
        .filter(|confidence| *confidence >= MIN_CONFIDENCE)
        .reduce(f64::max);
    let Some(highest) = highest else {
        return;
    };
    for cause in causes
        .iter_mut()
        .filter(|cause| cause.code == Code::UserException)
    {
        cause.confidence = cause.confidence.min(highest - 0.1);
    }
}

/// Removes remedies that a likelier cause offers already.
fn remove_repeated_remedies(causes: &mut [Cause]) {
    let mut known: Vec<Remedy> = Vec::new();
    for cause in causes {
        cause.remedies.retain(|remedy| {
            let is_same = |other: &Remedy| match remedy.edits.is_empty() {
                true => other.text == remedy.text,
                false => other.edits == remedy.edits,
            };
            let is_new = !known.iter().any(is_same);
            known.extend(is_new.then(|| remedy.clone()));
            is_new
        });
    }
}
