//! # hardware-error
//!
//! The CPU, the memory, a disk or the bus reported an error.
//!
//! ## Symptoms
//!
//! Crashes at different places, unreadable files, a machine that stops.
//!
//! ## How it is detected
//!
//! By the kernel's lines: machine checks, memory errors (EDAC), disk errors, PCIe errors. They explain a machine that
//! died, a crash, and an error in which something could not be read. With another end they are possible at most: a disk
//! does not cause a wrong value. Corrected errors count less, and only after a crash, since the machine continued.
//! Optical drives, loop devices and RAM disks are ignored.
//!
//! ## What to do
//!
//! Back up what matters; test the memory (`memtest86+`), and check the disk that the log names:
//!
//! ```sh
//! sudo smartctl -a /dev/sdb
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::kernel::hardware_relevance::Component;
use crate::kernel::{Incident, Kind, Severity};
use crate::run::evidence::RunEvidence;
use crate::verdict::{Code, EndKind};
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::HardwareError,
    word: "hardware-error",
    title: "hardware error",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("hardware_error.rs"),
    detect,
};

/// A lower confidence is reported only after a crash.
const MIN_CONFIDENCE: f64 = 0.4;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let has_crashed = matches!(evidence.end, EndKind::MachineDied | EndKind::Crashed);
    let least = if has_crashed { 0.0 } else { MIN_CONFIDENCE };
    let worst = evidence
        .incidents()
        .filter_map(|incident| {
            let (part, sure) = failed(evidence, incident)?;
            let found = Found::from_hardware_incident(evidence, part, sure, incident)?;
            (sure >= least).then_some((found, incident))
        })
        .max_by(|(a, _), (b, _)| a.confidence.total_cmp(&b.confidence));
    if let Some((found, incident)) = worst {
        let (text, paste) = match &incident.kind {
            Kind::DiskError { device } => disk_remedy(device),
            Kind::ReadOnlyRemount { device } => disk_remedy(device.as_deref().unwrap_or_default()),
            Kind::PcieError { .. } => (
                "check that the card is well seated in its slot, and its cables",
                None,
            ),
            _ => (
                "test the memory (memtest86+); check cooling and power",
                None,
            ),
        };
        return Finding::Found(found.with_remedy(text, paste));
    }
    let said = evidence.find_line_with_confidence(&["Input/output error", "[Errno 5]"]);
    let found = said.filter(|_| evidence.went_wrong()).map(|(line, most)| {
        let (text, paste) = folder_disk_remedy(evidence);
        Found::new(evidence, f64::min(0.6, most), cut(&line, 160), "")
            .at_location(evidence.error_location())
            .with_remedy(text, paste)
    });
    found.into()
}

/// The component of an incident, and the confidence that its failure ended the run.
fn failed(evidence: &RunEvidence<'_>, incident: &Incident) -> Option<(Component, f64)> {
    let died = evidence.end == EndKind::MachineDied;
    Some(match &incident.kind {
        Kind::MachineCheck { severity } => (
            Component::Board,
            match severity {
                Severity::Fatal | Severity::NonFatal => 0.85,
                Severity::Unknown if died => 0.8,
                Severity::Unknown => 0.4,
                Severity::Corrected => 0.3,
            },
        ),
        Kind::MemoryError { corrected, .. } => {
            (Component::Board, if *corrected { 0.35 } else { 0.9 })
        }
        Kind::DiskError { device } if is_irrelevant_device(device) => return None,
        Kind::DiskError { .. } => (Component::Disk, 0.85),
        Kind::ReadOnlyRemount { device } if device.as_deref().is_some_and(is_irrelevant_device) => {
            return None;
        }
        Kind::ReadOnlyRemount { .. } => (Component::Disk, 0.85),
        Kind::PcieError { severity, .. } => (
            Component::Board,
            match severity {
                Severity::Fatal => 0.85,
                Severity::NonFatal | Severity::Unknown => 0.5,
                Severity::Corrected => 0.25,
            },
        ),
        _ => return None,
    })
}

/// Whether no training reads from the device: an optical drive, a floppy, a loop device, a RAM disk.
fn is_irrelevant_device(device: &str) -> bool {
    let kind = device.trim_end_matches(|letter: char| letter.is_ascii_digit());
    ["sr", "fd", "loop", "zram", "ram"].contains(&kind)
}

const CHECK_DISK: &str = "back up what matters, and check the disk";

/// What to do about a disk, by the kernel's name for the disk or a partition.
fn disk_remedy(device: &str) -> (&'static str, Option<String>) {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let starts = |names: &[&str]| names.iter().any(|name| device.starts_with(name));
    if device.is_empty() || !device.chars().all(is_plain) {
        return (CHECK_DISK, None);
    }
    if starts(&["mmcblk"]) {
        return (
            "back up what matters, and replace the memory card or the built-in flash",
            None,
        );
    }
    if starts(&["vd", "xvd"]) {
        return (
            "back up what matters; the disk is virtual: check it on the host",
            None,
        );
    }
    if starts(&["sd", "hd"]) {
        let disk = device.trim_end_matches(|letter: char| letter.is_ascii_digit());
        return (CHECK_DISK, Some(format!("sudo smartctl -a /dev/{disk}")));
    }
    if let Some(rest) = device.strip_prefix("nvme") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest.get(..digits).unwrap_or_default();
        return (
            CHECK_DISK,
            Some(format!("sudo smartctl -a /dev/nvme{number}")),
        );
    }
    let text = "back up what matters, and check the disks below it (smartctl -a)";
    (text, Some(format!("lsblk -s /dev/{device}")))
}

/// Only the output is known: the disk is most likely that of the run's folder.
fn folder_disk_remedy(evidence: &RunEvidence<'_>) -> (&'static str, Option<String>) {
    let mount = evidence.facts.mount.as_deref();
    let Some(source) = mount.and_then(|mount| mount.split(' ').nth(1)) else {
        return (
            "back up what matters; find the disk, and check it (smartctl -a)",
            Some("findmnt --target .".into()),
        );
    };
    match source.strip_prefix("/dev/") {
        Some(device) if !device.contains('/') => disk_remedy(device),
        Some(_) => (
            CHECK_DISK,
            Some(format!("lsblk -s {source}")).filter(|_| is_path(source)),
        ),
        None => (
            "back up what matters, and check the server or device that holds the folder",
            None,
        ),
    }
}

/// Whether a path needs no quotes in a shell.
fn is_path(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "/-_.".contains(letter))
}
