//! The sources of this machine's log: the journal, else the log files; the kernel's buffer; after a crash, the dump that
//! the firmware kept. Where a source is missing or not readable, the reason is kept. Nothing here blocks for longer than
//! a few seconds.

use super::incident::{Incident, Kind};
use super::{incidents, journal, kmsg, pstore, tail};
use crate::output::utf16;
use antifreeze_sense::regular_file;
use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// A clock that was set after the boot makes its first lines seem a little older than it.
const SLACK: SignedDuration = SignedDuration::from_secs(60);

/// A boot of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// The current one.
    This,
    /// An earlier one, by its boot ID.
    Past([u8; 16]),
}

/// What was read of the kernel's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Incidents, oldest first.
    pub incidents: Vec<Incident>,
    /// The sources that were read.
    pub read: Vec<String>,
    /// Why other sources could not be read.
    pub missing: Vec<String>,
}

/// Reads the log of one boot of the machine whose files are under `root`.
pub fn gather(boot: Boot, root: &Path) -> Log {
    let mut log = Log::default();
    let booted = boot_time(root);
    match journal::read(root, boot) {
        Ok(said) => {
            log.read.push("the journal".into());
            log.missing.extend(said.incomplete);
            log.incidents = incidents(&said.text, Timestamp::now());
        }
        Err(why) => {
            log.missing.push(why);
            log.read_log_files(boot, booted, root);
        }
    }
    match boot {
        Boot::This => log.read_kmsg(root),
        Boot::Past(_) => log.read_crash(booted, root),
    }
    if log.incidents.iter().all(|found| found.line.at.is_some()) {
        log.incidents.sort_by_key(|found| found.line.at);
    }
    log
}

/// Reads a log that a user saved, in any of the formats and of any boots.
pub fn from_file(path: &Path) -> io::Result<Log> {
    let text = utf16::to_utf8(tail::read_file(regular_file::open_named(path)?)?);
    if text.starts_with(&[0x1f, 0x8b]) {
        let why = "it is compressed: unpack it with gunzip first";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(Log {
        incidents: incidents(&text, Timestamp::now()),
        read: vec![antifreeze_text::sanitize::escape(
            path.as_os_str().as_encoded_bytes(),
        )],
        missing: Vec::new(),
    })
}

impl Log {
    fn read_log_files(&mut self, boot: Boot, booted: Option<Timestamp>, root: &Path) {
        const NAMES: [&str; 3] = ["kern.log", "messages", "syslog"];
        let mut refused = None;
        for name in NAMES {
            let path = format!("/var/log/{name}");
            match log_file(root, name) {
                Ok(text) => {
                    let all = incidents(&text, Timestamp::now());
                    self.incidents = of_boot(all, boot, booted);
                    self.read.push(path);
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refused = refused.or(Some(format!("{path}: {error}"))),
            }
        }
        let none = || "there is no /var/log/kern.log here".into();
        self.missing.push(refused.unwrap_or_else(none));
    }

    fn read_kmsg(&mut self, root: &Path) {
        match kmsg::read(root) {
            Ok(text) => {
                let mut told = incidents(&text, Timestamp::now());
                if let Some(switched_on) = kmsg::switched_on() {
                    kmsg::date(&mut told, switched_on);
                }
                self.add(told);
                self.read.push("/dev/kmsg".into());
            }
            Err(why) => self.missing.push(why),
        }
    }

    fn read_crash(&mut self, booted: Option<Timestamp>, root: &Path) {
        match pstore::read(root, booted) {
            Ok((told, mut places)) => {
                self.add(told);
                self.read.append(&mut places);
            }
            Err(why) => self.missing.push(why),
        }
    }

    /// Adds incidents of a source that may repeat known ones: only additional ones are new.
    fn add(&mut self, told: Vec<Incident>) {
        let mut known: HashMap<String, usize> = HashMap::new();
        for incident in &self.incidents {
            *known.entry(incident.line.text.clone()).or_default() += 1;
        }
        for incident in told {
            match known.get_mut(&incident.line.text) {
                Some(times) if *times > 0 => *times -= 1,
                _ => self.incidents.push(incident),
            }
        }
    }
}

/// Reads a log file, after its rotated predecessor.
fn log_file(root: &Path, name: &str) -> io::Result<Vec<u8>> {
    let folder = root.join("var/log");
    let newest = tail::read_file(File::open(folder.join(name))?)?;
    let older = File::open(folder.join(format!("{name}.1"))).and_then(tail::read_file);
    let mut text = older.unwrap_or_default();
    text.extend(newest);
    Ok(text)
}

/// The part of a log file that is about one boot.
fn of_boot(mut all: Vec<Incident>, boot: Boot, booted: Option<Timestamp>) -> Vec<Incident> {
    let begins = |found: &Incident| matches!(found.kind, Kind::Boot { .. });
    let last = all.iter().rposition(begins);
    let earliest = booted.and_then(|booted| booted.checked_sub(SLACK).ok());
    match boot {
        Boot::This => {
            all.drain(..last.unwrap_or(0));
            all.retain(|found| {
                found
                    .line
                    .at
                    .zip(earliest)
                    .is_none_or(|(at, first)| at >= first)
            });
        }
        Boot::Past(_) => {
            all.truncate(last.unwrap_or(0));
            let first = all.iter().rposition(begins).unwrap_or(0);
            all.drain(..first);
        }
    }
    all
}

/// The time of the boot as the kernel reports it, in whole seconds.
fn boot_time(root: &Path) -> Option<Timestamp> {
    let stat = std::fs::read_to_string(root.join("proc/stat")).ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Timestamp::from_second(seconds.trim().parse().ok()?).ok()
}

#[cfg(test)]
mod tests;
