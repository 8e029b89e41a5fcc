//! # hardware-error
//!
//! The processor, the memory, a disk or the bus reported an error of its own.
//!
//! ## How it looks
//!
//! Crashes at different places, files that cannot be read, a machine that stops.
//!
//! ## How it is told
//!
//! By the kernel's lines: machine checks, memory errors (EDAC), errors of the disk, of PCIe. They explain a machine
//! that died, a program that fell, and errors in which something could not be read; with another end they are only
//! possible, or not told at all: a wrong value is not made by a disk. Corrected errors are told with less certainty,
//! and only of what fell: the machine went on from them. Disc drives, loop devices and memory that is used as a disk
//! are passed over.
//!
//! ## What to do
//!
//! Save what matters; test the memory (`memtest86+`), look at the disk that the log names:
//!
//! ```sh
//! sudo smartctl -a /dev/sdb
//! ```

use antifreeze_text::layout::cut;
use super::{Finding, Found};
use crate::bearing::Part;
use crate::case::Case;
use crate::kernel::{Incident, Kind, Severity};
use crate::verdict::EndKind;

/// Less is not worth a word, unless something fell.
const LEAST: f64 = 0.4;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let fell = matches!(case.end, EndKind::MachineDied | EndKind::Crashed);
    let least = if fell { 0.0 } else { LEAST };
    let worst = case
        .incidents()
        .filter_map(|incident| {
            let (part, sure) = failed(case, incident)?;
            let found = Found::failed(case, part, sure, incident)?;
            (sure >= least).then_some((found, incident))
        })
        .max_by(|(a, _), (b, _)| a.confidence.total_cmp(&b.confidence));
    if let Some((found, incident)) = worst {
        let (text, paste) = match &incident.kind {
            Kind::DiskError { device } => look_at(device),
            Kind::ReadOnlyRemount { device } => look_at(device.as_deref().unwrap_or_default()),
            Kind::PcieError { .. } => ("check how the card sits in its slot, and its cables", None),
            _ => ("test the memory (memtest86+); check cooling and power", None),
        };
        return Finding::Found(found.remedy(text, paste));
    }
    let said = case.said(&["Input/output error", "[Errno 5]"]);
    let found = said.filter(|_| case.went_wrong()).map(|(line, most)| {
        let (text, paste) = below_folder(case);
        Found::new(case, f64::min(0.6, most), cut(&line, 160), "")
            .at(case.location())
            .remedy(text, paste)
    });
    found.into()
}

/// Which part it was, and how sure it is that it took something with it.
fn failed(case: &Case<'_>, incident: &Incident) -> Option<(Part, f64)> {
    let died = case.end == EndKind::MachineDied;
    Some(match &incident.kind {
        Kind::MachineCheck { severity } => (
            Part::Board,
            match severity {
                Severity::Fatal | Severity::NonFatal => 0.85,
                Severity::Unknown if died => 0.8,
                Severity::Unknown => 0.4,
                Severity::Corrected => 0.3,
            },
        ),
        Kind::MemoryError { corrected, .. } => (Part::Board, if *corrected { 0.35 } else { 0.9 }),
        Kind::DiskError { device } if is_beside(device) => return None,
        Kind::DiskError { .. } => (Part::Disk, 0.85),
        Kind::ReadOnlyRemount { device } if device.as_deref().is_some_and(is_beside) => return None,
        Kind::ReadOnlyRemount { .. } => (Part::Disk, 0.85),
        Kind::PcieError { severity, .. } => (
            Part::Board,
            match severity {
                Severity::Fatal => 0.85,
                Severity::NonFatal | Severity::Unknown => 0.5,
                Severity::Corrected => 0.25,
            },
        ),
        _ => return None,
    })
}

/// No disk that a training reads from: a disc drive, a floppy, an image, memory.
fn is_beside(device: &str) -> bool {
    let kind = device.trim_end_matches(|letter: char| letter.is_ascii_digit());
    ["sr", "fd", "loop", "zram", "ram"].contains(&kind)
}

const SAVE: &str = "save what matters, and look at the disk";

/// What to do about a disk, by the kernel's name for it or for a part of it.
fn look_at(device: &str) -> (&'static str, Option<String>) {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let starts = |names: &[&str]| names.iter().any(|name| device.starts_with(name));
    if device.is_empty() || !device.chars().all(is_plain) {
        return (SAVE, None);
    }
    if starts(&["mmcblk"]) {
        return ("save what matters, and replace the memory card, or the machine's own flash", None);
    }
    if starts(&["vd", "xvd"]) {
        return ("save what matters; the disk is a virtual one: look at it where the machine is hosted", None);
    }
    if starts(&["sd", "hd"]) {
        let disk = device.trim_end_matches(|letter: char| letter.is_ascii_digit());
        return (SAVE, Some(format!("sudo smartctl -a /dev/{disk}")));
    }
    if let Some(rest) = device.strip_prefix("nvme") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest.get(..digits).unwrap_or_default();
        return (SAVE, Some(format!("sudo smartctl -a /dev/nvme{number}")));
    }
    let text = "save what matters, and look at the disks below it (smartctl -a)";
    (text, Some(format!("lsblk -s /dev/{device}")))
}

/// Only the run's own words are left: the disk is most likely that of its folder.
fn below_folder(case: &Case<'_>) -> (&'static str, Option<String>) {
    let mount = case.facts.mount.as_deref();
    let Some(source) = mount.and_then(|mount| mount.split(' ').nth(1)) else {
        return ("save what matters; find the disk, and look at it (smartctl -a)", Some("findmnt --target .".into()));
    };
    match source.strip_prefix("/dev/") {
        Some(device) if !device.contains('/') => look_at(device),
        Some(_) => (SAVE, Some(format!("lsblk -s {source}")).filter(|_| is_path(source))),
        None => ("save what matters, and look at the server, or whatever the folder is kept on", None),
    }
}

/// One that needs no quotes.
fn is_path(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/-_.".contains(letter))
}
