//! The kernel's own buffer, /dev/kmsg: one record for each read, until there is no more. It
//! bears no dates; they are worked out where the machine did not sleep in between.

use super::incident::Incident;
use super::tail::{LIMIT, Tail};
use antifreeze_sense::clock::Uptime;
use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, Instant};

/// The kernel refuses a read that has no room for the whole record, which is at most 8 KiB.
const RECORD: usize = 16 << 10;
const DEADLINE: Duration = Duration::from_secs(2);

pub fn read(root: &Path) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(root.join("dev/kmsg"), flags, Mode::empty())
        .map_err(|error| refusal(error, root))?;
    let mut tail = Tail::new(LIMIT);
    let mut record = vec![0; RECORD];
    let mut heard = false;
    let started = Instant::now();
    while started.elapsed() < DEADLINE {
        match rustix::io::read(&file, record.as_mut_slice()) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(count) => {
                heard = true;
                tail.push(record.get(..count).unwrap_or_default());
            }
            // Records were overwritten before we came to them: go on with the next.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) if !heard => return Err(refusal(error, root)),
            Err(_) => break,
        }
    }
    Ok(tail.finish())
}

fn refusal(error: Errno, root: &Path) -> String {
    let why = match error {
        Errno::NOENT => return "there is no /dev/kmsg here".into(),
        Errno::PERM | Errno::ACCESS if is_restricted(root) => "kernel.dmesg_restrict=1".into(),
        error => std::io::Error::from(error).to_string(),
    };
    format!("the kernel log may not be read: {why}; try sudo dmesg > FILE, then --kernel-log FILE")
}

fn is_restricted(root: &Path) -> bool {
    std::fs::read(root.join("proc/sys/kernel/dmesg_restrict"))
        .is_ok_and(|flag| flag.trim_ascii() == b"1")
}

/// When the machine was switched on, on a clock that also runs while it sleeps; None when it
/// slept, for then the kernel's seconds tell no moment.
pub fn switched_on() -> Option<Timestamp> {
    let uptime = Uptime::now();
    if uptime.suspended > Duration::from_secs(1) {
        return None;
    }
    Timestamp::now().checked_sub(uptime.awake).ok()
}

/// Dates for incidents that bear none.
pub fn date(incidents: &mut [Incident], switched_on: Timestamp) {
    for line in incidents.iter_mut().map(|incident| &mut incident.line) {
        if line.at.is_none() {
            line.at = line
                .since_boot
                .and_then(|since| switched_on.checked_add(since).ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_setting_behind_it() {
        let root = tempfile::tempdir().unwrap();
        let setting = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&setting).unwrap();
        std::fs::write(setting.join("dmesg_restrict"), "1\n").unwrap();
        assert_eq!(
            refusal(Errno::PERM, root.path()),
            "the kernel log may not be read: kernel.dmesg_restrict=1; try sudo dmesg > FILE, then --kernel-log FILE"
        );
        assert!(refusal(Errno::IO, root.path()).contains("Input/output error"));
    }
}
