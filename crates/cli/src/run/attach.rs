//! `antifreeze attach`: guards a process that runs already. Where it was that process that started us
//! (`antifreeze.guard()` in Python), a tether is between us: standard output tells it where the page is,
//! and a byte on standard input that it wants to be guarded no more.

use super::front::Front;
use super::{OWN_FAILURE, Prepared, prepare};
use crate::args::AttachArguments;
use crate::config::Settings;
use crate::look::look_of;
use antifreeze_diagnose::Facts;
use antifreeze_guard::hands::limit::Limits;
use antifreeze_sense::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Guards the process until it ends or wants no more, and returns the exit status.
pub fn attach(mut arguments: AttachArguments) -> u8 {
    match attached(&mut arguments) {
        Ok(()) => 0,
        Err(Failure::Usage(message)) => failed(&message, 2),
        Err(Failure::Own(message)) => failed(&message, OWN_FAILURE),
    }
}

fn failed(message: &str, status: u8) -> u8 {
    eprintln!("antifreeze: {message}");
    status
}

enum Failure {
    Usage(String),
    Own(String),
}

fn attached(arguments: &mut AttachArguments) -> Result<(), Failure> {
    let pid = arguments.pid;
    if let Err(errno) = Limits::of(Pid(pid)) {
        return Err(Failure::Usage(match errno {
            Errno::SRCH => format!("no process has the number {pid}"),
            _ => format!("process {pid} is not yours to guard: {errno}"),
        }));
    }
    // What it writes, it writes there; and so do its settings stand there.
    let folder =
        std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
    let _ = std::env::set_current_dir(&folder);
    let settings = Settings::read(&folder).map_err(Failure::Usage)?;
    settings.fill_terms(&mut arguments.terms);
    let Prepared {
        store,
        trouble,
        mut orders,
        mut facts,
        detail,
    } = prepare(&arguments.terms, &folder, command_of(pid)).map_err(Failure::Usage)?;
    orders.attach = pid;
    facts.attached = true;
    let look = look_of(rustix::stdio::stderr());
    let mut front = Front::start(orders, facts, detail, look, false, None).map_err(Failure::Own)?;
    if arguments.tether {
        front.hold(Tether, arguments.tersely);
    }
    if let Some(trouble) = trouble {
        front.say(&trouble);
    }
    let score = OomScore::raise(pid);
    front.watch(None);
    score.put_back();
    if let Some(store) = store {
        store.prune_as_usual();
    }
    Ok(())
}

fn command_of(pid: u32) -> Vec<OsString> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

/// Who is killed first if the kernel has to kill after all: what is guarded, as long as it is.
struct OomScore {
    path: String,
    before: Option<i32>,
}

impl OomScore {
    fn raise(pid: u32) -> OomScore {
        let path = format!("/proc/{pid}/oom_score_adj");
        let before: Option<i32> = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        if let Some(before) = before {
            let _ = std::fs::write(&path, (before + 500).min(1000).to_string());
        }
        OomScore { path, before }
    }

    fn put_back(self) {
        if let Some(before) = self.before {
            let _ = std::fs::write(&self.path, before.to_string());
        }
    }
}

/// To the process that has us guard it.
pub struct Tether;

/// What it says.
pub enum Word {
    Nothing,
    /// It is guarded no more, and what was guarded went well (0) or failed (1).
    Leave(u8),
    /// It is not at the other end any more.
    Gone,
}

impl Tether {
    /// That it is guarded, and what it has to know to take its part in that.
    pub fn say(&self, guard: u32, page: BorrowedFd<'_>, strip: u64, facts: &Facts) {
        let (front, fd) = (std::process::id(), page.as_raw_fd());
        let words = serde_json::json!({
            "page": format!("/proc/{guard}/fd/{fd}:/proc/{front}/fd/{fd}"),
            "run": facts.record,
            "strip": strip,
            "may_use": facts.may_use(),
        });
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{words}");
        let _ = out.flush();
    }

    pub fn hear(&self) -> Word {
        let mut ready = [PollFd::new(self, PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&NOW)), Ok(1..)) {
            return Word::Nothing;
        }
        let mut byte = [0u8];
        match rustix::io::read(self, &mut byte) {
            Ok(1) => Word::Leave(byte[0].min(1)),
            Err(Errno::INTR | Errno::AGAIN) => Word::Nothing,
            _ => Word::Gone,
        }
    }
}

impl AsFd for Tether {
    fn as_fd(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }
}

const NOW: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
