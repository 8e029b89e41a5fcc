//! # power-limit
//!
//! The CPU or GPU was slowed down because it reached its power limit.
//!
//! ## Symptoms
//!
//! Slower than the same machine elsewhere; a laptop on battery or with a weak charger.
//!
//! ## How it is detected
//!
//! By the kernel's notices of a power limit. For an NVIDIA GPU: its driver reported that the power supply made it slow
//! down (power brake), or that its hardware did so and not because of heat, for a tenth of the time or more. That the
//! driver holds a GPU at its own power limit is normal at full load and does not count.
//!
//! ## What to do
//!
//! Use the right charger and the performance profile; check the power cables of the GPU and the power supply:
//!
//! ```sh
//! powerprofilesctl set performance
//! nvidia-smi -q -d PERFORMANCE,POWER
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::kernel::Kind;
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::units;
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::PowerLimit,
    word: "power-limit",
    title: "power limit",
    role: Role::Bearable,
    lint_rules: &[],
    source: include_str!("power_limit.rs"),
    detect,
};

/// So many notices in a run are more than a short moment.
const MIN_NOTICES: usize = 10;
/// GPU throttling counts from this share of the time on,
const MIN_THROTTLED_SHARE: f64 = 0.1;
/// and from so much time on, since a change of clocks looks like it for a moment.
const MIN_THROTTLED_TIME: Duration = Duration::from_secs(30);

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if let Some(found) = from_gpu(evidence) {
        return Finding::Found(found);
    }
    let is_one = |kind: &Kind| matches!(kind, Kind::PowerLimit { .. });
    let times = evidence
        .incidents()
        .filter(|incident| is_one(&incident.kind))
        .count();
    if times < MIN_NOTICES {
        return Finding::Nothing;
    }
    let summary = format!(
        "the kernel reported a power limit {}",
        units::count(times as u64, "time")
    );
    Finding::Found(Found::new(evidence, 0.5, summary, "kernel").with_remedy(
        "use the right charger and the performance profile",
        Some("powerprofilesctl set performance".into()),
    ))
}

/// A GPU that its power supply or its own protection slowed down.
fn from_gpu(evidence: &RunEvidence<'_>) -> Option<Found> {
    let gpus = &evidence.summary.gpus;
    let felt = |share: &f64| {
        *share >= MIN_THROTTLED_SHARE
            && evidence.summary.duration().mul_f64(share.min(1.0)) >= MIN_THROTTLED_TIME
    };
    let (confidence, share, by) = match (
        gpus.throttled_by_power_brake().filter(felt),
        gpus.throttled_by_hardware().filter(felt),
    ) {
        (Some(share), _) => (0.65, share, "because the power supply asked for it"),
        (None, Some(share)) => (0.5, share, "by its own hardware, and not because of heat"),
        (None, None) => return None,
    };
    let time = units::percent(share);
    let summary = format!("the GPU was throttled for {time} of the time, {by}");
    let mut found = Found::new(evidence, confidence, summary, "cards.throttle");
    if let Some(draw) = gpus.last.and_then(|(_, last)| {
        format_draw(
            last.power_microwatts.value()?,
            last.power_limit_microwatts.value(),
        )
    }) {
        found = found.with_evidence(
            evidence,
            format!("in the last sample it drew {draw}"),
            "cards.draw",
        );
    }
    Some(found.with_remedy(
        "check the GPU's power cables and the power supply; the driver reports:",
        Some("nvidia-smi -q -d PERFORMANCE,POWER".into()),
    ))
}

/// Formats a power draw: "447 of 450 W".
pub(super) fn format_draw(draw: u64, limit: Option<u64>) -> Option<String> {
    const WATT: u64 = 1_000_000;
    (draw > 0).then(|| match limit {
        Some(limit) => format!("{} of {} W", draw / WATT, limit / WATT),
        None => format!("{} W", draw / WATT),
    })
}

/// The command that lowers the power limit of each GPU by a good fifth, which costs little speed and is the first thing to
/// try. Only for NVIDIA, whose driver reports why a GPU is throttled.
pub(super) fn lower_limit_command(evidence: &RunEvidence<'_>) -> Option<String> {
    let (_, last) = evidence.summary.gpus.last?;
    last.throttle_bits.value()?;
    let each = last.power_limit_microwatts.value()? / last.count.value()?.max(1);
    let watts = each / 9 * 7 / 10_000_000 * 10;
    (watts > 0).then(|| format!("sudo nvidia-smi -pl {watts}"))
}
