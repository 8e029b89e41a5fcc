//! The kernel's last words before a crash, which firmware keeps over a reboot. They stay in
//! /sys/fs/pstore, or systemd moves them to /var/lib/systemd/pstore at the next boot.

use super::incident::Incident;
use super::{incidents, kmsg, tail};
use jiff::{SignedDuration, Timestamp};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FIRMWARE: &str = "sys/fs/pstore";
const MOVED: &str = "var/lib/systemd/pstore";
/// A crash is written in parts, all in one moment.
const ONE_CRASH: Duration = Duration::from_secs(60);
const FIRST_LOOK: SignedDuration = SignedDuration::from_secs(60);
/// Systemd keeps a folder for each crash, and folders in it for the parts.
const DEPTH: usize = 3;
const MOST_FILES: usize = 64;

/// The latest crash before this boot, which began at `booted`; the places that hold it.
pub fn read(
    root: &Path,
    booted: Option<Timestamp>,
) -> Result<(Vec<Incident>, Vec<String>), String> {
    let mut crash = parts(&root.join(FIRMWARE), 1);
    // The time of a part is that of the crash, or where the firmware kept none, that of the
    // first look at it soon after the boot. A later one is of this boot.
    let since_boot = |part: &Part| Some(part.at.duration_since(booted?));
    crash.retain(|part| since_boot(part).is_none_or(|late| late <= FIRST_LOOK));
    let latest = crash.iter().map(|part| part.at).max();
    crash.retain(|part| latest.is_some_and(|latest| apart(part.at, latest) <= ONE_CRASH));
    // What was moved bears the time of the boot after the crash: only this boot's are of interest.
    let mut moved = parts(&root.join(MOVED), DEPTH);
    moved.retain(|part| booted.is_some_and(|booted| part.at >= booted));
    // Systemd puts the parts together, and leaves them there.
    let is_whole = |part: &Part| part.path.ends_with("dmesg.txt");
    if moved.iter().any(is_whole) {
        moved.retain(is_whole);
    }

    let mut found = Vec::new();
    let mut read = Vec::new();
    for (part, is_dated) in crash
        .iter()
        .map(|part| {
            (
                part,
                since_boot(part).is_none_or(|late| !late.is_positive()),
            )
        })
        .chain(moved.iter().map(|part| (part, false)))
    {
        let Ok(text) = File::open(&part.path).and_then(tail::read_file) else {
            continue;
        };
        let mut told = incidents(&text, Timestamp::now());
        if is_dated {
            date(&mut told, part.at);
        }
        let place = part.path.strip_prefix(root).unwrap_or(&part.path);
        read.push(format!(
            "/{}",
            antifreeze_text::sanitize::escape(place.as_os_str().as_bytes())
        ));
        found.append(&mut told);
    }
    match read.is_empty() {
        true => Err(
            "no crash dump of the kernel was kept, or none that may be read (/sys/fs/pstore)"
                .into(),
        ),
        false => Ok((found, read)),
    }
}

struct Part {
    path: PathBuf,
    at: Timestamp,
}

/// Files of kernel text under a folder; the last part of a crash is numbered first.
fn parts(folder: &Path, depth: usize) -> Vec<Part> {
    let mut found = Vec::new();
    gather(folder, depth, &mut found);
    found.sort_by(|a, b| b.path.cmp(&a.path));
    found
}

fn gather(folder: &Path, depth: usize, found: &mut Vec<Part>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().take(MOST_FILES) {
        // Not through links: they may lead anywhere.
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_dir() && depth > 1 {
            gather(&entry.path(), depth - 1, found);
        } else if about.is_file() && is_kernel_text(&entry.file_name()) && found.len() < MOST_FILES
        {
            found.extend(modified(&about).map(|at| Part {
                path: entry.path(),
                at,
            }));
        }
    }
}

fn is_kernel_text(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"dmesg") && !name.ends_with(b".enc.z")
}

fn modified(about: &Metadata) -> Option<Timestamp> {
    Timestamp::try_from(about.modified().ok()?).ok()
}

fn apart(a: Timestamp, b: Timestamp) -> Duration {
    a.duration_since(b).unsigned_abs()
}

/// The last line was written at the crash.
fn date(told: &mut [Incident], crash: Timestamp) {
    let last = told
        .iter()
        .filter_map(|incident| incident.line.since_boot)
        .max();
    if let Some(switched_on) = last.and_then(|last| crash.checked_sub(last).ok()) {
        kmsg::date(told, switched_on);
    }
}
