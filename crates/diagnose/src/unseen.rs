//! What could not be seen of a run, and would have told more of its end.

use crate::case::Case;
use crate::facts::Since;
use crate::shim::Told;
use crate::verdict::EndKind;
use antifreeze_sense::{Reading, Reason};

pub(crate) fn of(case: &Case<'_>) -> Vec<String> {
    if case.facts.since == Since::OnlyPrinted {
        let next = "memory, processor and disk: there is only what it printed; next time: antifreeze run -- …";
        let mut unseen = vec![next.to_owned()];
        if !case.knows_log() {
            unseen.push(
                "the kernel's log: journalctl -k > kernel.log, then --kernel-log kernel.log".into(),
            );
        }
        return unseen;
    }
    let Some(last) = case.last() else {
        return vec!["everything: the record holds no look at the machine".into()];
    };
    let mut unseen = Vec::new();
    let mut miss = |is_missing: bool, what: &str| {
        if is_missing {
            unseen.push(what.to_owned());
        }
    };
    let died = case.end == EndKind::MachineDied;
    miss(
        died && last.thermal.hottest_millidegrees.value().is_none(),
        "temperature: no sensor that could be read",
    );
    miss(
        died && last.gpus.power_microwatts.value().is_none(),
        "power: no graphics card that tells what it draws, and the rest of the machine is not read",
    );
    let cards = match (last.gpus.memory_used, last.gpus.busy_percent) {
        _ if !died => None,
        (Reading::Unavailable(Reason::Stale), _) => Some("their driver did not answer any more"),
        (Reading::Unavailable(Reason::Gone), _) => Some("lost, as their driver tells"),
        (Reading::Unavailable(Reason::Failed | Reason::Denied), _) => {
            Some("their driver refused to tell")
        }
        (Reading::Unavailable(_), Reading::Unavailable(_)) => {
            Some("those of NVIDIA and AMD are read, and there is none, or it slept")
        }
        _ => None,
    };
    if let Some(why) = cards {
        miss(true, &format!("graphics cards: {why}"));
    }
    if (died || case.end == EndKind::Killed) && !case.knows_log() {
        unseen.extend(case.facts.log.missing.iter().cloned());
    }
    let mut miss = |is_missing: bool, what: &str| {
        if is_missing {
            unseen.push(what.to_owned());
        }
    };
    miss(
        last.pressure.memory_full_us.value().is_none(),
        "waiting for memory: this kernel does not tell pressure (PSI)",
    );
    if !died && case.facts.told.hello.is_none() {
        unseen.push(no_steps(&case.facts.told));
    }
    unseen
}

/// Why no steps were seen.
fn no_steps(told: &Told) -> String {
    let frameworks = told.other_frameworks();
    if frameworks.is_empty() {
        return "steps of the training: no framework that is known, or python -I, -E or -S".into();
    }
    format!(
        "steps of the training: {} was imported, but no step of a training was seen",
        frameworks.join(", ")
    )
}
