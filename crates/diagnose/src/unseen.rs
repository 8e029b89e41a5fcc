//! What could not be seen of a run, and would have told more of its end.

use crate::case::Case;
use crate::facts::Since;
use crate::verdict::EndKind;

pub(crate) fn of(case: &Case<'_>) -> Vec<String> {
    if case.facts.since == Since::OnlyPrinted {
        let next = "memory, processor and disk: there is only what it printed; next time: antifreeze run -- …";
        return vec![next.into()];
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
        died && last.heat.hottest.value().is_none(),
        "temperature: no sensor that could be read",
    );
    miss(died, "power: this version does not read it");
    miss(
        died && last.cards.used.value().is_none(),
        "graphics cards: those of AMD are read, and there is none, or it slept",
    );
    if (died || case.end == EndKind::Killed) && !case.knows_log() {
        unseen.extend(case.facts.log.missing.iter().cloned());
    }
    let mut miss = |is_missing: bool, what: &str| {
        if is_missing {
            unseen.push(what.to_owned());
        }
    };
    miss(
        last.pressure.memory_full.value().is_none(),
        "waiting for memory: this kernel does not tell pressure (PSI)",
    );
    miss(
        !died && case.facts.told.hello.is_none(),
        "steps of the training: no framework that is known, or python -I, -E or -S",
    );
    unseen
}
