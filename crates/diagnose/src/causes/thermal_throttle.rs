//! # thermal-throttle
//!
//! The CPU or GPU became too hot and was slowed down to protect itself.
//!
//! ## Symptoms
//!
//! Fans at full speed, steps that become slower over time, a laptop that switches itself off.
//!
//! ## How it is detected
//!
//! The kernel's count of thermal throttling rose during the run; the hottest sensor is shown. For an NVIDIA GPU, its
//! driver reported thermal throttling for a tenth of the time or more, and at least half a minute. Ruled out where the
//! count is known and did not rise.
//!
//! ## What to do
//!
//! Improve the airflow, clean the fans, and leave a core free. A lower power limit keeps a GPU cooler at little cost:
//!
//! ```sh
//! OMP_NUM_THREADS=2 antifreeze run -- python train.py
//! sudo nvidia-smi -pl 300
//! ```

use super::{CauseKind, Finding, Found, Role, power_limit};
use crate::kernel::Kind;
use crate::run::evidence::RunEvidence;
use crate::verdict::{Code, EndKind};
use antifreeze_sense::gpu::throttle;
use antifreeze_text::units;
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::ThermalThrottle,
    word: "thermal-throttle",
    title: "overheating",
    role: Role::Bearable,
    lint_rules: &[],
    source: include_str!("thermal_throttle.rs"),
    detect,
};

/// Throttling counts from so many times a minute on.
const MIN_TIMES_PER_MINUTE: f64 = 1.0;
/// GPU throttling counts from this share of the time on,
const MIN_THROTTLED_SHARE: f64 = 0.1;
/// and from so much time on.
const MIN_THROTTLED_TIME: Duration = Duration::from_secs(30);
const REMEDY: &str = "improve the airflow and leave a core free; fewer threads make less heat";

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let is_off = matches!(
        evidence.end,
        EndKind::MachineDied | EndKind::Unknown | EndKind::Killed
    );
    let overheated = evidence.last_incident(|kind| matches!(kind, Kind::Overheated));
    if let Some(incident) = overheated.filter(|_| is_off) {
        let found = Found::from_log_line(evidence, 0.95, incident);
        return Finding::Found(found.with_remedy(REMEDY, None));
    }
    if let Some(found) = from_gpu(evidence) {
        return Finding::Found(found);
    }
    let (Some(first), Some(last)) = (evidence.first_sample(), evidence.last_sample()) else {
        return Finding::Nothing;
    };
    let Some((before, after)) = first
        .thermal
        .throttle_count
        .value()
        .zip(last.thermal.throttle_count.value())
    else {
        return Finding::Nothing;
    };
    let heat = last.thermal.hottest_millidegrees.value();
    let heat = heat.map_or_else(String::new, |heat| format!("{} °C, ", heat / 1000));
    let times = after.saturating_sub(before);
    if times == 0 {
        return match evidence.end {
            EndKind::MachineDied => Finding::RuledOut(format!("{heat}no core was throttled")),
            _ => Finding::Nothing,
        };
    }
    let minutes = evidence.summary.duration().as_secs_f64() / 60.0;
    if (times as f64) < MIN_TIMES_PER_MINUTE * minutes && evidence.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    let summary = format!(
        "{heat}cores were throttled because of heat {}",
        units::count(times, "time")
    );
    Finding::Found(
        Found::new(evidence, 0.6, summary, "heat.throttled").with_remedy(
            REMEDY,
            Some(format!(
                "OMP_NUM_THREADS=2 antifreeze run -- {}",
                evidence.facts.command_line()
            )),
        ),
    )
}

/// A GPU that was throttled because of heat for long enough, or when the machine died.
fn from_gpu(evidence: &RunEvidence<'_>) -> Option<Found> {
    let gpus = &evidence.summary.gpus;
    let share = gpus.throttled_for_heat()?;
    let is_felt = share >= MIN_THROTTLED_SHARE
        && evidence.summary.duration().mul_f64(share.min(1.0)) >= MIN_THROTTLED_TIME;
    let (_, last) = gpus.last?;
    let was_hot = last
        .throttle_bits
        .value()
        .is_some_and(|bits| bits & throttle::HEAT != 0);
    let died_hot = was_hot && evidence.end == EndKind::MachineDied;
    if !is_felt && !died_hot {
        return None;
    }
    let heat = gpus
        .hottest
        .map_or_else(String::new, |heat| format!(", {} °C at most", heat / 1000));
    let time = units::percent(share);
    let summary = format!("the GPU was throttled because of heat for {time} of the time{heat}");
    Some(
        Found::new(evidence, 0.65, summary, "cards.throttle").with_remedy(
            "improve the airflow and clean the fans; a lower power limit keeps the GPU cooler at little cost",
            power_limit::lower_limit_command(evidence),
        ),
    )
}
