//! Decides which ends of a run failing hardware can explain. A line of the kernel about a GPU or a disk is true, and
//! often has nothing to do with the end of a run: a disk does not raise an error in a script that does not read from it,
//! and a run that succeeded was not affected.

use crate::causes;
use crate::kernel::attribution::Attribution;
use crate::kernel::{Incident, Kind};
use crate::output::traceback::Traceback;
use crate::run::evidence::{RunEvidence, nanos_since};
use crate::verdict::EndKind;
use antifreeze_sense::Stamp;
use antifreeze_text::signal;
use std::time::Duration;

/// The hardware component that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    Gpu,
    Disk,
    /// CPU, memory, bus, or the kernel that runs on them.
    Board,
}

/// Confidence for an end that names another reason itself.
const UNLIKELY: f64 = 0.4;
/// Confidence for an end that has many possible reasons.
const POSSIBLE: f64 = 0.6;
/// Confidence for an end that the component often leads to.
const PLAUSIBLE: f64 = 0.7;
/// A run that continued for so long was not affected.
const UNAFFECTED_AFTER: Duration = Duration::from_secs(300);
/// Mean utilisation from which on a GPU was used.
const MIN_BUSY_SHARE: f64 = 0.2;
/// GPU memory that was taken during the run, from which on a GPU was used.
const MIN_BYTES_TAKEN: u64 = 200_000_000;

/// Words in errors about GPUs.
const GPU_WORDS: [&str; 10] = [
    "CUDA", "cuda", "NCCL", "HIP", "ROCm", "GPU", "cuDNN", "CUDNN", "CUBLAS", "HSA_",
];

/// The highest confidence that this failure ended the run; 0 where it cannot have. A run that continued for minutes
/// after it was not ended by it, except for a lost GPU, which stays lost.
pub(crate) fn max_confidence(
    evidence: &RunEvidence<'_>,
    component: Component,
    incident: &Incident,
) -> f64 {
    let continued = |until: Stamp| {
        nanos_since(&incident.line, until)
            .is_some_and(|after| after < -(UNAFFECTED_AFTER.as_nanos() as i128))
    };
    let is_sudden = matches!(
        evidence.end,
        EndKind::Crashed | EndKind::Failed | EndKind::Killed
    );
    let continued =
        is_sudden && component != Component::Gpu && evidence.summary.until().is_some_and(continued);
    let confidence = confidence_by_end(evidence, component);
    if continued {
        confidence.min(UNLIKELY)
    } else {
        confidence
    }
}

fn confidence_by_end(evidence: &RunEvidence<'_>, component: Component) -> f64 {
    match evidence.end {
        EndKind::MachineDied | EndKind::Hung | EndKind::Unknown => 1.0,
        EndKind::Finished | EndKind::Detached => 0.0,
        // It may have succeeded.
        EndKind::Exited => UNLIKELY,
        // It may hang because of it.
        EndKind::Running if causes::made_no_steps(evidence) => PLAUSIBLE,
        EndKind::Running if component == Component::Gpu && used_gpu(evidence) => POSSIBLE,
        EndKind::Running => 0.0,
        EndKind::Crashed | EndKind::Killed
            if component == Component::Gpu && is_on_cpu(evidence) =>
        {
            UNLIKELY
        }
        EndKind::Crashed => confidence_for_crash(evidence, component),
        // A person may have ended it for that reason.
        EndKind::Killed => match component {
            Component::Gpu => 1.0,
            Component::Disk | Component::Board => POSSIBLE,
        },
        EndKind::Failed => confidence_for_failure(evidence, component),
        EndKind::Exception => confidence_for_error(evidence, component),
        // Memory ran out.
        EndKind::Walled | EndKind::Stopped | EndKind::OomKilled => match component {
            Component::Disk => 0.0,
            Component::Gpu | Component::Board => UNLIKELY,
        },
    }
}

/// A page that cannot be read from a disk raises a bus error; other crashes have many reasons.
fn confidence_for_crash(evidence: &RunEvidence<'_>, component: Component) -> f64 {
    match component {
        Component::Disk if evidence.signal() != Some(signal::BUS) => PLAUSIBLE,
        _ => 1.0,
    }
}

/// It exited with an error code, for unknown reasons.
fn confidence_for_failure(evidence: &RunEvidence<'_>, component: Component) -> f64 {
    if evidence.signal().is_some_and(signal::is_crash) {
        return confidence_for_crash(evidence, component);
    }
    match component {
        Component::Gpu if used_gpu(evidence) => 1.0,
        Component::Gpu => 0.5,
        Component::Disk
            if evidence
                .find_line(&["Input/output error", "[Errno 5]"])
                .is_some() =>
        {
            1.0
        }
        Component::Disk | Component::Board => POSSIBLE,
    }
}

fn confidence_for_error(evidence: &RunEvidence<'_>, component: Component) -> f64 {
    let error = evidence.error();
    let is_of_it = match component {
        Component::Gpu => is_gpu_error(error),
        Component::Disk => is_disk_error(error),
        Component::Board => is_gpu_error(error) || is_disk_error(error),
    };
    let blames_another = evidence
        .printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::blames_another);
    match component {
        _ if is_of_it => 1.0,
        _ if blames_another => confidence_for_failure(evidence, component),
        Component::Gpu if !used_gpu(evidence) => 0.0,
        Component::Disk => 0.0,
        Component::Gpu | Component::Board => UNLIKELY,
    }
}

fn is_gpu_error(error: &str) -> bool {
    GPU_WORDS.iter().any(|word| error.contains(word))
}

/// Whether something could not be read or written, for no other reason that the error gives.
fn is_disk_error(error: &str) -> bool {
    const WORDS: [&str; 7] = [
        "[Errno 5]",
        "I/O error",
        "Input/output error",
        "[Errno 30]",
        "Read-only file system",
        "[Errno 117]",
        "[Errno 121]",
    ];
    let is_bare = error.starts_with("OSError") && !error.contains("[Errno ");
    is_bare || WORDS.iter().any(|word| error.contains(word))
}

/// Whether the run used a GPU, by its shim, its output, or what the GPUs and their driver show.
fn used_gpu(evidence: &RunEvidence<'_>) -> bool {
    if let Some(device) = loss_device(evidence) {
        return !device.starts_with("cpu");
    }
    let gpus = &evidence.summary.gpus;
    let first = evidence
        .first_sample()
        .and_then(|first| first.gpus.memory_used.value());
    let took = gpus.peak.zip(first);
    let is_named = || {
        evidence.incidents().any(|incident| {
            matches!(
                incident.kind,
                Kind::Xid { .. } | Kind::AmdRingTimeout { .. }
            ) && evidence.attribute(incident) == Attribution::OurRun
        })
    };
    gpus.busy().is_some_and(|busy| busy >= MIN_BUSY_SHARE)
        || took.is_some_and(|(peak, first)| peak.used.saturating_sub(first) >= MIN_BYTES_TAKEN)
        || evidence.find_line(&GPU_WORDS).is_some()
        || is_named()
}

/// The device on which the loss was computed, as the shim reports.
fn loss_device<'a>(evidence: &RunEvidence<'a>) -> Option<&'a str> {
    evidence.facts.shim.hello.as_ref()?.device.as_deref()
}

/// Whether the loss was computed on the CPU.
fn is_on_cpu(evidence: &RunEvidence<'_>) -> bool {
    loss_device(evidence).is_some_and(|device| device.starts_with("cpu"))
}
