//! Lists the evidence that was not available and could have told more about the end of a run.

use crate::run::evidence::RunEvidence;
use crate::run::facts::RunState;
use crate::shim::ShimReport;
use crate::verdict::EndKind;
use antifreeze_sense::{Reading, Reason};

/// Lists what was not available, and how to have it the next time.
pub(crate) fn list(evidence: &RunEvidence<'_>) -> Vec<String> {
    if evidence.facts.state == RunState::OnlyPrinted {
        let next = "memory, CPU and disk: only the output is known; next time: antifreeze run -- …";
        let mut unseen = vec![next.to_owned()];
        if !evidence.has_kernel_log() {
            unseen.push(
                "the kernel's log: journalctl -k > kernel.log, then --kernel-log kernel.log".into(),
            );
        }
        return unseen;
    }
    let Some(last) = evidence.last_sample() else {
        return vec!["everything: the record has no samples".into()];
    };
    let mut unseen = Vec::new();
    let mut miss = |is_missing: bool, what: &str| {
        if is_missing {
            unseen.push(what.to_owned());
        }
    };
    let died = evidence.end == EndKind::MachineDied;
    miss(
        died && last.thermal.hottest_millidegrees.value().is_none(),
        "temperature: no sensor could be read",
    );
    miss(
        died && last.gpus.power_microwatts.value().is_none(),
        "power: no GPU reports its power draw, and the rest of the machine is not measured",
    );
    let cards = match (last.gpus.memory_used, last.gpus.busy_percent) {
        _ if !died => None,
        (Reading::Unavailable(Reason::Stale), _) => Some("their driver stopped responding"),
        (Reading::Unavailable(Reason::Gone), _) => Some("their driver reports them lost"),
        (Reading::Unavailable(Reason::Failed | Reason::Denied), _) => {
            Some("their driver refused to answer")
        }
        (Reading::Unavailable(_), Reading::Unavailable(_)) => {
            Some("only those of NVIDIA and AMD are read, and there is none, or it was asleep")
        }
        _ => None,
    };
    if let Some(why) = cards {
        miss(true, &format!("GPUs: {why}"));
    }
    if (died || evidence.end == EndKind::Killed) && !evidence.has_kernel_log() {
        unseen.extend(evidence.facts.log.missing.iter().cloned());
    }
    let mut miss = |is_missing: bool, what: &str| {
        if is_missing {
            unseen.push(what.to_owned());
        }
    };
    miss(
        last.pressure.memory_full_us.value().is_none(),
        "memory stalls: this kernel does not report pressure (PSI)",
    );
    if !died && evidence.facts.shim.hello.is_none() {
        unseen.push(no_steps(&evidence.facts.shim));
    }
    unseen
}

/// Why no training steps were seen.
fn no_steps(shim: &ShimReport) -> String {
    let frameworks = shim.other_frameworks();
    if frameworks.is_empty() {
        return "training steps: no known framework was imported, or Python ran with -I, -E or -S"
            .into();
    }
    format!(
        "training steps: {} was imported, but no training step was seen",
        frameworks.join(", ")
    )
}
