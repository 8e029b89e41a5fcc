//! # machine-reset
//!
//! The machine itself stopped during the run: a power cut, a reset, or a hang that ended with the power button.
//!
//! ## Symptoms
//!
//! A black screen, a silent reboot, or a frozen picture.
//!
//! ## How it is detected
//!
//! The record has no end, the machine was rebooted since, and it was not shut down. The last seconds narrow it down: a
//! GPU at nearly its power limit, with no heat, no lack of memory and nothing in the kernel's log, points to power. The
//! kernel's log of the boot before is searched for a panic, a machine check and a lost GPU.
//!
//! ## What to do
//!
//! If it happens again: limit the power of GPU and CPU, check the power supply and its cables, watch the temperature.
//! Keep the kernel's log across reboots:
//!
//! ```sh
//! sudo nvidia-smi -pl 350               # for a GPU of 450 W: slightly slower, and far from its peaks
//! sudo mkdir -p /var/log/journal        # the journal survives a reboot
//! ```

use super::{CauseKind, Finding, Found, Role, power_limit};
use crate::kernel::Kind;
use crate::run::evidence::RunEvidence;
use crate::verdict::{Code, EndKind};
use antifreeze_sense::gpu::throttle;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::MachineReset,
    word: "machine-reset",
    title: "power cut, reset or hang of the machine",
    role: Role::Symptom,
    lint_rules: &[],
    source: include_str!("machine_reset.rs"),
    detect,
};

/// A GPU is at its power limit from this share of it on.
const AT_POWER_LIMIT_SHARE: f64 = 0.9;
/// From this temperature on, in thousandths of a degree, heat may be the reason.
const HOT_MILLIDEGREES: u64 = 85_000;
/// Below this share of available memory it may have run out.
const LOW_MEMORY_SHARE: f64 = 0.05;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if evidence.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    if evidence
        .last_incident(|kind| matches!(kind, Kind::Shutdown))
        .is_some()
    {
        return Finding::RuledOut("the machine was shut down cleanly".into());
    }
    let stops = "the record stops in the middle, and the machine was not shut down";
    let journal = "check power and temperature; make the journal survive a reboot, so that the kernel's last messages are kept";
    let seen = last_readings(evidence).join(", ");
    let found = if let Some(confidence) = power_confidence(evidence) {
        let found = Found::new(
            evidence,
            confidence,
            format!("most likely power: {seen}"),
            "cards.draw",
        );
        found.with_evidence(evidence, stops.into(), "").with_remedy(
            "set a power limit and try again; check the power supply's rating and its cables",
            power_limit::lower_limit_command(evidence),
        )
    } else {
        let found = Found::new(evidence, 0.6, stops.into(), "");
        match seen.is_empty() {
            true => found,
            false => found.with_evidence(evidence, format!("in the last sample: {seen}"), ""),
        }
    };
    Finding::Found(found.with_remedy(journal, Some("sudo mkdir -p /var/log/journal".into())))
}

/// What the last sample shows.
fn last_readings(evidence: &RunEvidence<'_>) -> Vec<String> {
    let Some(last) = evidence.last_sample() else {
        return Vec::new();
    };
    let degrees = |heat: u64| format!("{} °C", heat / 1000);
    let draw =
        last.gpus.power_microwatts.value().and_then(|draw| {
            power_limit::format_draw(draw, last.gpus.power_limit_microwatts.value())
        });
    let draw = draw.map(|draw| match last.gpus.hottest_millidegrees.value() {
        Some(heat) => format!("the GPU drew {draw} at {}", degrees(heat)),
        None => format!("the GPU drew {draw}"),
    });
    let heat = last
        .thermal
        .hottest_millidegrees
        .value()
        .map(|heat| match draw {
            Some(_) => format!("the machine at {}", degrees(heat)),
            None => degrees(heat),
        });
    let free = last
        .memory
        .available
        .value()
        .map(|free| format!("{} free", units::bytes(free)));
    let silence = (evidence.has_kernel_log() && is_silent(evidence))
        .then(|| "nothing in the kernel's log".into());
    [draw, heat, free, silence].into_iter().flatten().collect()
}

/// The confidence that it was power: a GPU at its power limit, and nothing else wrong.
fn power_confidence(evidence: &RunEvidence<'_>) -> Option<f64> {
    let last = evidence.last_sample()?;
    let (draw, limit) = (
        last.gpus.power_microwatts.value()?,
        last.gpus.power_limit_microwatts.value()?,
    );
    let is_hot = last
        .gpus
        .hottest_millidegrees
        .value()
        .is_some_and(|heat| heat >= HOT_MILLIDEGREES)
        || last
            .thermal
            .hottest_millidegrees
            .value()
            .is_some_and(|heat| heat >= HOT_MILLIDEGREES)
        || last
            .gpus
            .throttle_bits
            .value()
            .is_some_and(|bits| bits & throttle::HEAT != 0);
    let (total, available) = (last.memory.total.value()?, last.memory.available.value()?);
    let is_short = (available as f64) < total as f64 * LOW_MEMORY_SHARE;
    let is_it = draw as f64 >= limit as f64 * AT_POWER_LIMIT_SHARE
        && !is_hot
        && !is_short
        && is_silent(evidence);
    is_it.then(|| {
        if evidence.has_kernel_log() {
            0.71
        } else {
            0.65
        }
    })
}

/// Whether the kernel logged nothing that could have ended the machine.
fn is_silent(evidence: &RunEvidence<'_>) -> bool {
    evidence
        .last_incident(|kind| !matches!(kind, Kind::PowerLimit { .. }))
        .is_none()
}
