//! Reads the journal through journalctl: the kernel's lines of one boot, those of other guards, and those of a clean
//! shutdown. journalctl may be slow, hang or print without end, so it gets ten seconds, and the end of its output counts.

use super::sources::Boot;
use super::tail::{LIMIT, Tail};
use antifreeze_text::sanitize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(10);
/// So many lines are mostly less than what is read.
const LINES: &str = "--lines=100000";

/// Fields that journald sets itself, so that no program can imitate another. Equal fields are alternatives, different
/// fields must all match, and `+` begins another alternative.
const WANTED: [&str; 17] = [
    "_TRANSPORT=kernel",
    "+",
    "_SYSTEMD_UNIT=earlyoom.service",
    "_SYSTEMD_UNIT=systemd-oomd.service",
    "_SYSTEMD_UNIT=nohang.service",
    "_SYSTEMD_UNIT=nohang-desktop.service",
    "_SYSTEMD_UNIT=slurmd.service",
    "_SYSTEMD_UNIT=kubelet.service",
    "_SYSTEMD_UNIT=k3s.service",
    "+",
    "_PID=1",
    "UNIT=poweroff.target",
    "UNIT=reboot.target",
    "UNIT=halt.target",
    "+",
    "_SYSTEMD_UNIT=systemd-logind.service",
    // The message that the machine goes down.
    "MESSAGE_ID=98268866d1d54a499c4e98921d93bc40",
];

/// Lines of the journal.
pub struct JournalText {
    /// The lines.
    pub text: Vec<u8>,
    /// Why lines may be missing.
    pub incomplete: Option<String>,
}

pub fn read(root: &Path, boot: Boot) -> Result<JournalText, String> {
    const FOLDERS: [&str; 3] = ["usr/bin", "bin", "run/current-system/sw/bin"];
    let program = FOLDERS
        .iter()
        .map(|folder| root.join(folder).join("journalctl"))
        .find(|program| program.exists())
        .ok_or("there is no journalctl here")?;
    let boot = match boot {
        Boot::This => "--boot=0".into(),
        Boot::Past(number) => format!("--boot={:032x}", u128::from_be_bytes(number)),
    };
    let mut command = Command::new(program);
    command
        .args([
            boot.as_str(),
            "--output=short-iso-precise",
            "--no-pager",
            "--quiet",
            LINES,
        ])
        .args(WANTED)
        .env("LC_ALL", "C")
        .env("SYSTEMD_COLORS", "0");
    let heard = run_with_deadline(command, DEADLINE)
        .map_err(|error| format!("journalctl could not be started: {error}"))?;
    let late = || format!("the journal did not end within {} s", DEADLINE.as_secs());
    if heard.text.is_empty() {
        let complaint = heard.complaint.split(|byte| *byte == b'\n').next();
        return Err(match complaint.map(<[u8]>::trim_ascii) {
            _ if heard.is_late => late(),
            Some(said) if !said.is_empty() => {
                format!("the journal says: {}", sanitize::escape(said))
            }
            _ => "the journal shows nothing of that boot: reading it may need sudo, or the group adm or systemd-journal".into(),
        });
    }
    Ok(JournalText {
        text: heard.text,
        incomplete: heard.is_late.then(late),
    })
}

struct CommandOutput {
    text: Vec<u8>,
    complaint: Vec<u8>,
    is_late: bool,
}

/// The output of a program until it ends or the time is over. Its errors are short enough to wait in their pipe; a
/// program that fills the pipe is late.
fn run_with_deadline(mut command: Command, time: Duration) -> std::io::Result<CommandOutput> {
    let deadline = Instant::now() + time;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut buffer = vec![0; 64 << 10];
    let mut text = Tail::new(LIMIT);
    if let Some(pipe) = child.stdout.take() {
        while let Some(bytes) = read_some(&pipe, &mut buffer, deadline) {
            text.push(bytes);
        }
    }
    let is_late = !ends(&mut child, deadline);
    let pipe = child.stderr.take();
    let complaint = pipe.and_then(|pipe| Some(read_some(&pipe, &mut buffer, deadline)?.to_vec()));
    Ok(CommandOutput {
        text: text.finish(),
        complaint: complaint.unwrap_or_default(),
        is_late,
    })
}

/// Reads some bytes; None at the end, or when nothing came in time.
fn read_some(pipe: impl AsFd, buffer: &mut [u8], deadline: Instant) -> Option<&[u8]> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok()?;
        let mut waiting = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut waiting, Some(&left)) {
            Ok(0) => return None,
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        match rustix::io::read(&pipe, &mut *buffer) {
            Ok(0) => return None,
            Ok(count) => return buffer.get(..count),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
}

/// Whether the program ended by itself. If not, it is killed, and not waited for if that takes long.
fn ends(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            Ok(None) => break,
            _ => return true,
        }
    }
    let _ = child.kill();
    thread::sleep(Duration::from_millis(20));
    let _ = child.try_wait();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(script: &str, time: Duration) -> CommandOutput {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run_with_deadline(command, time).unwrap()
    }

    #[test]
    fn both_what_is_said_and_what_is_complained_of_are_heard() {
        let heard = heard("echo said; echo complained >&2", Duration::from_secs(60));
        assert_eq!(heard.text, b"said\n");
        assert_eq!(heard.complaint, b"complained\n");
        assert!(!heard.is_late);
    }

    #[test]
    fn one_that_does_not_end_is_cut_off() {
        for script in ["echo said; exec sleep 600", "echo said; exec yes >&2"] {
            let heard = cut_off(script);
            assert_eq!(heard.text, b"said\n");
            assert!(heard.is_late);
        }
    }

    /// Cut off after it has begun: on a busy machine that takes its time.
    fn cut_off(script: &str) -> CommandOutput {
        let times = [300, 3000, 30_000].map(Duration::from_millis);
        let mut heard = times.into_iter().map(|time| heard(script, time));
        heard
            .find(|heard| !heard.text.is_empty())
            .expect("it says something in half a minute")
    }

    #[test]
    fn of_one_that_talks_without_end_the_last_is_kept() {
        let heard = cut_off("exec yes said");
        assert!(heard.is_late && heard.text.len() <= LIMIT);
        assert!(heard.text.starts_with(b"said\n"));
    }
}
